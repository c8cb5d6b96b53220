"""What a comparison found, for each model, and how it is told in words, tables and pictures."""
