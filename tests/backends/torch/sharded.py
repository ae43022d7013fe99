"""Runs built packages on DTensors in one of two processes over gloo; started by `test_sharding.py`.

Arguments: rank, the file the processes meet by, the folder of the packages. Writes a line of JSON for each case to standard
output: what differs from the call on whole tensors, and the collectives of the forward and of the backward call.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

DEVICES = 2


@dataclass(frozen=True)
class Call:
    """One call: the op, its arguments (tensors to differentiate where they are floating), and the placement of each tensor."""

    name: str
    op: str
    tensors: tuple[Tensor | None, ...]
    placements: tuple[Any, ...]
    attributes: dict[str, Any]
    compiled: bool = False


def calls() -> list[Call]:
    from torch.distributed.tensor import Replicate, Shard

    torch.manual_seed(5)
    whole, zero, one, last = Replicate(), Shard(0), Shard(1), Shard(-1)

    def some(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=torch.float64)

    ids = torch.randint(0, 11, (6, 3))
    x, w, b = some(6, 4), some(8, 4), some(8)
    return [
        Call("elementwise", "leaky_relu", (some(5, 3),), (zero,), {"alpha": 0.3}),
        Call("elementwise-default", "leaky_relu", (some(5, 3),), (one,), {}),
        Call("broadcast", "add", (some(6, 4), some(6, 4)), (zero, zero), {}),
        Call("broadcast-row", "add", (some(6, 4), some(4)), (zero, whole), {}),
        Call("broadcast-both", "add", (some(6, 1), some(1, 4)), (zero, whole), {}),
        Call("broadcast-columns", "add", (some(6, 4), some(4)), (one, zero), {}),
        Call("softmax-batch", "softmax", (some(6, 5),), (zero,), {}),
        Call("softmax-behind", "softmax", (some(3, 5, 4),), (Shard(2),), {"axis": 1}),
        Call("softmax-along", "softmax", (some(6, 4),), (one,), {"axis": 1}),
        Call("new-axis-ahead", "unsqueeze", (some(3, 4),), (one,), {"axis": 1}),
        Call("new-axis-behind", "unsqueeze", (some(3, 4, 5),), (one,), {"axis": -2}),
        Call("layer_norm", "layer_norm", (some(4, 3, 8), some(8), some(8)), (zero, whole, whole), {}),
        Call("layer_norm-plain", "layer_norm", (some(4, 3, 8), None, None), (one, None, None), {}),
        Call("linear-batch", "linear", (x, w, b), (zero, whole, whole), {}),
        Call("linear-column", "linear", (x, w, b), (whole, zero, zero), {}),
        Call("linear-row", "linear", (x, w, None), (one, one, None), {}),
        Call("linear-row-bias", "linear", (x, w, b), (one, one, whole), {}),
        Call("embedding-batch", "embedding", (ids, some(11, 4)), (zero, whole), {}),
        Call("embedding-columns", "embedding", (ids, some(11, 4)), (whole, last), {}),
        Call("compiled", "leaky_relu", (some(6, 4),), (zero,), {"alpha": 0.3}, compiled=True),
    ]


def results(outputs: Any) -> list[Tensor]:
    """Return the floating outputs as a list."""
    return [o for o in (outputs if isinstance(outputs, tuple) else (outputs,)) if o is not None]


def run(call: Call, mesh: Any) -> dict[str, Any]:
    from torch.distributed.tensor import distribute_tensor
    from torch.distributed.tensor.debug import CommDebugMode

    function = getattr(import_module(f"{call.op}.torch"), call.op)
    whole = [None if t is None else t.clone().requires_grad_(t.is_floating_point()) for t in call.tensors]
    want = results(function(*whole, **call.attributes))
    cotangents = [torch.randn(o.shape, dtype=o.dtype, generator=torch.Generator().manual_seed(n)) for n, o in enumerate(want)]
    torch.autograd.backward(want, cotangents)

    spread = [
        None if t is None else distribute_tensor(t, mesh, [p]).requires_grad_(t.is_floating_point())
        for t, p in zip(call.tensors, call.placements)
    ]
    if call.compiled:
        function = torch.compile(function, fullgraph=True, backend="aot_eager")
        function(*[None if t is None else t.detach() for t in spread], **call.attributes)
    forward, backward = CommDebugMode(), CommDebugMode()
    # The mode counts calls that dispatch; dynamo does not compile under it.
    with nullcontext() if call.compiled else forward:
        got = results(function(*spread, **call.attributes))
    seeds = [distribute_tensor(c, mesh, [_plain(o.placements[0])]) for c, o in zip(cotangents, got)]
    with nullcontext() if call.compiled else backward:
        torch.autograd.backward(got, seeds)
    wrong = []
    pairs = [("output", o, v) for o, v in zip(want, got)]
    inputs = [(n, a.grad, s.grad) for n, (a, s) in enumerate(zip(whole, spread)) if a is not None and s is not None]
    pairs += [(f"gradient {n}", a, s) for n, a, s in inputs if a is not None]
    for label, expected, found in pairs:
        value = None if found is None else found.full_tensor()
        if value is None or not torch.allclose(expected, value, rtol=1e-12, atol=1e-12):
            wrong.append(f"{label}: {expected} against {value}")
    return {
        "name": call.name,
        "wrong": wrong,
        "placements": [str(o.placements[0]) for o in got],
        "gradients": [None if s is None or s.grad is None else str(s.grad.placements[0]) for s in spread],
        "forward": _count(forward),
        "backward": _count(backward),
    }


def _plain(placement: Any) -> Any:
    """Return the placement a cotangent has: whole where the output is a partial sum."""
    from torch.distributed.tensor import Replicate

    return Replicate() if placement.is_partial() else placement


def _count(mode: Any) -> dict[str, int]:
    return {str(op).split(".")[-1]: count for op, count in mode.get_comm_counts().items()}


def main(rank: int, meeting: str, folder: str) -> None:
    import torch.distributed as dist

    sys.path.insert(0, folder)
    # Half of the packages are there before DTensor, half after.
    for op in ("leaky_relu", "add", "softmax"):
        import_module(f"{op}.torch")
    eager = "torch.distributed.tensor" in sys.modules
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=DEVICES)
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (DEVICES,))
    found = [{"name": "import", "eager": eager}] + [run(call, mesh) for call in calls()]
    dist.destroy_process_group()
    for line in found:
        print(json.dumps(line))
    sys.stdout.flush()
    # Gloo's threads may still let go of tensors, for which they take Python's lock: while Python shuts down, that ends the
    # process by SIGABRT now and then (pytorch/pytorch#179291). Everything is said; there is nothing to shut down for.
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
