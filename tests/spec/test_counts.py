"""Specs of several counts: each is the op that a person would write with so many operands, `opc.load` takes a list of them."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opc
from opc.build import stamp
from opc.cli.console import guarded
from opc.cli.main import app
from opc.diagnostics import SpecError
from opc.ir.printer import format_expr, format_op
from opc.overloads import VariadicOp
from opc.pipeline import compile_text, family_of, forward_op, load_family
from opc.spec import files
from opc.spec.loader import load, loads

HEAD = "op: foo\ndomain: tests\nversion: 1\ndoc: Of {x}.\ntypes: {T: floating}\n"
JOIN = """\
op: join
domain: tests
version: 1
doc: '{x} rows, one behind the other, each times a factor of its own.'
types: {T: [float32, float64]}
counts: {x: [2, 3, 8], N: x}
inputs: {x: 'T[*A, N, *B]'}
attributes:
  axis: {type: axis, dim: N, default: 0}
  scale: {type: 'float[*x]', default: 1.0}
outputs: {y: 'T[*A, L, *B]'}
shape: {L: sum(*N)}
require: [N >= 1]
kernel: |
  t[*A, n, *B] = x[*A, n, *B] * scale
  y[*A, i, *B] = pad(*(t[*A, i - before(N), *B]))
examples:
  - {x: [[1.0], [2.0, 3.0]], y: [1.0, 2.0, 3.0]}
  - {x: [[1.0], [2.0], [3.0]], scale: [1.0, 2.0, 3.0], y: [1.0, 4.0, 9.0]}
"""
JOIN_2 = """\
op: join2
domain: tests
version: 1
doc: 2 rows, one behind the other, each times a factor of its own.
types: {T: [float32, float64]}
inputs: {x0: 'T[*A, N0, *B]', x1: 'T[*A, N1, *B]'}
attributes:
  axis: {type: axis, dim: N0, default: 0}
  scale: {type: 'float[2]', default: [1.0, 1.0]}
outputs: {y: 'T[*A, L, *B]'}
shape: {L: N0 + N1}
require: [N0 >= 1, N1 >= 1]
kernel: |
  t0[*A, n, *B] = x0[*A, n, *B] * scale[0]
  t1[*A, n, *B] = x1[*A, n, *B] * scale[1]
  y[*A, i, *B] = pad(t0[*A, i, *B], t1[*A, i - N0, *B])
"""
CUT = """\
op: cut
domain: tests
version: 1
doc: A row in {y}.
types: {T: [float32, float64]}
counts: {y: [2, 3], P: y}
inputs: {x: 'T[N]'}
attributes: {sizes: {type: 'int[*y]', check: sizes >= 0}}
outputs: {y: 'T[P]'}
shape: {P: sizes}
require: [sum(*P) == N]
kernel: |
  y[i] = x[before(P) + i]
