"""Attributes at the ends of 64 bits, beside indices: what a loop runs over has no more than there is."""

from __future__ import annotations

import ast
import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from opc.analysis.shapes.inference import infer
from opc.backends.cuda.session import CudaSession
from opc.backends.cuda.toolkit import EMULATED, VARIABLE
from opc.emit.shapes.python import emit as shape_source
from opc.ir.op import Family, Op
from opc.pipeline import compile_text
from opc.testing.cases.arguments import TensorArg
from opc.testing.cases.calls import Case
from opc.testing.oracle.bounds import Array
from opc.testing.oracle.evaluation import evaluate
from tests.amounts import MANY
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz import device
from tests.fuzz.classes import HEAD
from tests.fuzz.isolated import isolated
from tests.fuzz.kernels import compile_together
from tests.fuzz.proof import reference

LEAST, GREATEST = -(2**63), 2**63 - 1
ENDS = (LEAST, LEAST + 1, -3, 0, 2, GREATEST - 1, GREATEST)
SIZE = 5

CONDITIONS = (
    *("i <= n", "i < n", "i > n", "i >= n", "n == i", "i - 3 < n", "i + 3 > n", "2*i < n", "N - 1 - i >= n", "i + N < n"),
    *("i // 2 < n", "i < n and i > m", "i < n or i >= m", "n < m", "i > n // 2", "i < 9223372036854775807"),
)
APART = (
    *("m - i >= n", "n - i < m", "i + n <= m", "i > n // 2 + m // 2", "n + m > i", "n - m <= i", "n == m - i", "N - n > i + m"),
    *("i*n < m", "m - i*n >= 0", "2*n >= m + i", "(i + n) // 2 < m", "n - 1 - i < m", "n != m + i", "n // 3 < i - m // 2"),
)
"""Conditions on two attributes, which no side of has."""
READS = (
    "i + n // 2",
    "i - n // 2",
    "n // 2 - i",
    "n // 4 - 2*i",
    "i*(n // 8)",
    "n // 8 * i + 1",
    "i*(n // 8) + m // 8",
    "N - 1 - i + n // 2",
)
FAR_READS = ("i + n", "i - n", "n - i", "i + n - m", "n - m - i", "n + m + i", "N - 1 - i + n", "(i + n) // 2", "2*i - n")

Run: TypeAlias = Callable[[Op, Mapping[str, Array], Mapping[str, Any], list[str]], Mapping[str, Array]]
"""What computes outputs of an op from its inputs and attributes."""

FORMS = {
    "chosen": ("T[N]", "{0}[i] = x[i] if {1} else 0", CONDITIONS + APART),
    "summed": ("T[]", "{0} = sum[i](x[i] if {1} else 0)", CONDITIONS + APART),
    "kept": ("T[N]", "{0}[j] = x[j] + max[i](x[i] if {1} else 0)", CONDITIONS + APART),
    "read": ("T[N]", "{0}[i] = pad(x[{1}], 0)", READS + FAR_READS),
    "windows": ("T[N]", "{0}[j] = sum[i:3](pad(x[{1} + j], 0))", READS + FAR_READS),
}


def family(name: str) -> Family:
    """Return an op of a form with an output for each text, and what is derived from it."""
    shape, form, texts = FORMS[name]
    outputs = ", ".join(f"y{k}: '{shape}'" for k in range(len(texts)))
    body = "\n  ".join(form.format(f"y{k}", text) for k, text in enumerate(texts))
    head = "inputs: {x: 'T[N]'}\nattributes: {n: int, m: int}\nrequire: [N > 0]\n"
    return compile_text(f"{HEAD.format(name=name)}{head}outputs: {{{outputs}}}\nkernel: |\n  {body}\n", name)


