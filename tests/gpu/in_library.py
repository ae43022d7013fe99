"""Products of matrices on a GPU, by cuBLASLt and in tiles: `python tests/gpu/in_library.py FOLDER`, where packages of matmul and
linear are built for torch and CUDA.

Values are those of products in float64. It says `all held` on which GPU, with times as parts of torch's, or ends with what did
not hold.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

ROUNDINGS = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-24, torch.float64: 2.0**-53}
"""The greatest relative error of a rounding."""


@contextmanager
def use(value: str) -> Iterator[None]:
    """Have the library make products of matrices or not: `off`, `all`."""
    os.environ["OPC_CUBLASLT"] = value
    try:
        yield
    finally:
        del os.environ["OPC_CUBLASLT"]


class Counted:
    """A function of a package, and how many products the library has made for it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.function = getattr(import_module(f"{name}.torch"), name)
        self.library, self.name = folder / name / "build" / f"lib{name}_cuda.so", name

    @property
    def made(self) -> int:
        """How many; -1 where there is no library."""
        count = getattr(ctypes.CDLL(str(self.library)), f"opc_{self.name}_cuda_library")
        count.restype = ctypes.c_int64
        return int(count())

    def __call__(self, *tensors: Tensor, products: int | None = None) -> Any:
        """Call it; `products` is how many the library has to make."""
        before = self.made
        found = self.function(*tensors)
        assert products is None or self.made - before == products, (self.name, [x.shape for x in tensors], self.made - before)
        return found


def near(found: Tensor, x: Tensor, w: Tensor, b: Tensor | None = None) -> None:
    """Assert that a result is x w + b: rounded once, of sums in float32 or in float64."""
    wide = [t.double() for t in (x, w)]
    exact, size = wide[0] @ wide[1], wide[0].abs() @ wide[1].abs()
    if b is not None:
        exact, size = exact + b.double(), size + b.double().abs()
    sums = ROUNDINGS[torch.float64 if found.dtype == torch.float64 else torch.float32]
    bound = size * sums * 4 * x.shape[-1] ** 0.5 + exact.abs() * ROUNDINGS[found.dtype] * 1.01 + 1e-30
    wrong = ((found.double() - exact).abs() > bound).sum().item()
    assert wrong == 0, (found.dtype, tuple(x.shape), tuple(w.shape), wrong)


def right(matmul: Counted, linear: Counted) -> None:
    """Check values, layouts, gradients, and that the same call gives the same bits."""
    for dtype in ROUNDINGS:
        shapes = (
            ((256, 512), (512, 384)),
            ((8, 64, 96), (8, 96, 80)),
            ((4, 32, 96), (96, 80)),
            ((64, 65536), (65536, 64)),
            ((129, 131), (131, 127)),
        )
        for shape_a, shape_b in shapes:
            a, b = (torch.randn(s, dtype=torch.float64).to("cuda", dtype) for s in (shape_a, shape_b))
            with use("all"):
                found = matmul(a, b, products=1)
                near(found, a, b)
                assert torch.equal(found, matmul(a, b, products=1))
                near(matmul(a.mT.contiguous().mT, b.mT.contiguous().mT, products=1), a, b)
                near(matmul(a[..., 1:, 3:], b[..., 3:, 1:], products=1), a[..., 1:, 3:], b[..., 3:, 1:])
            with use("off"):
                near(matmul(a, b, products=0), a, b)
        x, w, b = (
            torch.randn(s, dtype=torch.float64).to("cuda", dtype).requires_grad_() for s in ((6, 100, 320), (200, 320), (200,))
        )
        with use("all"):
            y = linear(x, w, b, products=1)
            near(y.detach(), x.detach(), w.detach().T, b.detach())
            before, d_y = linear.made, torch.randn_like(y)
            # The gradient is computed by a thread of torch's.
            y.backward(d_y)
            assert linear.made - before == 2
        near(x.grad, d_y, w.detach())
        near(w.grad, d_y.flatten(0, 1).T, x.detach().flatten(0, 1))
    odd = torch.tensor([[float("inf"), 1], [float("nan"), 1], [0, 1], [1, 1]], device="cuda")
    other = torch.tensor([[1, 0, float("inf")], [1, 1, 1]], device="cuda")
    with use("all"):
        torch.testing.assert_close(matmul(odd, other, products=1).cpu(), odd.cpu() @ other.cpu(), equal_nan=True)
    with use("off"):
        torch.testing.assert_close(matmul(odd, other, products=0).cpu(), odd.cpu() @ other.cpu(), equal_nan=True)


def captured(matmul: Counted) -> None:
    """Check a CUDA graph, whose call is the first that the library gets."""
    a, b = torch.randn(512, 640, device="cuda"), torch.randn(640, 512, device="cuda")
    with use("off"):
        matmul(a[:2], b, products=0)
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.graph(graph, stream=stream):
        result = matmul(a, b, products=1)
    for _ in range(2):
        a.mul_(0.5)
        graph.replay()
        torch.cuda.synchronize()
        near(result, a, b)


def seconds(call: Callable[[], Any]) -> float:
    """Return the device's time of a call: the median of some."""
    found = []
    for _ in range(7):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(10):
            call()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) / 10000)
    return float(median(found[2:]))


def timed(matmul: Counted, linear: Counted) -> None:
    """Print times beside torch's, by the library and in tiles."""
    for dtype in (torch.float32, torch.bfloat16):
        for size in (128, 256, 1024, 4096):
            a, w, b = (torch.randn(s, device="cuda", dtype=dtype) for s in ((size, size), (size, size), (size,)))
            cases = (
                ("matmul", matmul.function, torch.matmul, (a, w)),
                ("linear", linear.function, torch.nn.functional.linear, (a, w, b)),
            )
            for name, own, theirs, given in cases:
                base, by = seconds(partial(theirs, *given)), dict[str, float]()
                for way in ("all", "off"):
                    with use(way):
                        by[way] = seconds(partial(own, *given))
                ratios = f"library {by['all'] / base:.2f}, tiles {by['off'] / base:.2f}"
                print(f"{name} {size} {dtype}: torch {base * 1e6:.1f} us, {ratios}")


def main(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    matmul, linear = Counted(folder, "matmul"), Counted(folder, "linear")
    if matmul.made < 0:
        print("there is no cuBLASLt: products are made in tiles")
        return
    captured(matmul)
    right(matmul, linear)
    timed(matmul, linear)
    print(f"torch {torch.__version__}: all held on {torch.cuda.get_device_name()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
