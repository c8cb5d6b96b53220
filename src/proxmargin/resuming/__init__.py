"""Fits that go on where an earlier one was cut short."""
