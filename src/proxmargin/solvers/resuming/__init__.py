"""Fits that resume an interrupted fit."""
