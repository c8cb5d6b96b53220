"""Fits that resume an interrupted one."""
