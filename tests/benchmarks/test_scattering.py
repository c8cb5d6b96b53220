"""Scattering coefficients: what holds for any such transform."""

from __future__ import annotations

import numpy as np
from benchmarks.scattering import _filters, scattered

rng = np.random.default_rng(0)
images = rng.random((2, 28, 28))


def test_there_are_81_maps_that_are_not_negative() -> None:
    found = scattered(images)
    assert found.shape == (2, 81, 14, 14)
    assert found.min() > -1e-5


def test_constant_images_have_no_coefficients_but_the_first() -> None:
    found = scattered(np.full((1, 28, 28), 3.0))
    np.testing.assert_allclose(found[:, 0], 3.0, rtol=1e-4)
    assert np.abs(found[:, 1:]).max() < 1e-4


def test_coefficients_are_homogeneous_and_the_map_does_not_expand() -> None:
    np.testing.assert_allclose(scattered(2.0 * images), 2.0 * scattered(images), rtol=1e-3)
    # with all pixels kept, distances do not grow but by the reflected edges
    both = scattered(images, step=1)
    moved = np.linalg.norm(both[0] - both[1])
    assert moved <= 1.3 * np.linalg.norm(images[0] - images[1])


def test_turned_images_have_turned_coefficients() -> None:
    # by a quarter turn the angles of the wavelets move by half of all
    turned = scattered(np.rot90(images, axes=(1, 2)), step=1)
    upright = np.rot90(scattered(images, step=1), axes=(2, 3))
    np.testing.assert_allclose(turned[:, 0], upright[:, 0], atol=1e-3)
    first = turned[:, 1:9], np.roll(upright[:, 1:9], 4, axis=1)
    inner = (slice(None), slice(None), slice(8, 20), slice(8, 20))
    np.testing.assert_allclose(first[0][inner], first[1][inner], atol=5e-3)


def test_the_bank_covers_the_plane() -> None:
    low, waves = _filters((36, 36))
    power = low**2 + 0.5 * sum(
        wave**2 + np.roll(wave[::-1, ::-1], 1, axis=(0, 1)) ** 2 for wave in waves.values()
    )
    frequency = np.fft.fftfreq(36)
    disc = frequency[:, None] ** 2 + frequency**2 < 0.4**2
    assert power[disc].min() > 0.2
    assert power.max() < 1.7
