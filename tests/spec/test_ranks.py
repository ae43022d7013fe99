"""Specs of several ranks: what is written out is what a person would write for each rank, and files go by the name of each op."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opc
from opc.build import stamp
from opc.build.generate import prepare
from opc.build.unchanged import Records
from opc.build.wheels import settings
from opc.cli.console import find_specs, guarded
from opc.cli.main import app
from opc.diagnostics import Diagnostic, Source, Span, SpecError, Told
from opc.ir.printer import format_op
from opc.overloads import RankedOp
from opc.pipeline import compile_text, family_of, load_family
from opc.spec import files
from opc.spec.instances import numbers_of
from opc.spec.instantiate import Operand
from opc.spec.loader import load, loads

HEAD = "op: foo\ndomain: tests\nversion: 1\ndoc: Of {S} axes, or {T}.\ntypes: {T: floating}\n"
POOL = """\
op: pool
domain: tests
version: 1
doc: The greatest value of each window.
types: {T: floating}
ranks: {S: [1, 2, 3], O: S, K: S}
inputs: {x: 'T[N, *S]'}
attributes:
  size: {type: 'int[*S]', check: size > 0}
  stride: {type: 'int[*S]', default: 1, check: stride > 0}
outputs: {y: 'T[N, *O]'}
shape:
  K: size
  O: (S - K) // stride + 1
require: [S >= K]
kernel: |
  y[n, *O] = max[*K](x[n, *(O*stride + K)])
examples:
  - {x: [[1.0, 3.0, 2.0]], size: [2], y: [[3.0, 3.0]]}
  - {x: [[[1.0, 3.0], [2.0, 4.0]]], size: [2, 1], y: [[[2.0, 4.0]]]}
"""
POOL_2D = """\
op: pool2d
domain: tests
version: 1
doc: The greatest value of each window.
types: {T: floating}
inputs: {x: 'T[N, S0, S1]'}
attributes:
  size: {type: 'int[2]', check: size > 0}
  stride: {type: 'int[2]', default: [1, 1], check: stride > 0}
outputs: {y: 'T[N, O0, O1]'}
shape:
  K0: size[0]
  K1: size[1]
  O0: (S0 - K0) // stride[0] + 1
  O1: (S1 - K1) // stride[1] + 1
require: [S0 >= K0, S1 >= K1]
kernel: |
  y[n, o0, o1] = max[k0:K0, k1:K1](x[n, o0*stride[0] + k0, o1*stride[1] + k1])