"""


def test_a_count_is_what_a_person_would_write() -> None:
    found, written = family_of(loads(JOIN, "join.yaml", number=2)), compile_text(JOIN_2, "join2.yaml")
    assert [format_op(op) for op in found.ops] == [format_op(op) for op in written.ops]
    assert [dict(e.values)["x1"] for e in found.examples] == [[2.0, 3.0]]


BODIES = [
    ("y = sum(*x) / count(x)", "y = ((x0) + (x1) + (x2)) / 3"),
    ("y = prod(*(x[0] ** number(x)))", "y = ((x0[0] ** 0) * (x1[0] ** 1) * (x2[0] ** 2))"),
    ("y = minimum(*(x))", "y = minimum(minimum((x0), (x1)), (x2))"),
    ("y[i] = pad(*(x[i - before(N)]))", "y[i] = pad(x0[i - 0], pad(x1[i - (N0)], x2[i - (N0 + N1)]))"),
    ("y[i] = pad(*(x[i]), w[i] + 1)", "y[i] = pad(x0[i], pad(x1[i], pad(x2[i], w[i] + 1)))"),
    ("y = f(*x, *(x * k), *k, k[1])", "y = f(x0, x1, x2, x0 * k[0], x1 * k[1], x2 * k[2], k[0], k[1], k[2], k[1])"),
    (
        "t = x * w\ny = sum(*(t + before(k)))",
        "t0 = x0 * w\nt1 = x1 * w\nt2 = x2 * w\ny = ((t0 + 0) + (t1 + (k[0])) + (t2 + (k[0] + k[1])))",
    ),
]


def spec(body: str) -> str:
    """Return the text of a spec of two and three operands with this body."""
    block = "".join(f"\n  {line}" for line in body.split("\n"))
    return (
        f"{HEAD}counts: {{x: [2, 3], N: x}}\ninputs: {{x: 'T[N]', w: 'T[M]'}}\noutputs: {{y: 'T[M]'}}\n"
        f"attributes: {{k: {{type: 'int[*x]', default: 1}}}}\nkernel: |{block}\n"
    )


@pytest.mark.parametrize(("body", "written"), BODIES, ids=[b for b, _ in BODIES])
def test_a_body_is_written_out(body: str, written: str) -> None:
    assert (loads(spec(body), "foo.yaml").model.kernel or "").rstrip("\n") == written


def test_the_other_parts_are_written_out() -> None:
    text = spec("y = w").replace("w: 'T[M]'", "'v?': 'T[M]'").replace("N: x}", "N: x, v: x}", 1)
    text += "onnx_name: Foo\nnames: {rknn: a::b}\nshape: {M: sum(*N)}\nrequire: [N > k, prod(*N) > 2]\n"
    text += "reference: {onnx: 'Foo(*x, p=[*k])', torch: 'f{x}([*x])'}\n"
    text += "gradient: {saves: [y], body: 'd_x = d_y * number(x)'}\n"
    model = loads(text, "foo.yaml", number=2).model
    assert (model.op, model.onnx_name, model.names, model.doc) == ("foo2", "Foo2", {"rknn": "a::b2"}, "Of 2.")
    assert {n: o.type for n, o in model.inputs.items()} == {"x0": "T[N0]", "x1": "T[N1]", "v0?": "T[M]", "v1?": "T[M]"}
    assert (model.attributes["k"].type, model.attributes["k"].default) == ("int[2]", [1, 1])
    assert model.shape == {"M": "((N0) + (N1))"}
    assert model.require == ["N0 > k[0]", "N1 > k[1]", "((N0) * (N1)) > 2"]
    assert model.reference is not None
    assert model.reference.onnx == ["Foo(x0, x1, p=[k[0], k[1]])"]
    assert model.reference.torch == "f2([x0, x1])"
    assert (model.gradient.body, model.gradient.saves) == ("d_x0 = d_y * 0\nd_x1 = d_y * 1", ["y"])


def test_outputs_and_memory_of_each() -> None:
    text = CUT.replace("inputs: {x: 'T[N]'}", "inputs: {x: 'T[N]', v: 'T[P]'}").replace("P: y}", "P: y, v: y}")
    text = (
        text.replace("x[before(P) + i]", "x[before(P) + i] + v[i]")
        + "inplace: {y: v}\ngradient: {saves: [y], body: 'd_v[i] = d_y[i]'}\n"
    )
    model = loads(text, "cut.yaml", number=2).model
    assert model.inplace == {"y0": "v0", "y1": "v1"}
    assert model.gradient.saves == ["y0", "y1"]
    assert model.shape == {"P0": "sizes[0]", "P1": "sizes[1]"}
    assert model.kernel == "y0[i] = x[0 + i] + v0[i]\ny1[i] = x[(P0) + i] + v1[i]\n"


def test_a_chain_of_reads_is_proved_without_tests() -> None:
    """Which of eight operands an element comes from says where the others end; a gradient asks nothing."""
    family = family_of(loads(JOIN, "join.yaml", number=8))
    assert family.backward is not None
    reads = [format_expr(s.value) for s in family.backward.body if s.target.startswith("d_x")]
    assert reads
    assert not any(" if " in read for read in reads)


def test_a_file_goes_by_the_name_of_each_op(tmp_path: Path) -> None:
    file = tmp_path / "join.yaml"
    file.write_text(JOIN)
    ops = [tmp_path / f"join{n}.yaml" for n in (2, 3, 8)]
    assert files.apart(file) == files.in_folder(tmp_path) == ops
    assert [files.file_of(op) for op in ops] == [file] * 3
    assert files.file_of(tmp_path / "join4.yaml") == tmp_path / "join4.yaml"
    assert [load_family(op).name for op in ops] == ["join2", "join3", "join8"]
    assert [stamp.op_of(op, files.content(op)) for op in ops] == ["join2", "join3", "join8"]
    with pytest.raises(SpecError) as refused:
        load(file)
    (found,) = refused.value.diagnostics
    assert (found.message, found.hint) == ("the op is of several counts", "name one of join2.yaml, join3.yaml, join8.yaml")
    with pytest.raises(SpecError, match="the op is not of count 4"):
        loads(JOIN, "join.yaml", number=4)


def test_a_file_whose_name_ends_in_a_digit_is_no_member(tmp_path: Path) -> None:
    """`net2.yaml` with `op: net2` is the file of all its ops; a copy by the name of one, as caches have, is that one."""
    file = tmp_path / "net2.yaml"
    file.write_text(CUT.replace("op: cut", "op: net2"))
    assert [forward_op(load(op)).name for op in files.apart(file)] == ["net22", "net23"]
    copy = tmp_path / "copy" / "net22.yaml"
    copy.parent.mkdir()
    copy.write_text(file.read_text())
    assert files.apart(copy) == [copy]
    assert forward_op(load(copy)).name == "net22"


def test_operands_come_in_a_list(tmp_path: Path) -> None:
    for name, text in (("join", JOIN.replace(", 8]", "]")), ("cut", CUT)):
        (tmp_path / f"{name}.yaml").write_text(text)
    join, cut = opc.load(tmp_path / "join.yaml"), opc.load(tmp_path / "cut.yaml")
    assert isinstance(join, VariadicOp)
    assert isinstance(cut, VariadicOp)
    assert [*join.members] == ["join2", "join3"]
    assert str(inspect.signature(join)).startswith("(x, axis")
    a, b = np.ones((2, 1)), np.zeros((2, 2))
    assert join([a, b], 1).tolist() == join(x=(a, b), axis=-1).tolist() == [[1.0, 0.0, 0.0]] * 2
    assert join([a, a, a], scale=[1.0, 2.0, 3.0]).tolist() == [[1.0]] * 2 + [[2.0]] * 2 + [[3.0]] * 2
    assert [y.tolist() for y in pickle.loads(pickle.dumps(cut))(np.arange(3.0), [1, 2])] == [[0.0], [1.0, 2.0]]
    with pytest.raises(ValueError, match=r"^join: x has 4: join2 has 2, join3 has 3$"):
        join([a] * 4)
    with pytest.raises(TypeError, match=r"^join: x is a list of operands, not ndarray$"):
        join(a)
    with pytest.raises(TypeError, match=r"^join\(\) missing a required argument: 'x'$"):
        join(axis=1)
    with pytest.raises(ValueError, match=r"^cut: nothing tells how many there are: call one of cut2, cut3$"):
        cut(np.arange(3.0))


class Member:
    """Stands for the op of a count: says which it is, and what it was given."""

    inputs = ("x0", "x1", "w0", "w1")

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, x0: Any, x1: Any, w0: Any, w1: Any, k: Any = 1) -> tuple[Any, ...]:
        """Do nothing else."""
        return self.__name__, x0, x1, w0, w1, k


def test_lists_hold_as_many() -> None:
    from opc.spec.instantiate import Operand

    members: Any = {2: Member("f2")}
    f = VariadicOp("f", members, {2: [Operand("x", True, None), Operand("w", True, None)]}, ())
    assert f([1, 2], [3, 4], 5) == f(w=[3, 4], x=[1, 2], k=5) == ("f2", 1, 2, 3, 4, 5)
    with pytest.raises(ValueError, match=r"^f: x has 2, w has 1, but there are as many of each$"):
        f([1, 2], [3])


def test_a_mistake_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where it ends further behind for more operands."""
    (tmp_path / "join.yaml").write_text(JOIN.replace("[float32, float64]", "any").replace("pad(*(t", "sum(*(t"))
    assert guarded(lambda: app(["check", str(tmp_path)], prog_name="opc")) == 1
    printed = capsys.readouterr()
    assert printed.err.count("error:") == 1, printed.err
    assert printed.out == "3 specs: 3 with mistakes\n"
