"""Folders to publish."""
