"""Codelets as loops: which form a statement takes, what its vertices are given, and what they refuse."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from opc.loops.printer import format_body
from opc.lower.build.context import UnsupportedForm
from opc.lower.lower import lower
from opc.lower.poplar.codelet_nodes import CodeletStage
from opc.lower.poplar.codelets import codelet_stage
from opc.pipeline import compile_text

GOLDEN = Path(__file__).parent / "golden"
HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ngradient: none\n"
TYPES, INDEX = "types: {T: [float16, float32]}\n", "types: {T: [float16, float32], I: [int64, int32]}\n"

BODIES = {
    "window": "inputs: {x: 'T[N, W]'}\noutputs: {y: 'T[N, W]'}\nkernel: 'y[n, i] = max[p:3](pad(x[n, i + p - 1], -inf))'\n",
    "gather": "inputs: {x: 'T[N, *A]', t: 'I[K]'}\noutputs: {y: 'T[K, *A]'}\nkernel: 'y[k, *A] = x[t[k], *A]'\n",
    "scatter": (
        "inputs: {x: 'T[K, D]', t: 'I[K]'}\nattributes: {V: {type: int, check: V >= 0}}\noutputs: {y: 'T[V, D]'}\n"
        "kernel: 'y[v, d] = sum[k](x[k, d] if t[k] == v else 0)'\n"
    ),
    "scan": "inputs: {x: 'T[N, D]'}\noutputs: {y: 'T[N, D]'}\nkernel: 'y[n, d] = sum[k:n + 1](x[k, d])'\n",
    "search": "inputs: {x: 'T[N, D]'}\noutputs: {y: 'int64[N]'}\nkernel: 'y[n] = argmax[d](x[n, d])'\n",
    "optional": (
        "inputs:\n  x: T[N, W]\n  b?: T[N]\noutputs: {y: 'T[N]'}\n"
        "kernel: 'y[n] = sum[i:W - 1](x[n, i] * x[n, i + 1]) + (b[n] if present(b) else 0)'\n"
    ),
}
BROADCAST = (
    "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float16, float32]}\nbroadcast: true\n"
    "inputs: {a: 'T[..., N]', b: 'T[..., N]'}\noutputs: {y: 'T[..., N]'}\nkernel: 'y[..., n] = a[..., n] * b[..., n]'\n"
)


def stage(spec: str, target: str = "y") -> CodeletStage:
    """Return the codelet of a statement of an op."""
    op = compile_text(HEAD + (INDEX if "'I[" in spec else TYPES) + spec, "f.yaml").forward
    (v,) = lower(op)
    (s,) = (s for s in v.case.op.body if s.target == target)
    return codelet_stage(v.case.op, s, f"f_{target}")


def lines(s: CodeletStage) -> Iterator[str]:
    """Yield what a codelet is, and its loops."""
    yield f"{s.name}: {s.form}, at {', '.join(f'{i}:{x}' for i, x in s.indices)}"
    for o in (*s.operands, s.target):
        reads = "; ".join(", ".join("?" if i is None else str(i) for i in r) for r in o.reads)
        yield f"  {o.name}: {o.type}{' kept' if o.kept else ''}[{', '.join(map(str, o.extents))}] read at {reads or 'nothing'}"
    yield f"  steps: {' + '.join('*'.join(w) for w in s.work)}"
    if s.split:
        yield f"  in parts along {', '.join(i for i, _ in s.split)}: {s.kind}"
    yield f"  fields: {', '.join(f'{f.kind} {f.name}' for f in s.fields)}"
    if s.serial:
        yield f"  not shared along {', '.join(s.indices[n][0] for n in s.serial)}"
    for what in (*s.refusals, *s.nonempty):
        yield f"  refuses {what}"
    yield from (f"  {line}" for line in format_body(s.kernel.body).splitlines())


@pytest.mark.parametrize("name", BODIES)
def test_golden(name: str) -> None:
    path = GOLDEN / f"codelet_{name}.txt"
    text = "\n".join(lines(stage(BODIES[name]))) + "\n"
    if os.environ.get("OPC_UPDATE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize(("name", "form"), [("window", "points"), ("scatter", "scatter"), ("scan", "scan"), ("search", "points")])
def test_form(name: str, form: str) -> None:
    assert stage(BODIES[name]).form == form


def test_a_sum_over_broadcast_axes_tells_a_groups_axes_apart() -> None:
    op = compile_text(BROADCAST, "f.yaml").backward
    assert op is not None
    (v,) = lower(op)
    s = codelet_stage(v.case.op, v.case.op.assignments["d_a"], "f_d_a")
    ((group, parts),) = s.parts
    assert (group, parts.kept) == ("...", "a")
    assert [str(x) for x in s.target.extents] == [parts.own.name, "N"]
    for o in s.operands:
        assert [str(x) for x in o.extents] == [parts.own.name, parts.rest.name, "N"]
    assert [str(x) for _, x in s.split] == [parts.rest.name]


def test_whole_numbers_beyond_32_bits_are_refused() -> None:
    spec = "inputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: 'y[n] = x[n] if n < 5000000000 else pad(x[n + 1], 0)'\n"
    with pytest.raises(UnsupportedForm, match="the number 5000000000, which has more than 32 bits"):
        stage(spec)


def test_an_index_is_compared_in_the_bits_that_it_is_computed_in() -> None:
    """What is computed from operands of int64 may pass the end of 32 bits before it is compared with the size of an axis."""
    s = stage("inputs: {x: 'T[N]', t: 'int64[K]'}\noutputs: {y: 'T[K]'}\nkernel: 'y[k] = x[t[k] * 2]'\n")
    assert "let at_0: int64 = " in format_body(s.kernel.body)
