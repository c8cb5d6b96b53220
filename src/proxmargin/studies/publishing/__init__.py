"""A comparison as one folder for a co-author: page, paper, tables, predictions, model, methods."""
