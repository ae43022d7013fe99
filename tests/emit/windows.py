"""Windows of images by NumPy, for the tests of sums over them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.emit.kernel_library import Array


def windows(x: Array, size: tuple[int, int], at: dict[str, Any], nothing: float = 0) -> Array:
    """Return the windows of images padded with `nothing`: N, C, OH, OW, P, Q."""
    (down, across), (step_down, step_across) = at["padding"], at["dilation"]
    padded = np.pad(x, ((0, 0), (0, 0), (down, down), (across, across)), constant_values=nothing)
    reach = (step_down * (size[0] - 1) + 1, step_across * (size[1] - 1) + 1)
    found = np.lib.stride_tricks.sliding_window_view(padded, reach, (2, 3))
    return found[:, :, :: at["stride"][0], :: at["stride"][1], ::step_down, ::step_across]
