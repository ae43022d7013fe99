"""Calls of ops on a GPU from torch: `python tests/gpu/in_torch.py FOLDER`, where packages of OPS are built for torch and CUDA.

Values and gradients are those of the CPU. It says `all held on` which GPU, or ends with what did not hold.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import opc

OPS = ("leaky_relu", "layer_norm", "gather")
TWICE = """
op: twice
domain: opc.gpu_test
version: 1
doc: Two times x.
types: {T: [float32]}
inputs: {x: 'T[...]'}
outputs: {y: 'T[...]'}
kernel: y = 2 * x
"""


def close(found: Any, expected: Any) -> None:
    """Assert that results on a GPU are those of the CPU, but for a few roundings of the largest."""
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for a, b in pairs:
        assert a.is_cuda, a.device
        largest = b.detach().abs().max().item() if b.numel() else 0.0
        torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=1e-5, atol=1e-5 * max(1.0, largest))


def refused(call: Callable[[], Any], says: str) -> None:
    """Assert that a call is refused with a message."""
    found = ""
    try:
        call()
    except RuntimeError as error:
        found = str(error)
    assert says in found, found.splitlines()


def computed(function: Callable[..., Any], tensors: list[Tensor]) -> None:
    """Check an op's values, gradients of both orders, forward mode and vmap."""
    given = [x.cuda() for x in tensors]
    close(function(*given), function(*tensors))
    leaves = tuple(i for i, x in enumerate(tensors) if x.is_floating_point())

    def scalar(*values: Tensor) -> Tensor:
        found = function(*values)
        first = found[0] if isinstance(found, tuple) else found
        return (first * first * first + first).sum()

    gradient = torch.func.grad(scalar, leaves)
    close(gradient(*given), gradient(*tensors))

    def length(*values: Tensor) -> Tensor:
        return torch.stack([(g * g).sum() for g in gradient(*values)]).sum()

    second = torch.func.grad(length, leaves)
    close(second(*given), second(*tensors))

    def pushed(first: Tensor, *rest: Tensor) -> Any:
        return torch.func.jvp(lambda x: function(x, *rest), (first,), (first,))[1]

    close(pushed(*given), pushed(*tensors))

    def several(first: Tensor, *rest: Tensor) -> Any:
        return torch.vmap(function, (0, *(None for _ in rest)))(torch.stack([first, 2 * first]), *rest)

    close(several(*given), several(*tensors))


def captured(function: Callable[..., Any], tensors: list[Tensor]) -> None:
    """Check torch.compile, a stream other than the first, and a CUDA graph of an op and its gradient."""
    given = [x.cuda() for x in tensors]
    for backend in ("aot_eager", "cudagraphs"):
        torch._dynamo.reset()
        compiled = torch.compile(function, fullgraph=True, backend=backend)
        for _ in range(3):
            close(compiled(*given), function(*tensors))

    def gradient(first: Tensor, *rest: Tensor) -> Tensor:
        found = function(first, *rest)
        y = found[0] if isinstance(found, tuple) else found
        return torch.autograd.grad(y, first, y.detach())[0]

    leaf = given[0].requires_grad_()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        gradient(leaf, *given[1:])
        graph = torch.cuda.CUDAGraph()
        # What waits for the device, or gets memory elsewhere than from torch, can't be captured.
        with torch.cuda.graph(graph, stream=stream):
            result = gradient(leaf, *given[1:])
    torch.cuda.synchronize()
    with torch.no_grad():
        leaf.mul_(0.5)
    graph.replay()
    torch.cuda.synchronize()
    close(result, gradient((tensors[0] * 0.5).requires_grad_(), *tensors[1:]))


def everywhere(function: Callable[..., Any], tensors: list[Tensor]) -> None:
    """Check all of it."""
    computed(function, tensors)
    captured(function, tensors)


def main(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    torch.manual_seed(0)
    modules = {name: import_module(f"{name}.torch") for name in OPS}
    leaky, norm, gather = (getattr(modules[name], name) for name in OPS)
    x, w, b, ids = torch.randn(37, 130), torch.randn(130), torch.randn(130), torch.randint(0, 37, (50,))
    everywhere(partial(leaky, alpha=0.3), [x])
    everywhere(norm, [x, w, b])
    everywhere(partial(gather, axis=0), [x, ids])
    half = x.cuda().bfloat16()
    torch.testing.assert_close(leaky(half, 0.25), torch.nn.functional.leaky_relu(half, 0.25))
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert norm(half, w.cuda(), b.cuda())[0].dtype == torch.float32
    refused(lambda: norm(x.cuda(), w, b.cuda()), "layer_norm: x is on cuda:0, but w is on cpu")
    if torch.cuda.device_count() > 1:
        refused(lambda: norm(x.cuda(), w.to("cuda:1")), "layer_norm: x is on cuda:0, but w is on cuda:1")
        assert leaky(x.to("cuda:1")).device.index == 1

    wrong = torch.tensor([3, 99, 0], device="cuda")
    modules["gather"].check_gpu()
    assert torch.equal(gather(x.cuda(), wrong, axis=0)[::2].cpu(), x[[3, 0]])
    refused(modules["gather"].check_gpu, "an index of data is 99, outside axis 0 of size 37")
    modules["gather"].check_gpu()

    with tempfile.TemporaryDirectory() as place:
        spec = Path(place) / "twice.yaml"
        spec.write_text(TWICE)
        twice = opc.load(spec)
        close(twice(x.cuda()), 2 * x)
        try:
            import cupy
        except ImportError:
            print("CuPy is not installed: its arrays are left out")
        else:
            found = twice(cupy.arange(5, dtype="float32"))
            assert isinstance(found, cupy.ndarray)
            assert found.tolist() == [0, 2, 4, 6, 8]
    print(f"torch {torch.__version__}: all held on {torch.cuda.get_device_name()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
