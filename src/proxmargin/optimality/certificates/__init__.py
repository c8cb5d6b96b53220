"""Certificates: duality gaps of coefficients and of kernel models, and what a fit publishes."""
