"""A comparison as it runs: its settings, its processes, and what they leave in its directory."""