"""


def test_a_rank_is_what_a_person_would_write() -> None:
    found = family_of(loads(POOL, "pool.yaml", number=2))
    written = compile_text(POOL_2D, "pool2d.yaml")
    assert [format_op(op) for op in found.ops] == [format_op(op) for op in written.ops]
    assert [dict(e.values)["size"] for e in found.examples] == [(2, 1)]


BODIES = [
    ("y[n, *O] = x[n, *O]", "y[n, o0:O0, o1:O1] = x[n, o0, o1]"),
    ("y[n, *O] = x[n, *(size(O) - 1 - O)]", "y[n, o0:O0, o1:O1] = x[n, O0 - 1 - o0, O1 - 1 - o1]"),
    ("a = b * (c) * (d) # *O", "a = b * (c) * (d) # *O"),
    ("a = b *(c)", "a = b *(c)"),
    ("a = sum[*O](x[*O] * stride[1])", "a = sum[o0:O0, o1:O1](x[o0, o1] * stride[1])"),
    ("a = mean[n, *O](x[*O])", "a = mean[n, o0:O0, o1:O1](x[o0, o1])"),
    ("sum[*O] = x[*O]\nb = sum[1] + 2", "sum[o0:O0, o1:O1] = x[o0, o1]\nb = sum[1] + 2"),
    ("a = all(*(O < stride))", "a = ((o0 < stride[0]) and (o1 < stride[1]))"),
    ("a = any(*(O < 2*O))", "a = ((o0 < 2*o0) or (o1 < 2*o1))"),
    ("a = prod(*stride) + sum(*(size(S)))", "a = ((stride[0]) * (stride[1])) + ((S0) + (S1))"),
    ("a = minimum(*stride)", "a = minimum((stride[0]), (stride[1]))"),
    ("a = minimum(b, size(*S))", "a = minimum(b, (S0 * S1))"),
    ("a = f(*(O), 1)", "a = f(o0, o1, 1)"),
    ("a = x[*(cast(int64, g[n, *O, axis(O)]))]", "a = x[cast(int64, g[n, o0, o1, 0]), cast(int64, g[n, o0, o1, 1])]"),
    ("a = x[*(unravel(S, i*b + O))]", "a = x[((i*b + o0) // (S1) % S0), ((i*b + o1) % S1)]"),
    ("a = prod(*(sum[O](O)))", "a = ((sum[o0:O0](o0)) * (sum[o1:O1](o1)))"),
    (
        "v[O] = O*stride # of each\nb[*O] = prod(*(v[O]))",
        "v0[o0:O0] = o0*stride[0] # of each\nv1[o1:O1] = o1*stride[1] # of each\nb[o0:O0, o1:O1] = ((v0[o0]) * (v1[o1]))",
    ),
    (
        "# Of each axis.\nn = size(S)\nm = n + 1\nb = x[*(m)]",
        "# Of each axis.\nn0 = S0\nn1 = S1\nm0 = n0 + 1\nm1 = n1 + 1\nb = x[m0, m1]",
    ),
    ("v[O, K] = (O +\n  K)", "v0[o0:O0, K] = (o0 +\n  K)\nv1[o1:O1, K] = (o1 +\n  K)"),
    ("a = w[position(*O), rank(S)]", "a = w[((o0)*O1 + o1), 2]"),
    ("a = g[*O, *(axis(O))]", "a = g[o0, o1, 0, 1]"),
    ("a[*S,\n  *O] = b", "a[s0:S0, s1:S1,\n  o0:O0, o1:O1] = b"),
    ("a = x[*(maximum(O, S) // stride)]", "a = x[maximum(o0, s0) // stride[0], maximum(o1, s1) // stride[1]]"),
    ("a = kind == '*S' and x.T", "a = kind == '*S' and x.T"),
    ("a = x[...] * position(...) ** size(*A)", "a = x[...] * position(...) ** size(*A)"),
]


def spec(body: str, rank: int | None = None, more: str = "") -> str:
    """Return the text of a spec of several ranks with this body."""
    block = "".join(f"\n  {line}" for line in body.split("\n"))
    return (
        f"{HEAD}ranks: {{S: [1, 2, 3], O: S}}\ninputs: {{x: 'T[N, *S]'}}\noutputs: {{y: 'T[N, *O]'}}\n"
        f"attributes: {{stride: {{type: 'int[*S]', default: 1}}}}\n{more}kernel: |{block}\n"
    )


@pytest.mark.parametrize(("body", "written"), BODIES, ids=[b for b, _ in BODIES])
def test_a_body_is_written_out(body: str, written: str) -> None:
    assert (loads(spec(body), "foo.yaml", number=2).model.kernel or "").rstrip("\n") == written


@pytest.mark.parametrize("body", [b for b, _ in BODIES], ids=[b for b, _ in BODIES])
def test_what_is_written_stands_where_it_comes_from(body: str) -> None:
    """Each name of the body written out points at the same name of the file, or at the star or group that it stands for."""
    read = loads(spec(body), "foo.yaml", number=2)
    text = read.text("kernel")
    for found in re.finditer(r"[A-Za-z_]\w*", text.value):
        span = text.span(found.start(), found.end())
        line = read.source.text.split("\n")[span.line - 1]
        there = line[span.column - 1 : span.end_column - 1]
        stands_for = {*re.findall(r"\w+", there)} | {w + str(i) for w in re.findall(r"\w+", there.lower()) for i in range(2)}
        same = found[0] in stands_for or found[0] in {w + str(i) for w in re.findall(r"\w+", there) for i in range(2)}
        assert same or found[0] in ("and", "or"), (found[0], there)


@pytest.mark.parametrize(("rank", "nested"), [(1, "minimum"), (3, "minimum(minimum((a[0]), (a[1])), (a[2]))")])
def test_a_minimum_of_all_axes_nests(rank: int, nested: str) -> None:
    text = spec("b = minimum(*a)").replace("stride", "a")
    found = loads(text, "foo.yaml", number=rank).model.kernel
    assert found == (f"b = {nested}\n" if rank == 3 else "b = (a[0])\n")


def test_the_other_parts_are_written_out() -> None:
    text = spec("y[n, *O] = x[n, *O]", more="onnx_name: Foo\nnames: {rknn: a::b}\ninplace: {y: x}\n")
    text += "shape: {O: S, P: prod(*(S + stride))}\nrequire: [S > stride, 'N > 1', prod(*S) > 2]\n"
    text += "reference: {onnx: 'Foo(x, p=[*stride, *(2*stride)])', torch: 'f{S}(x, stride) + f{T}'}\n"
    text += "gradient: {body: 'd_x[n, *S] = d_y[n, *S]'}\n"
    model = loads(text, "foo.yaml", number=2).model
    assert (model.op, model.onnx_name, model.names) == ("foo2d", "Foo2d", {"rknn": "a::b2d"})
    assert model.doc == "Of 2 axes, or {T}."
    assert model.inputs["x"].type == "T[N, S0, S1]"
    assert (model.attributes["stride"].type, model.attributes["stride"].default) == ("int[2]", [1, 1])
    assert model.shape == {"O0": "S0", "O1": "S1", "P": "((S0 + stride[0]) * (S1 + stride[1]))"}
    assert model.require == ["S0 > stride[0]", "S1 > stride[1]", "N > 1", "((S0) * (S1)) > 2"]
    assert model.reference is not None
    assert model.reference.onnx == ["Foo(x, p=[stride[0], stride[1], 2*stride[0], 2*stride[1]])"]
    assert model.reference.torch == "f2(x, stride) + f{T}"
    assert model.gradient.body == "d_x[n, s0:S0, s1:S1] = d_y[n, s0, s1]"


EXAMPLES = [
    ("{x: [1.0]}", 1, "T[*S]"),
    ("{x: [[1.0]]}", 2, "T[*S]"),
    ("{x: [[], []]}", 2, "T[*S]"),
    ("{x: [[1.0]], stride: [2, 1]}", 2, "T[*A, *S]"),
    ("{y: [[1.0]]}", 1, "T[*A, *S]"),
]


@pytest.mark.parametrize(("example", "rank", "shape"), EXAMPLES, ids=[f"{e} of {s}" for e, _, s in EXAMPLES])
def test_an_example_is_one_of_its_rank(example: str, rank: int, shape: str) -> None:
    text = spec("y = x").replace("'T[N, *S]'", f"'{shape}'") + f"examples: [{example}]\n"
    assert [r for r in (1, 2, 3) if loads(text, "foo.yaml", number=r).model.examples] == [rank]


def test_an_example_that_tells_no_rank_is_one_of_all() -> None:
    text = spec("y = x").replace("'T[N, *S]'", "'T[*A, *S]'").replace("y: 'T[N, *O]'", "y: 'T[*A, *S]'")
    text += "examples: [{x: [1.0]}]\n"
    assert [r for r in (1, 2, 3) if loads(text, "foo.yaml", number=r).model.examples] == [1, 2, 3]


def test_a_text_is_read_at_its_greatest_rank() -> None:
    assert loads(POOL, "pool.yaml").model.op == "pool3d"
    assert numbers_of(POOL) == ((1,), (2,), (3,))
    with pytest.raises(SpecError, match="the op is not of rank 4"):
        loads(POOL, "pool.yaml", number=4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pool.yaml").write_text(POOL)
    (tmp_path / "twice.yaml").write_text(
        HEAD.replace("foo", "twice") + "inputs: {x: 'T[...]'}\noutputs: {y: 'T[...]'}\nkernel: y = 2*x\n"
    )
    return tmp_path


def test_a_file_goes_by_the_name_of_each_op(folder: Path) -> None:
    file = folder / "pool.yaml"
    ops = [folder / f"pool{r}d.yaml" for r in (1, 2, 3)]
    assert files.apart(file) == ops
    assert [files.file_of(op) for op in ops] == [file] * 3
    assert files.file_of(folder / "pool4d.yaml") == folder / "pool4d.yaml"
    assert files.in_folder(folder) == find_specs([folder]) == [*ops, folder / "twice.yaml"]
    assert find_specs([folder], files=True) == [file, folder / "twice.yaml"]
    assert find_specs([ops[1]]) == [ops[1]]
    assert settings._specs(file) == ops
    families = [load_family(op) for op in ops]
    assert [f.name for f in families] == ["pool1d", "pool2d", "pool3d"]
    assert [f.source_name for f in families] == ["pool.yaml"] * 3
    assert len({f.source_hash for f in families}) == 3
    assert [files.digest(POOL.encode(), (r,)) for r in (1, 2, 3)] == [f.source_hash for f in families]
    assert [stamp.op_of(op, files.content(op)) for op in ops] == ["pool1d", "pool2d", "pool3d"]


def test_a_file_of_several_ranks_is_no_op(folder: Path) -> None:
    with pytest.raises(SpecError) as refused:
        load(folder / "pool.yaml")
    (found,) = refused.value.diagnostics
    assert (found.message, found.span.line) == ("the op is of several ranks", 6)
    assert found.hint == "name one of pool1d.yaml, pool2d.yaml, pool3d.yaml"


def test_a_copy_by_the_name_of_an_op_is_that_op(folder: Path) -> None:
    """So specs go into wheels and caches."""
    copy = folder / "copy" / "pool2d.yaml"
    copy.parent.mkdir()
    copy.write_text(POOL)
    assert files.apart(copy) == [copy]
    assert load_family(copy).source_hash == load_family(folder / "pool2d.yaml").source_hash


def test_packages_of_all_ranks_are_generated_once(folder: Path) -> None:
    out = folder / "out"
    assert guarded(lambda: app(["generate", str(folder), "-o", str(out), "--backend", "numpy"], prog_name="opc")) == 0
    assert sorted(p.name for p in out.iterdir() if (p / "manifest.json").exists()) == ["pool1d", "pool2d", "pool3d", "twice"]
    records = Records(out)
    assert all(records.find(spec, ["numpy"]) is not None for spec in files.in_folder(folder))
    (folder / "pool.yaml").write_text(POOL + "\n")
    found = [records.find(spec, ["numpy"]) is not None for spec in files.in_folder(folder)]
    assert found == [False, False, False, True]
    assert prepare(folder / "pool2d.yaml", out).family.name == "pool2d"


def test_ops_are_loaded_by_their_names_and_as_one_function(folder: Path) -> None:
    file = folder / "pool.yaml"
    file.write_text(POOL.replace("[1, 2, 3]", "[1, 2]").replace("floating", "float64"))
    pool2d, pool = opc.load(folder / "pool2d.yaml"), opc.load(file)
    x = np.array([[[1.0, 3.0], [2.0, 4.0]]])
    assert isinstance(pool, RankedOp)
    assert [*pool.members] == ["pool1d", "pool2d"]
    assert pool.pool2d is pool.members["pool2d"]
    assert "pool2d" in dir(pool)
    assert pool2d(x, size=[1, 2]).tolist() == pool(x, size=[1, 2]).tolist() == pool(size=[1, 2], x=x).tolist() == [[[3.0], [4.0]]]
    assert pool(x[0], [2]).tolist() == pool(x[0].tolist(), [2]).tolist() == pickle.loads(pickle.dumps(pool))(x[0], [2]).tolist()
    assert pool(x[0], [2]).tolist() == [[3.0], [4.0]]
    with pytest.raises(ValueError, match=r"^pool: x has 1 axis: pool1d takes 2, pool2d takes 3$"):
        pool(x[0, 0], size=[2])
    with pytest.raises(TypeError, match="'x'"):
        pool(size=[2])
    with pytest.raises(TypeError, match=r"^pool1d.*'size'"):
        pool(x[0])
    with pytest.raises(AttributeError, match="'RankedOp' object has no attribute 'pool3d'; its ops are pool1d and pool2d"):
        pool.pool3d(x)
    file.write_text(POOL.replace("O*stride + K", "O*strid + K"))
    with pytest.raises(SpecError) as refused:
        opc.load(file)
    assert [d.message for d in refused.value.diagnostics] == ["unknown name 'strid'"]


class Member:
    """Stands for the op of a rank: says which it is, whatever the operands."""

    inputs = ("x", "w")

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, x: Any, w: Any = None, size: Any = 1) -> str:
        """Do nothing else."""
        return self.__name__


def ranked(*axes: list[int | None]) -> RankedOp:
    members: Any = {(rank,): Member(f"f{rank}d") for rank, _ in enumerate(axes, 1)}
    inputs = {(rank,): [Operand(n, False, k) for n, k in zip("xw", counts)] for rank, counts in enumerate(axes, 1)}
    return RankedOp("f", members, inputs, {ranks: {"size": ranks[0]} for ranks in members}, ())


def test_the_length_of_a_list_tells_a_rank_that_operands_do_not() -> None:
    f = ranked([None, 3], [None, 4])
    x = np.zeros((2, 2))
    assert f(x, size=[1]) == "f1d"
    assert f(x, None, (1, 1)) == "f2d"
    assert f(x, np.zeros((1, 1, 1)), size=[1, 1]) == "f1d"
    with pytest.raises(ValueError, match=r"^f: the operands do not tell the rank: call one of f1d, f2d$"):
        f(x)


def test_operands_of_different_ranks_fit_no_op() -> None:
    with pytest.raises(ValueError, match=r"^f: no op of f1d and f2d takes x of 2 axes, w of 2 axes$"):
        ranked([2, 1], [3, 2])(np.zeros((2, 2)), np.zeros((2, 2)))


def test_a_mistake_is_told_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "pool.yaml").write_text(POOL.replace("O*stride + K", "O*strid + K"))
    assert guarded(lambda: app(["check", str(folder)], prog_name="opc")) == 1
    printed = capsys.readouterr()
    assert printed.err.count("unknown name 'strid'") == 1
    assert printed.out == "4 specs: 3 with mistakes\n"


COMMANDS = ["backends", "build --backend numpy", "generate", "generate --check", "test --backend numpy"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_tells_a_mistake_once(folder: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    file = folder / "pool.yaml"
    file.write_text(POOL.replace("O*stride + K", "O*strid + K"))
    out = [] if command == "backends" else ["-o", str(folder / "out")]
    assert guarded(lambda: app([*command.split(), str(file), *out], prog_name="opc")) == 1
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count("unknown name 'strid'") == 1


def test_two_mistakes_in_one_place_are_told() -> None:
    there = Span(Source("a.yaml", ""), 1, 1, 1, 2)
    first, second, third = (Diagnostic(text, there) for text in "abc")
    told = Told()
    assert told.new([first, second, Diagnostic("nowhere")]) == (first, second, Diagnostic("nowhere"))
    assert told.new([third, Diagnostic("nowhere")]) == (Diagnostic("nowhere"),)
