"""What comes from outside: data, labels, weights and parameters, checked and encoded once."""
