"""Calls an op in a torch for CPUs that is made to have two GPUs; started by `test_cuda.py` with a spec and a library.

The spec is that of the op `picked`: `y[n, d] = t[ids[n], d] * scale * w[d]`, where `w` may be absent.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from opc.backends.torch import emulated_gpu
from opc.backends.torch.emulated_gpu import to_cpu, to_gpu

# Torch asks what there is of CUDA when it is imported.
EMULATED = emulated_gpu.load(Path(sys.argv[2]))

import torch  # noqa: E402  # after the emulation
from torch import Tensor  # noqa: E402  # after the emulation

import opc  # noqa: E402  # after the emulation
from opc.build import builder  # noqa: E402  # after the emulation


def refused(call: Callable[[], Any], says: str) -> None:
    """Assert that a call is refused with a message."""
    found = ""
    try:
        call()
    except RuntimeError as error:
        found = str(error)
    assert says in found, found.splitlines()


def same(found: Tensor, expected: Tensor, index: int = 0) -> None:
    """Assert that a tensor on a GPU has the values of one on the CPU."""
    assert found.device == torch.device("cuda", index), found.device
    assert torch.equal(to_cpu(found), expected), (to_cpu(found), expected)


class Foreign:
    """An array on a GPU of a library that opc knows nothing of."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.tensor.device.index

    def __dlpack__(self, **_: Any) -> object:
        return torch.utils.dlpack.to_dlpack(self.tensor)

    def __array_namespace__(self) -> ModuleType:
        namespace = ModuleType("foreign")
        namespace.from_dlpack = Foreign
        return namespace


def main(spec: Path) -> None:
    op = opc.load(spec)
    picked = op.torch.picked
    t, w, c = torch.randn(5, 3), torch.randn(3), torch.randn(4, 3)
    ids = torch.tensor([3, 0, 3, 1])
    guards = (ctypes.c_int32 * 4).in_dll(EMULATED, "emulated_guards")
    gpu = [to_gpu(x) for x in (t, ids, w)]

    # Of kernels for GPUs nothing is known until they are there, which may be while the process goes on.
    refused(lambda: picked(*gpu), "picked: built without CUDA: run `opc build --backend cuda` on its spec")
    kernels = op._package / "build" / "libpicked_cuda.so"
    (built,) = builder.build_specs([spec], op._out, ["cuda"])
    assert built.ok
    made = kernels.read_bytes()
    source = hashlib.sha256(spec.read_bytes()).hexdigest().encode()
    assert source in made
    other = made.replace(source, source[::-1])
    for data, says in ((b"no library", "its kernels can't be loaded"), (other, "its kernels are not made from the same spec")):
        kernels.unlink()
        kernels.write_bytes(data)
        refused(lambda: picked(*gpu), f"picked: {says}")
    assert guards[:2] == [0, 0]
    kernels.unlink()
    same(op(*gpu), picked(t, ids, w))
    answer = op(*map(Foreign, gpu), scale=2.0)
    assert isinstance(answer, Foreign)
    same(answer.tensor, picked(t, ids, w, scale=2.0))

    # Values, results in given tensors, strides, an absent input, and the other GPU.
    expected = picked(t, ids, w, scale=2.0)
    same(picked(*gpu, scale=2.0), expected)
    out = torch.zeros(4, 3)
    assert picked(*gpu, scale=2.0, out=(there := to_gpu(out))) is there
    assert torch.equal(out, expected)
    wide = torch.stack([t, t], -1).flatten(-2)[..., ::2]
    same(picked(to_gpu(wide), *gpu[1:], scale=2.0), expected)
    same(picked(to_gpu(t, 1), to_gpu(ids, 1)), t[ids], 1)
    assert guards[0] == guards[1] > 3
    assert guards[2:] == [1, 1]

    # Devices and inputs that do not fit.
    refused(lambda: picked(gpu[0], ids, gpu[2]), "picked: t is on cuda:0, but ids is on cpu")
    refused(lambda: picked(t, gpu[1]), "picked: t is on cpu, but ids is on cuda:0")
    refused(lambda: picked(gpu[0], gpu[1], to_gpu(w, 1)), "picked: t is on cuda:0, but w is on cuda:1")
    refused(lambda: picked(*gpu, out=out), "picked: t is on cuda:0, but y is on cpu")
    refused(lambda: picked(gpu[0], gpu[1], to_gpu(w[:2])), "picked: D is 3 in t, but 2 in w")
    refused(lambda: picked(*gpu, out=to_gpu(out[:2])), "picked: the output y has shape")

    # Gradients of both orders, which take memory between kernels; forward mode, vmap.
    def gradients(given: list[Tensor], cotangent: Tensor) -> list[Tensor]:
        leaves = [given[0].detach().requires_grad_(), given[2].detach().requires_grad_()]
        y = picked(leaves[0], given[1], leaves[1], scale=2.0)
        first = torch.autograd.grad(y, leaves, cotangent, create_graph=True)
        return [*first, *torch.autograd.grad(first, leaves, [x.detach() for x in leaves], allow_unused=True)]

    for found, value in zip(gradients(gpu, to_gpu(c)), gradients([t, ids, w], c), strict=True):
        same(found.detach(), value.detach())
    pushed = [torch.func.jvp(partial(picked, ids=i), (x,), (x,))[1] for x, i in ((gpu[0], gpu[1]), (t, ids))]
    same(pushed[0], pushed[1])
    several = torch.randn(2, 5, 3)
    found = torch.vmap(picked, (0, None, None))(to_gpu(several), *gpu[1:])
    same(found, torch.stack([picked(x, ids, w) for x in several]))

    half = gpu[2].half()
    refused(lambda: picked(gpu[0], gpu[1], half), "float16")
    torch.set_autocast_enabled("cuda", True)
    same(picked(gpu[0], gpu[1], half), picked(t, ids, w.half().float()))
    torch.set_autocast_enabled("cuda", False)

    # An index outside: a call tells of it here, where no GPU is stopped. Once that is asked for, it is noted down instead.
    wrong = to_gpu(torch.tensor([3, 7, 0, -9]))
    for _ in range(2):
        refused(lambda: picked(gpu[0], wrong), "an index of t is 7, outside axis 0 of size 5")
        same(picked(*gpu, scale=2.0), expected)
    op.torch.check_gpu()
    op.torch.check_gpu("cuda:0")
    same(picked(*gpu, scale=2.0), expected)
    op.torch.check_gpu(0)
    found = to_cpu(picked(gpu[0], wrong))
    assert torch.equal(found[::2], t[[3, 0]])
    refused(op.torch.check_gpu, "an index of t is 7, outside axis 0 of size 5")
    op.torch.check_gpu()
    print("all held")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
