"""The plain form of a node of ONNX's test cases, where the standard has several ways to say the same.

Axes that are listed are given for all axes, places that are counted from the end or lie beyond it as places of the axis, what is
left out and follows from an input as the number that it is. A reference of ours then needs words for one of these ways. The rules
are those of the operators' pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opc.ir.affine import Affine
from opc.ir.op import Op
from opc.testing.oracle.bounds import Array

Node = Mapping[str, Any]
Form = tuple[list[Array | None], dict[str, Any]]
"""Inputs (None where absent) and attributes of a node."""


def plain_form(op: Op, op_type: str, node: Node) -> Form | None:
    """Return inputs and attributes of `node` in the plain form of its operator, for a call of `op`; None without one."""
    change = _CHANGES.get(op_type)
    inputs, attributes = list(node["inputs"]), dict(node["attributes"])
    if op_type == "Split":
        # In older versions the outputs alone say how many there are.
        attributes.setdefault("num_outputs", len(node["outputs"]))
    return change(op, inputs, attributes) if change is not None and inputs and inputs[0] is not None else None


def _given(inputs: Sequence[Array | None], place: int) -> Array | None:
    return inputs[place] if place < len(inputs) else None


def _axes(listed: Any, rank: int) -> list[int]:
    """Return the axes of a list, counted from the first; all where there is no list."""
    return list(range(rank)) if listed is None else [int(a) % rank for a in np.asarray(listed).reshape(-1)]


def _pad(op: Op, inputs: list[Array | None], attributes: dict[str, Any]) -> Form | None:
    """Pads of some axes: 0 at the others."""
    x, pads, listed = inputs[0], _given(inputs, 1), _given(inputs, 3)
    if x is None or pads is None or listed is None:
        return None
    axes, whole = _axes(listed, x.ndim), np.zeros(2 * x.ndim, np.int64)
    for k, axis in enumerate(axes):
        whole[axis], whole[x.ndim + axis] = pads[k], pads[len(axes) + k]
    return [x, whole, _given(inputs, 2)], attributes


def _center_crop_pad(op: Op, inputs: list[Array | None], attributes: dict[str, Any]) -> Form | None:
    """Sizes of some axes: the others keep theirs."""
    x, size = inputs[0], _given(inputs, 1)
    if x is None or size is None or "axes" not in attributes:
        return None
    whole = np.array(x.shape)
    whole[_axes(attributes.pop("axes"), x.ndim)] = size
    return [x, whole], attributes


def _slice(op: Op, inputs: list[Array | None], attributes: dict[str, Any]) -> Form | None:
    """Forward slices from places of the axis to places of it; an axis that is kept whole is not sliced, unless all are."""
    x, starts, ends = inputs[0], _given(inputs, 1), _given(inputs, 2)
    if x is None or starts is None or ends is None:
        return None
    listed, steps = _given(inputs, 3), _given(inputs, 4)
    axes = _axes(listed, x.ndim)[: starts.size]
    found: list[tuple[int, int, int, int]] = []
    for k, axis in enumerate(axes):
        step = 1 if steps is None else int(steps[k])
        if step < 0:
            return None
        start, end = (_place(int(bound[k]), x.shape[axis]) for bound in (starts, ends))
        found.append((start, end, axis, step))
    cut = [part for part in found if part[:2] != (0, x.shape[part[2]]) or part[3] != 1] or found[:1]
    return [x, *(np.array(part) for part in zip(*cut, strict=True))], attributes


def _place(bound: int, size: int) -> int:
    """Return the place of an axis that a bound is, counted from the end where it is negative, and cut to the axis."""
    return min(max(bound + size if bound < 0 else bound, 0), size)


def _split(op: Op, inputs: list[Array | None], attributes: dict[str, Any]) -> Form | None:
    """The sizes of equal parts, of which the last may be smaller."""
    x, count = inputs[0], attributes.pop("num_outputs")
    if x is None or len(inputs) > 1:
        return None
    size = x.shape[attributes.get("axis", 0)]
    part = -(-size // count)
    return [x, np.array([min(part, max(size - k * part, 0)) for k in range(count)])], attributes


def _shape(op: Op, inputs: list[Array | None], attributes: dict[str, Any]) -> Form | None:
    """Bounds among the axes that there are."""
    x = inputs[0]
    return None if x is None else (inputs, {name: _place(int(bound), x.ndim) for name, bound in attributes.items()})


def _eye_like(op: Op, inputs: list[Array | None], attributes: dict[str, Any]) -> Form | None:
    """The type of the input, where none is said."""
    from onnx import helper

    x = inputs[0]
    return None if x is None else (inputs, {"dtype": helper.np_dtype_to_tensor_dtype(x.dtype), **attributes})


def _one_hot(op: Op, inputs: list[Array | None], attributes: dict[str, Any]) -> Form | None:
    """The new axis counted from the end."""
    x, axis = inputs[0], attributes.get("axis", -1)
    return None if x is None or axis < 0 else (inputs, {**attributes, "axis": axis - x.ndim - 1})


def _gemm(op: Op, inputs: list[Array | None], attributes: dict[str, Any]) -> Form | None:
    """What is added as a matrix, of which a size of 1 is repeated."""
    c = _given(inputs, 2)
    return None if c is None or c.ndim == 2 else ([*inputs[:2], c.reshape((1,) * (2 - c.ndim) + c.shape)], attributes)


def _with_axes_ahead(op: Op, inputs: list[Array | None], attributes: dict[str, Any]) -> Form | None:
    """A tensor of fewer axes than ours, and numbers for each of them: axes of size 1 ahead, which stay as they are."""
    x, numbers = inputs[0], _given(inputs, 1)
    rank = len(op.inputs[0].dims)
    if x is None or numbers is None or max(x.ndim, numbers.size) > rank:
        return None
    if not all(isinstance(d, Affine) for d in op.inputs[0].dims):
        return None
    ahead = np.ones(rank - numbers.size, np.int64)
    return [x.reshape((1,) * (rank - x.ndim) + x.shape), np.concatenate([ahead, numbers])], attributes


def _dropout(op: Op, inputs: list[Array | None], attributes: dict[str, Any]) -> Form | None:
    """What drops nothing: outside of training, or none of the elements. Which others are dropped the standard leaves open."""
    ratio, training = _given(inputs, 1), _given(inputs, 2)
    drops = training is not None and bool(training) and (ratio is None or float(ratio) > 0)
    return None if drops else (inputs[:1], {})


def _stft(op: Op, inputs: list[Array | None], attributes: dict[str, Any]) -> Form | None:
    """The length of a frame, which the window says too."""
    window = _given(inputs, 2)
    return None if window is None or len(inputs) > 3 else ([*inputs, np.array(window.size)], attributes)


def _constant_of_shape(op: Op, inputs: list[Array | None], attributes: dict[str, Any]) -> Form | None:
    """The value as an input; without one it is the float32 0."""
    from onnx import numpy_helper

    value = attributes.pop("value", None)
    whole = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value)
    return [*inputs, whole.reshape(())], attributes


def _conv_transpose(op: Op, inputs: list[Array | None], attributes: dict[str, Any]) -> Form | None:
    """Padding in place of the size that is asked for, or that strides give an image padded to the same size.

    Where the size is beyond what no padding gives, the rest is added at the end.
    """
    x, w = inputs[0], _given(inputs, 1)
    how, shape = attributes.pop("auto_pad", b"NOTSET"), attributes.pop("output_shape", None)
    if x is None or w is None or (how == b"NOTSET" and shape is None):
        return None
    rank = x.ndim - 2
    strides, dilations = (attributes.get(name, [1] * rank) for name in ("strides", "dilations"))
    if shape is None:
        shape = [n * s for n, s in zip(x.shape[2:], strides)] if how != b"VALID" else None
    if shape is None:
        return inputs, attributes
    sizes = [(n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(x.shape[2:], strides, dilations, w.shape[2:])]
    total = [max(n - out, 0) for n, out in zip(sizes, shape)]
    half, rest = [t // 2 for t in total], [t - t // 2 for t in total]
    attributes["pads"] = [*half, *rest] if how == b"SAME_UPPER" else [*rest, *half]
    attributes["output_padding"] = [max(out - n, 0) for n, out in zip(sizes, shape)]
    return inputs, attributes


def _range(op: Op, inputs: list[Array | None], attributes: dict[str, Any]) -> Form | None:
    """The limit where the next number would stand."""
    start, limit, delta = (_given(inputs, k) for k in range(3))
    if start is None or limit is None or delta is None:
        return None
    count = max(math.ceil((limit - start) / delta), 0)
    return [start, np.asarray(start + count * delta, start.dtype), delta], attributes


def _resize(op: Op, inputs: list[Array | None], attributes: dict[str, Any]) -> Form | None:
    """Both scales and sizes of all axes, and the part of each that is shown."""
    x, roi, scales, sizes = (_given(inputs, k) for k in range(4))
    if x is None:
        return None
    axes = _axes(attributes.pop("axes", None), x.ndim)
    part = np.repeat([0.0, 1.0], x.ndim)
    if roi is not None and roi.size:
        part[[*axes, *(x.ndim + a for a in axes)]] = roi
    factors, result = np.ones(x.ndim), np.array(x.shape)
    kept = attributes.pop("keep_aspect_ratio_policy", b"stretch")
    if scales is not None and scales.size:
        factors[axes] = scales
        result = np.array([math.floor(f * n) for f, n in zip(factors, x.shape)])
    elif sizes is not None:
        factors[axes] = [n / x.shape[a] for n, a in zip(sizes, axes)]
        result[axes] = sizes
        if kept != b"stretch":
            factors[axes] = (min if kept == b"not_larger" else max)(factors[axes])
            result[axes] = [math.floor(factors[a] * x.shape[a] + 0.5) for a in axes]
    return [x, part, factors, result], attributes


_CHANGES: Mapping[str, Callable[[Op, list[Array | None], dict[str, Any]], Form | None]] = {
    "CenterCropPad": _center_crop_pad,
    "ConstantOfShape": _constant_of_shape,
    "ConvTranspose": _conv_transpose,
    "Dropout": _dropout,
    "Expand": _with_axes_ahead,
    "EyeLike": _eye_like,
    "Gemm": _gemm,
    "OneHot": _one_hot,
    "Pad": _pad,
    "Range": _range,
    "Resize": _resize,
    "STFT": _stft,
    "Shape": _shape,
    "Slice": _slice,
    "Split": _split,
    "Tile": _with_axes_ahead,
}
