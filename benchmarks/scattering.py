"""Scattering coefficients of images: two layers of Morlet wavelets (Bruna and Mallat 2013).

    S_0 = x * phi      S_1 = |x * psi_1| * phi      S_2 = ||x * psi_1| * psi_2| * phi

with wavelets psi of scales 2^j, j = 0, ..., J - 1, and L angles; in S_2 the second wavelet is of a
larger scale than the first. phi is a Gaussian of scale 2^J. All convolutions are those of FFTs of
images that are reflected at their edges.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import scipy.fft
from numpy.typing import NDArray

__all__ = ["scattered"]

SCALES = 2  # J
ANGLES = 8  # L
EDGE = 4  # pixels that are reflected, on each side
BATCH = 250  # images
WIDTH = 0.8  # of the envelope at j = 0, in pixels
FREQUENCY = 0.75 * np.pi  # of the wave at j = 0
SLANT = 4.0 / ANGLES  # of the envelope: narrower along the wave than across
REPEATS = range(-2, 3)  # periods of the image in which a filter is summed

Images = NDArray[np.float32]


def scattered(images: NDArray[np.float64], step: int = 2) -> Images:
    """Maps of every ``step``-th pixel: (n, maps, rows / step, columns / step).

    Parameters
    ----------
    images : (n, rows, columns)
    step : int
        Scattering coefficients hold frequencies up to about 2^-J: 2^J would not lose much.
    """
    parts = [
        _of_batch(images[start : start + BATCH].astype(np.float32), step)
        for start in range(0, len(images), BATCH)
    ]
    return np.concatenate(parts)


def _of_batch(images: Images, step: int) -> Images:
    padded = np.pad(images, ((0, 0), (EDGE, EDGE), (EDGE, EDGE)), mode="reflect")
    low, waves = _filters(padded.shape[1:])
    spectrum = scipy.fft.fft2(padded)
    kept = slice(EDGE, -EDGE, step)

    def smoothed(of: NDArray[np.complex64]) -> Images:
        found: Images = scipy.fft.ifft2(of * low).real[:, kept, kept]
        return found

    def modulus(of: NDArray[np.complex64], wave: Images) -> NDArray[np.complex64]:
        found: NDArray[np.complex64] = scipy.fft.fft2(np.abs(scipy.fft.ifft2(of * wave)))
        return found

    second: list[Images] = []
    maps = [smoothed(spectrum)]
    for j, angle in product(range(SCALES), range(ANGLES)):
        first = modulus(spectrum, waves[j, angle])
        maps.append(smoothed(first))
        for larger, other in product(range(j + 1, SCALES), range(ANGLES)):
            second.append(smoothed(modulus(first, waves[larger, other])))
    return np.stack(maps + second, axis=1)


@cache
def _filters(shape: tuple[int, int]) -> tuple[Images, dict[tuple[int, int], Images]]:
    """Fourier transforms of phi and of the wavelets by scale and angle; all are real."""
    low = _transform(_gabor(shape, WIDTH * 2.0 ** (SCALES - 1), 0.0, 0.0, 1.0))
    waves = {}
    for j, angle in product(range(SCALES), range(ANGLES)):
        width, turn = WIDTH * 2.0**j, (ANGLES // 2 - 1 - angle) * np.pi / ANGLES
        wave = _gabor(shape, width, turn, FREQUENCY / 2.0**j, SLANT)
        envelope = _gabor(shape, width, turn, 0.0, SLANT)
        # a wavelet has mean zero
        waves[j, angle] = _transform(wave - wave.sum() / envelope.sum() * envelope)
    return low, waves


def _gabor(
    shape: tuple[int, int], width: float, turn: float, frequency: float, slant: float
) -> NDArray[np.complex128]:
    """A plane wave under a Gaussian, of mass one, made periodic."""
    total = np.zeros(shape, complex)
    for rows, columns in product(REPEATS, REPEATS):
        x = (np.arange(shape[0]) + rows * shape[0])[:, None]
        y = (np.arange(shape[1]) + columns * shape[1])[None, :]
        along = np.cos(turn) * x + np.sin(turn) * y
        across = slant * (np.cos(turn) * y - np.sin(turn) * x)
        total += np.exp(-(along**2 + across**2) / (2.0 * width**2) + 1j * frequency * along)
    return total * slant / (2.0 * np.pi * width**2)


def _transform(filter_: NDArray[np.complex128]) -> Images:
    found: Images = scipy.fft.fft2(filter_).real.astype(np.float32)
    return found
