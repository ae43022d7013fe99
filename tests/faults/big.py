"""Tensors of more than 2^31 elements: a point op, a row op, a gather and a reduction, right at the first and the last elements.

Elements are of one byte or two, so that an input and an output fit in 24 GiB. Each op runs in a process of its own, one after the
other, and only where the machine has that much memory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import opc
from tests.faults.tally import Fault, Tally

COUNT = 2**31 + 4099
"""How many elements: more than a 32-bit integer counts, signed, and no multiple of a vector's width."""

_HEAD = "domain: tests.faults\nversion: 1\ndoc: Large.\ngradient: none\n"
SPECS = {
    "point": "types: {T: [int8]}\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: y[n] = x[n] + 1\n",
    "row": "types: {T: [int8]}\ninputs: {x: 'T[M, N]'}\noutputs: {y: 'T[M, N]'}\nkernel: y[m, n] = x[m, n] - min[k](x[m, k])\n",
    "gather": (
        "types: {T: [int8]}\ninputs: {x: 'T[N]', at: 'int64[K]'}\noutputs: {y: 'T[K]'}\nrequire: [N > 0]\n"
        "out_of_range: error\nkernel: y[k] = x[at[k]]\n"
    ),
    "reduction": "types: {T: [int8]}\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[]'}\nkernel: y = max[n](x[n])\n",
}
BYTES = {"point": 2 * COUNT, "row": 2 * COUNT, "gather": COUNT, "reduction": COUNT}
"""The bytes of inputs and outputs on NumPy; a framework may hold them twice."""

BACKENDS = ("numpy", "torch", "paddle", "jax")
"""Those whose tensors are counted in 64 bits and lie in this machine's memory; the op's own `opc.load` answers them."""


def available() -> int:
    """Return how many bytes of memory are free."""
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) << 10


def _point(run: Callable[..., Any], count: int) -> list[str]:
    x = np.zeros(count, np.int8)
    x[-3:] = (5, 6, 7)
    y = run(x)
    return [] if y.shape == (count,) and y[-4:].tolist() == [1, 6, 7, 8] and y[:2].tolist() == [1, 1] else [f"{y[-4:]}"]


def _row(run: Callable[..., Any], count: int) -> list[str]:
    rows = 3
    columns = count // rows
    x = np.zeros((rows, columns), np.int8)
    x[-1, -2:] = (-5, 9)
    y = run(x)
    found = [y[-1, 0], *y[-1, -2:], y[0, 0], y[-2, -1]]
    return [] if [int(v) for v in found] == [5, 0, 14, 0, 0] else [f"{found}"]


def _gather(run: Callable[..., Any], count: int) -> list[str]:
    x = np.zeros(count, np.int8)
    places = [0, count - 1, 2**31 - 1, 2**31, count - 2] if count > 2**31 else [0, count - 1, 1, 2, count - 2]
    x[places] = (1, 2, 3, 4, 5)
    found = run(x, np.array(places, np.int64)).tolist()
    return [] if found == [1, 2, 3, 4, 5] else [f"{found}"]


def _reduction(run: Callable[..., Any], count: int) -> list[str]:
    x = np.zeros(count, np.int8)
    x[-1] = 9
    found = int(run(x))
    return [] if found == 9 else [f"{found}"]


CASES: dict[str, Callable[[Callable[..., Any], int], list[str]]] = {
    "point": _point,
    "row": _row,
    "gather": _gather,
    "reduction": _reduction,
}


def _through(op: Any, backend: str) -> Callable[..., Any]:
    """Return a function of arrays that calls the op with a framework's tensors, which share their memory where they can."""
    if backend == "numpy":
        return lambda *arrays: op(*arrays)
    if backend == "torch":
        import torch

        return lambda *arrays: op(*map(torch.from_numpy, arrays)).numpy()
    if backend == "paddle":
        import paddle

        return lambda *arrays: op(*map(paddle.to_tensor, arrays)).numpy()
    if backend == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        return lambda *arrays: np.asarray(op(*map(jax.numpy.asarray, arrays)))
    raise ValueError(backend)


@contextmanager
def _spec(name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"large_{name}.yaml"
        path.write_text(f"op: large_{name}\n{_HEAD}{SPECS[name]}")
        yield path


def case(name: str, backend: str, count: int = COUNT) -> list[str]:
    """Run one op on tensors of `count` elements on a backend; return what is wrong."""
    with _spec(name) as path:
        return CASES[name](_through(opc.load(path), backend), count)


def _isolated(name: str, backend: str, count: int) -> list[str]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = "\n".join(case(name, backend, count))
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return [f"ends with {code}"] if code else [said] if said else []


def run(backends: tuple[str, ...] = ("numpy", "torch"), count: int = COUNT) -> Tally:
    """Run every op on each backend, where there is memory for it."""
    tally = Tally("big")
    for backend in backends:
        for name in CASES:
            needed = int(BYTES[name] * count / COUNT * (1 if backend == "numpy" else 2)) + (1 << 30)
            if needed > available():
                tally.counts[f"{backend}: no memory for {name}"] += 1
                continue
            wrong = _isolated(name, backend, count)
            tally.counts[f"{backend}: {name}"] += 1
            command = f"python -m tests.faults big --backends {backend}"
            for one in wrong:
                tally.add(Fault(f"{backend}: {name}: {one.splitlines()[0][:100]}", one, command))
    tally.measured["elements"] = f"{count:,}"
    return tally