def wrong(one: Family, run: Run) -> Iterator[str]:
    """Yield what is wrong with the values of an op and its gradients where attributes are at the ends, and all sums fit."""
    x = np.array([1.0, -2.0, 4.0, -8.0, 16.0])
    texts, outputs = FORMS[one.name][2], [o.name for o in one.forward.outputs]
    assert one.backward is not None
    for n, m in itertools.product(ENDS, ENDS):
        attributes = {"n": n, "m": m}
        got = run(one.forward, {"x": x}, attributes, outputs)
        for output, text in zip(outputs, texts, strict=True):
            if not fits(text, n, m, 8 if one.name == "windows" else 0):
                continue
            want = EXPECTED[one.name](x.tolist(), text, n, m)
            if got[output].tolist() != want:
                yield f"{one.name}: {text}, n = {n}, m = {m}: {got[output].tolist()}, not {want}"
            if one.name == "kept":
                continue
            # What is linear in x is the sum of what its gradient is times x.
            known = {"x": x} | {f"d_{o}": np.full_like(got[o], o == output) for o in outputs}
            known = {o.name: known[o.name] for o in one.backward.inputs}
            gradient = run(one.backward, known, attributes, ["d_x"])["d_x"]
            if float(gradient @ x) != float(np.sum(want)):
                yield f"{one.name}: {text}, n = {n}, m = {m}: the gradient is {gradient.tolist()}"


def fits(text: str, n: int, m: int, room: int) -> bool:
    """Whether all sums and products in an expression fit into 64 bits, and as much more as `room` says, at every place."""
    parts = [e for e in ast.walk(ast.parse(text, mode="eval")) if isinstance(e, ast.BinOp)]
    compiled = [compile(ast.Expression(e), text, "eval") for e in parts]
    return all(LEAST + room <= said(c, i, n, m) <= GREATEST - room for c in compiled for i in (0, SIZE))


def said(text: Any, i: int, n: int, m: int) -> int:
    """Return what an expression or a condition says in numbers without end."""
    return int(eval(text, {"i": i, "n": n, "m": m, "N": SIZE}))


def inside(x: list[float], at: int) -> float:
    return x[at] if 0 <= at < len(x) else 0.0


EXPECTED: Mapping[str, Callable[[list[float], str, int, int], Any]] = {
    "chosen": lambda x, c, n, m: [v if said(c, i, n, m) else 0.0 for i, v in enumerate(x)],
    "summed": lambda x, c, n, m: sum(v if said(c, i, n, m) else 0.0 for i, v in enumerate(x)),
    "kept": lambda x, c, n, m: [w + max(v if said(c, i, n, m) else 0.0 for i, v in enumerate(x)) for w in x],
    "read": lambda x, e, n, m: [inside(x, said(e, i, n, m)) for i in range(SIZE)],
    "windows": lambda x, e, n, m: [sum(inside(x, said(e, i, n, m) + j) for i in range(3)) for j in range(SIZE)],
}


def in_numpy(one: Family) -> Run:
    """Return what computes by the NumPy references of a family."""
    run = reference(one)

    def call(op: Op, inputs: Mapping[str, Array], attributes: Mapping[str, Any], wanted: list[str]) -> Mapping[str, Array]:
        return run(op, Case("", op.name, {n: TensorArg(a) for n, a in inputs.items()}, attributes), wanted)

    return call


@pytest.mark.rotating
def test_beside_indices(tmp_path: Path) -> None:
    """In a choice of each element, in a sum, in a maximum; and as reads that may fall outside, in a row and in a window."""
    families = [family(name) for name in FORMS]
    library = compile_together(families, tmp_path, "-O0")
    found = [m for one in families for m in wrong(one, KernelLibrary(one, library).call)]
    assert "\n".join(found) == ""


@pytest.mark.rotating
@pytest.mark.parametrize("name", FORMS)
def test_in_references(name: str) -> None:
    one = family(name)
    assert "\n".join(wrong(one, in_numpy(one))) == ""


@pytest.mark.rotating
@pytest.mark.parametrize("name", FORMS)
def test_in_the_oracle(name: str) -> None:
    """Which knows of no ends."""

    def call(op: Op, inputs: Mapping[str, Array], attributes: Mapping[str, Any], wanted: list[str]) -> Mapping[str, Array]:
        return {n: np.rint(v.bounds.low) for n, v in evaluate(op, inputs, attributes, wanted=wanted).items()}

    assert "\n".join(wrong(family(name), call)) == ""


