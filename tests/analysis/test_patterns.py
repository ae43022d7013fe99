"""What is recognised in bodies: in small ones here, and in those of `specs/`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opc.analysis.patterns import Contraction, ScanPattern, ScatterPattern, contraction, scan, scatter
from opc.analysis.windows import Split, convolution, divisor, pooling, split_reduction
from opc.ir.affine import Affine, AttrInt, Dim
from opc.ir.expr import Axis, Reduce, walk
from opc.ir.op import Op
from opc.ir.printer import format_expr
from opc.pipeline import compile_text, load_family

SPECS = Path(__file__).parents[2] / "specs"
HEAD = "op: probe\ndoc: A test.\ndomain: opc.test\nversion: 1\ntypes: {T: floating}\ngradient: none\n"


def op_of(inputs: str, outputs: str, kernel: str, more: str = "") -> Op:
    text = f"{HEAD}inputs: {{{inputs}}}\noutputs: {{{outputs}}}\n{more}kernel: |\n  {kernel}\n"
    return compile_text(text, "probe.yaml").forward


def reductions(op: Op) -> Iterator[tuple[Any, dict[str, Affine], Reduce]]:
    """Yield each outermost reduction with the indices around it and their extents."""
    for s in op.body:
        dims = op.operand(s.target).dims
        extents = {i: d for i, d in zip(s.indices, dims, strict=True) if isinstance(i, str) and isinstance(d, Affine)}
        for node in walk(s.value):
            if isinstance(node, Reduce):
                yield s.indices, extents, node
                break


def first(op: Op) -> tuple[Any, dict[str, Affine], Reduce]:
    return next(reductions(op))


def spec(name: str, suffix: str = "") -> Op:
    return next(op for op in load_family(SPECS / f"{name}.yaml").ops if op.name == name + suffix)


# ---- contractions --------------------------------------------------------------------------------------------------------


CONTRACTIONS = {
    "matrix product": ('a: "T[N, K]", b: "T[K, M]"', 'y: "T[N, M]"', "y[n, m] = sum[k](a[n, k] * b[k, m])", "ac,bc->ab"),
    "leading axes": (
        'x: "T[..., K]", w: "T[M, K]"',
        'y: "T[..., M]"',
        "y[..., m] = sum[k](x[..., k] * w[m, k])",
        "...c,bc->...b",
    ),
    "over a group": ('x: "T[..., K]", g: "T[..., M]"', 'y: "T[K, M]"', "y[k, m] = sum[...](x[..., k] * g[..., m])", "ac,bc->ab"),
    "outer of sums": ('a: "T[N, K]", b: "T[K]"', 'y: "T[N]"', "y[n] = sum[k](a[n, k] * 2 * b[k])", None),
    "one operand": ('a: "T[N, K]"', 'y: "T[N]"', "y[n] = sum[k](a[n, k])", None),
    "a maximum": ('a: "T[N, K]", b: "T[K, M]"', 'y: "T[N, M]"', "y[n, m] = max[k](a[n, k] * b[k, m])", None),
}


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_contractions(name: str) -> None:
    inputs, outputs, kernel, equation = CONTRACTIONS[name]
    frame, _, e = first(op_of(inputs, outputs, kernel))
    found = contraction(e)
    assert (found.equation(frame) if found else None) == equation


def test_roles_are_those_of_a_product_of_matrices() -> None:
    _, _, e = first(op_of('q: "T[B, I, E]", k: "T[B, J, E]"', 'y: "T[B, I, J]"', "y[b, i, j] = sum[e](q[b, i, e] * k[b, j, e])"))
    found = contraction(e)
    assert isinstance(found, Contraction)
    assert found.roles is not None
    names = [set(found.roles.batch), set(found.roles.rows) | set(found.roles.columns), set(found.roles.summed)]
    assert names == [{"b"}, {"i", "j"}, {"e"}]


def test_a_condition_belongs_to_the_factor_that_runs_over_its_indices() -> None:
    kernel = "y[n, m] = sum[k](a[n, k] * b[k, m] if k <= n else 0)"
    _, _, e = first(op_of('a: "T[N, K]", b: "T[K, M]"', 'y: "T[N, M]"', kernel))
    found = contraction(e)
    assert found is not None
    assert found.is_conditional
    assert [len(f.conditions) for f in found.factors if "n" in f.entries] == [1]


def test_a_condition_over_both_factors_indices_makes_it_none() -> None:
    kernel = "y[n, m] = sum[k](a[n, k] * b[k, m] if m <= n else 0)"
    assert contraction(first(op_of('a: "T[N, K]", b: "T[K, M]"', 'y: "T[N, M]"', kernel))[2]) is None


# ---- scans ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "bound", "reverse"),
    [
        ("y[i] = sum[k:i + 1](x[k])", "i + 1", False),
        ("y[i] = sum[k:i](x[k])", "i", False),
        ("y[i] = max[k:i + 1](x[k])", "i + 1", False),
        ("y[i] = sum[k:N](x[k] if k >= i else 0)", "i", True),
        ("y[i] = sum[k:N](x[k] if k < i else 0)", "i", False),
        ("y[i] = sum[k:N - i](x[k + i])", "i", True),
    ],
)
def test_scans(kernel: str, bound: str, reverse: bool) -> None:
    _, extents, e = first(op_of('x: "T[N]"', 'y: "T[N]"', kernel))
    found = scan(e, extents, lambda extent, size: size)
    assert isinstance(found, ScanPattern)
    assert (str(found.bound), found.reverse, format_expr(found.body)) == (bound, reverse, "x[k]")


@pytest.mark.parametrize("kernel", ["y[i] = sum[k:i + 1](x[k] * x[i])", "y[i] = sum[k:N](x[k])", "y[i] = sum[k:N - i](x[k])"])
def test_what_is_no_scan_of_one_kind(kernel: str) -> None:
    _, extents, e = first(op_of('x: "T[N]"', 'y: "T[N]"', kernel))
    found = scan(e, extents, lambda extent, size: size)
    assert found is None or not found.reverse


def test_a_scan_from_one_place_on_ends_where_its_size_does() -> None:
    _, extents, e = first(op_of('x: "T[N]", z: "T[M]"', 'y: "T[M]"', "y[i] = sum[k:N - i](pad(x[k + i], 0))"))
    found = scan(e, extents, lambda extent, size: Affine.of(Dim("N")))
    assert isinstance(found, ScanPattern)
    assert (str(found.size), str(found.bound), found.reverse, format_expr(found.body)) == ("N", "i", True, "pad(x[k], 0)")


# ---- scatters ------------------------------------------------------------------------------------------------------------


def test_a_scatter_by_an_index_tensor() -> None:
    more = "attributes: {rows: {type: int, check: rows > 0}}\nshape: {V: rows}\n"
    kernel = "y[v, d] = sum[n](x[n, d] if ids[n] == v else 0)"
    frame, _, e = first(op_of('x: "T[N, D]", ids: "int64[N]"', 'y: "T[V, D]"', kernel, more))
    found = scatter(e, frame)
    assert isinstance(found, ScatterPattern)
    assert (found.indices, [format_expr(p) for p in found.positions], found.axes) == (("v",), ["ids[n]"], ("n",))


def test_a_term_that_runs_over_the_index_is_no_scatter() -> None:
    more = "attributes: {rows: {type: int, check: rows > 0}}\nshape: {V: rows}\n"
    kernel = "y[v] = sum[n](x[n] * v if ids[n] == v else 0)"
    frame, _, e = first(op_of('x: "T[N]", ids: "int64[N]"', 'y: "T[V]"', kernel, more))
    assert scatter(e, frame) is None


def test_the_gradient_of_a_window_s_maximum_is_a_scatter_by_two_indices() -> None:
    found = [scatter(e, frame) for frame, _, e in reductions(spec("max_pool2d", "_backward")) if e.kind == "sum"]
    assert [len(s.indices) for s in found if s is not None] == [2]


# ---- windows -------------------------------------------------------------------------------------------------------------


def test_convolutions_of_the_specs() -> None:
    for name, rank in (("conv1d", 1), ("conv2d", 2)):
        found = convolution(first(spec(name))[2])
        assert found is not None
        assert (found.x.operand, found.w.operand, len(found.windows)) == ("x", "w", rank)
        assert found.groups == Affine.of(AttrInt("groups"))
        assert [str(v.stride) for v in found.windows] == (["stride"] if rank == 1 else ["stride[0]", "stride[1]"])
        assert [str(v.padding) for v in found.windows] == (["padding"] if rank == 1 else ["padding[0]", "padding[1]"])


@pytest.mark.parametrize("name", ["depthwise_conv2d", "linear", "conv_transpose2d"])
def test_what_is_no_convolution(name: str) -> None:
    assert convolution(first(spec(name))[2]) is None


def test_pooling_of_the_specs() -> None:
    for name, kind in (("max_pool2d", "max"), ("avg_pool2d", "sum")):
        frame, _, e = first(spec(name))
        found = pooling(e, frame)
        assert found is not None
        assert (found.kind, found.entries, [str(v.taps) for v in found.windows]) == (
            kind,
            ("n", "c", "i", "j"),
            ["kernel_size[0]", "kernel_size[1]"],
        )


def test_a_whole_image_is_no_window() -> None:
    frame, _, e = first(spec("global_avg_pool"))
    assert pooling(e, frame) is None


def test_an_index_that_counts_groups_is_split() -> None:
    more = "attributes: {groups: {type: int, default: 1, check: groups > 0}}\nrequire: [C == I * groups, O % groups == 0]\n"
    kernel = "y[n, o] = sum[c](x[n, o // (O // groups) * I + c] * w[o, c])"
    _, _, e = first(op_of('x: "T[N, C]", w: "T[O, I]"', 'y: "T[N, O]"', kernel, more))
    size = divisor(e.body, "o")
    assert str(size) == "O // groups"
    assert contraction(e) is None
    split = Split("o", "g", "r", Affine.of(AttrInt("groups")), size or Affine.of(1))
    changed = split_reduction(e, split)
    assert sorted(format_expr(f.value) for f in (contraction(changed) or pytest.fail("no contraction")).factors) == [
        "w[g*(O // groups) + r, c]",
        "x[n, c + g*I]",
    ]


def test_a_reduced_index_is_split_into_two_axes() -> None:
    kernel = "y[n] = sum[o](x[n, o // 2] * w[o])"
    _, _, e = first(op_of('x: "T[N, H]", w: "T[O]"', 'y: "T[N]"', kernel, "require: [O == 2 * H]\n"))
    changed = split_reduction(e, Split("o", "g", "r", Affine.of(Dim("H")), Affine.of(2)))
    assert [a.index for a in changed.axes if isinstance(a, Axis)] == ["g", "r"]
    assert "x[n, g]" in format_expr(changed.body)
