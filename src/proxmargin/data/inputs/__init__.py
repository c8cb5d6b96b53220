"""Input: data, labels, weights and parameters, validated and encoded once."""
