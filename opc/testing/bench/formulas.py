"""What one writes in torch for ops that it has none of its own for, where that is more than an expression."""

from __future__ import annotations

from typing import Any

# torch is imported where it is used: whether it is here is for a contender to say.


def scatter_max(data: Any, indices: Any, updates: Any, *, axis: int, **_: Any) -> Any:
    """The greatest of each element and of the updates that go there."""
    return data.scatter_reduce(axis, indices, updates, "amax")


def segment_softmax(x: Any, offsets: Any) -> Any:
    """The softmax of each segment of rows that follow each other, all rows in one of them."""
    import torch

    segments, rows = len(offsets) - 1, x.shape[0]
    segment = torch.repeat_interleave(offsets.diff(), output_size=rows)
    most = torch.full((segments, x.shape[1]), -torch.inf, dtype=x.dtype)
    most = most.scatter_reduce(0, segment[:, None].expand_as(x), x.detach(), "amax")
    e = torch.exp(x - most[segment])
    return e / torch.zeros((segments, x.shape[1]), dtype=x.dtype).index_add(0, segment, e)[segment]


def linear_attention(
    query: Any, key: Any, value: Any, *_: Any, q_num_heads: int, kv_num_heads: int, scale: float, update_rule: str
) -> tuple[Any, Any]:
    """Causal attention without softmax, as a product of matrices below a diagonal; and the sum of products of keys and values."""
    import torch

    def heads(x: Any) -> Any:
        return x.view(*x.shape[:2], kv_num_heads, -1).transpose(1, 2)

    q, k, v = heads(query), heads(key), heads(value)
    y = torch.tril((q * q.shape[-1] ** -0.5) @ k.mT) @ v
    return y.transpose(1, 2).reshape(*query.shape[:2], -1), k.mT @ v


def deform_conv(x: Any, w: Any, offset: Any, b: Any, mask: Any, *, strides: Any, pads: Any, dilations: Any, **_: Any) -> Any:
    """A deformable convolution of one group: all taps are sampled at once, and are multiplied with the filters as a matrix."""
    import torch

    n, c, height, width = x.shape
    o, _, kh, kw = w.shape
    oh, ow = offset.shape[2:]
    moved = offset.view(n, kh, kw, 2, oh, ow)
    rows = torch.arange(oh) * strides[0] - pads[0]
    columns = torch.arange(ow) * strides[1] - pads[1]
    down = (torch.arange(kh) * dilations[0]).view(kh, 1, 1, 1) + rows.view(oh, 1)
    right = (torch.arange(kw) * dilations[1]).view(kw, 1, 1) + columns
    v, u = moved[:, :, :, 0] + down, moved[:, :, :, 1] + right
    grid = torch.stack([u * (2 / (width - 1)) - 1, v * (2 / (height - 1)) - 1], -1).view(n, kh * kw * oh, ow, 2)
    taps = torch.nn.functional.grid_sample(x, grid, align_corners=True).view(n, c, kh * kw, oh * ow)
    taps = taps if mask is None else taps * mask.view(n, 1, kh * kw, oh * ow)
    return torch.matmul(w.view(o, -1), taps.view(n, c * kh * kw, oh * ow)).view(n, o, oh, ow) + b.view(o, 1, 1)


def roi_align(
    x: Any,
    rois: Any,
    batch_indices: Any,
    *,
    output_height: int,
    output_width: int,
    sampling_ratio: int,
    spatial_scale: float,
    **_: Any,
) -> Any:
    """The means of samples in the cells of regions, each sample made of the four pixels around it."""
    import torch

    height, width = x.shape[2:]
    left, top, right, bottom = (rois * spatial_scale - 0.5).unbind(1)

    def places(begin: Any, end: Any, cells: int, size: int) -> tuple[Any, Any, Any, Any]:
        step = ((end - begin) / cells)[:, None]
        at = begin[:, None] + (torch.arange(cells * sampling_ratio) + 0.5) * step / sampling_ratio
        inside = ((at >= -1) & (at <= size)).to(x.dtype)
        at = at.clamp(0, size - 1)
        first = at.floor().long()
        part = at - first
        return first, (first + 1).clamp(max=size - 1), (1 - part) * inside, part * inside

    y0, y1, wy0, wy1 = places(top, bottom, output_height, height)
    x0, x1, wx0, wx1 = places(left, right, output_width, width)
    pixels = x.permute(0, 2, 3, 1).contiguous()
    image = batch_indices[:, None, None]
    above = pixels[image, y0[:, :, None], x0[:, None]] * wx0[:, None, :, None] + (
        pixels[image, y0[:, :, None], x1[:, None]] * wx1[:, None, :, None]
    )
    below = pixels[image, y1[:, :, None], x0[:, None]] * wx0[:, None, :, None] + (
        pixels[image, y1[:, :, None], x1[:, None]] * wx1[:, None, :, None]
    )
    samples = (above * wy0[:, :, None, None] + below * wy1[:, :, None, None]).permute(0, 3, 1, 2)
    return torch.nn.functional.avg_pool2d(samples, sampling_ratio)


def col2im(x: Any, *, image_shape: Any, block_shape: Any, dilations: Any, pads_begin: Any, strides: Any, **_: Any) -> Any:
    """Blocks put together to images of one or two axes; of three, torch has nothing."""
    import torch

    if len(image_shape) > 2:
        raise ImportError("torch folds images of two axes")

    def both(entries: Any, other: int) -> tuple[int, ...]:
        return (other,) * (2 - len(entries)) + tuple(entries)

    sizes, windows = both(image_shape, 1), both(block_shape, 1)
    y = torch.nn.functional.fold(x, sizes, windows, both(dilations, 1), both(pads_begin, 0), both(strides, 1))
    return y.view(*y.shape[:2], *image_shape)
