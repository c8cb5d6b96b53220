"""The magnitudes of parameters that are real numbers."""

from __future__ import annotations

# Products and quotients of three such numbers stay within the range of float64, 2e-308 to 1.8e308.
LARGEST = 1e100
LEAST = 1e-100  # of numbers that must be positive; others may be zero, and as close to it as given


def check_magnitude(name: str, value: float, *, positive: bool) -> None:
    """Raise a `ValueError` that names the parameter if computations with it may leave the range."""
    if not abs(value) <= LARGEST:
        raise ValueError(
            f"{name} must be at most {LARGEST:g} in magnitude, got {value!r}: products with it "
            "would overflow"
        )
    if positive and value < LEAST:
        raise ValueError(
            f"{name} must be at least {LEAST:g}, got {value!r}: its reciprocal would overflow"
        )
