"""Inputs of a benchmark that are neither ordinary numbers nor any indices below a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Draw = Callable[[np.random.Generator, tuple[int, ...]], Any]
"""What draws an array of a shape."""


def distinct(below: int) -> Draw:
    """Return what draws numbers below one, each of them at most once."""
    return lambda rng, shape: rng.permutation(below)[: int(np.prod(shape))].reshape(shape)


def offsets(rows: int) -> Draw:
    """Return what draws where runs of so many rows begin, and where the last one ends."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        inner = np.sort(rng.integers(0, rows + 1, shape[0] - 2))
        return np.concatenate([[0], inner, [rows]]).astype(np.int64)

    return draw


def pooled(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Draw where pooling by two has taken each element from, numbered over all images as ONNX's MaxPool does."""
    rows, columns = 2 * shape[-2], 2 * shape[-1]
    place = np.indices(shape)
    plane = np.arange(np.prod(shape[:-2], dtype=np.int64)).reshape(*shape[:-2], 1, 1)
    row = 2 * place[-2] + rng.integers(0, 2, shape)
    return (plane * rows + row) * columns + 2 * place[-1] + rng.integers(0, 2, shape)


def boxes(size: float) -> Draw:
    """Return what draws rectangles in an image of this size: left, top, right and bottom."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        corner = rng.random((shape[0], 2), np.float32) * np.float32(0.6 * size)
        sides = (rng.random((shape[0], 2), np.float32) + np.float32(0.2)) * np.float32(0.3 * size)
        return np.concatenate([corner, corner + sides], axis=1)

    return draw
