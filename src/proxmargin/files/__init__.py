"""Reading data, and writing models that execute nothing when they are read."""
