"""Newton methods for smooth losses with ridges and balls."""