RULES = (
    *("n + N if n < 0 else n", "1 if n <= m else 2", "1 if n > N else 2", "1 if n == m else 2", "1 if n != m else 2"),
    *("n - m if n > m else m - n", "n // 2 if n > 0 else N - n", "9223372036854775807 if n == 0 else m", "n - minimum(n, m)"),
    *("1 if not (n < m or m < 0) else 3", "n + m - maximum(n, m)", "(n - m) // 2 + N", "3*n - 2*n", "N - n if n > m - N else 4"),
)
"""Sizes by two attributes, of which each is cut to what is between 0 and 9."""


def test_sizes(tmp_path: Path) -> None:
    """Rules of sizes are exact: only what comes out of them must fit. A kernel, the checker and Python have the same sizes."""
    shape = ", ".join(f"M{k}: 'minimum(maximum({rule}, 0), 9)'" for k, rule in enumerate(RULES))
    outputs = ", ".join(f"y{k}: 'T[M{k}]'" for k in range(len(RULES)))
    body = "\n  ".join(f"y{k}[i] = x[0] + i" for k in range(len(RULES)))
    head = f"inputs: {{x: 'T[N]'}}\nattributes: {{n: int, m: int}}\nshape: {{{shape}}}\nrequire: [N > 0]\n"
    one = compile_text(f"{HEAD.format(name='sized')}{head}outputs: {{{outputs}}}\nkernel: |\n  {body}\n", "sized")
    library = compile_together([one], tmp_path, "-O0")
    kernel, module = KernelLibrary(one, library), dict[str, Any]()
    exec(shape_source(one), module)
    names = [o.name for o in one.forward.outputs]
    for n, m in itertools.product(ENDS, ENDS):
        bounds = {"n": n, "m": m, "N": SIZE, "maximum": max, "minimum": min}
        want = [min(max(eval(rule, bounds), 0), 9) for rule in RULES]
        attributes = {"n": n, "m": m}
        found = kernel.call(one.forward, {"x": np.zeros(SIZE)}, attributes, names)
        assert [len(found[name]) for name in names] == want, attributes
        assert [shape for (shape,) in module["infer_shapes_sized"]((SIZE,), **attributes)] == want
        assert [shape for (shape,) in infer(one.forward, {"x": (SIZE,)}, attributes).outputs.values()] == want


def on_device(session: CudaSession, op: Op, inputs: Mapping[str, Array], attributes: Mapping[str, Any], wanted: list[str]) -> Any:
    return session.call(op.name, dict(inputs), dict(attributes), wanted)


def test_steps_beyond_the_last(tmp_path: Path) -> None:
    """What a recurrence reads behind, its gradient reads ahead: no index and such a step make up a number of 64 bits."""
    head = "inputs: {x: 'T[N]'}\nattributes: {k: {type: int, check: k > 0}}\noutputs: {h: 'T[N]'}\n"
    body = "kernel: |\n  h[t] = x[t] + pad(h[t - k], 0) / 2\n"
    one = compile_text(f"{HEAD.format(name='steps')}{head}{body}", "steps")
    library = compile_together([one], tmp_path, "-O0")
    assert one.backward is not None
    known = {"x": np.arange(1.0, 6.0), "d_h": np.arange(1.0, 6.0)}
    known = {o.name: known[o.name] for o in one.backward.inputs}

    def run(call: Run) -> list[str]:
        found = []
        for k in (1, 2, SIZE, GREATEST - SIZE, GREATEST - 1, GREATEST):
            gradient = call(one.backward, known, {"k": k}, ["d_x"])["d_x"].tolist()
            want = np.arange(1.0, 6.0)
            for t in range(SIZE - k)[::-1]:
                want[t] += want[t + k] / 2
            found += [f"k = {k}: {gradient}, not {want.tolist()}"] if gradient != want.tolist() else []
        return found

    assert isolated(lambda: run(KernelLibrary(one, library).call), 60) == []
    assert run(in_numpy(one)) == []


@pytest.mark.rotating
def test_on_a_device(tmp_path: Path) -> None:
    families = [family(name) for name in (FORMS if MANY else ("chosen", "summed"))]
    device.compile_together(families, tmp_path)

    def run() -> list[str]:
        os.environ[VARIABLE] = EMULATED
        found = []
        for one in families:
            session = CudaSession(one, tmp_path / one.name)
            found += list(wrong(one, partial(on_device, session)))
        return found

    assert "\n".join(isolated(run, 600)) == ""
