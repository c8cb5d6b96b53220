"""What is minimised, and how far a point is from the minimum."""
