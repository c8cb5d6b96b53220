"""One unit of work: a model, its settings chosen on training rows, scored on held-out ones."""
