"""The oracle's sets hold what honest kernels compute, and leave out what wrong ones do."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opc.ir.affine import Affine, Dim
from opc.ir.dtypes import DType, TypeVar, Weak
from opc.ir.expr import AttrRef, Axis, Cast, Const, IndexValue, Present, Read, Reduce, Select
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Assign
from opc.pipeline import compile_text
from opc.testing.oracle import integers
from opc.testing.oracle.bounds import Array, Bounds, exact, over_all
from opc.testing.oracle.enclosures import numpy_function
from opc.testing.oracle.evaluation import Bounded, DomainError, evaluate
from opc.testing.oracle.frame import UndecidedError
from opc.testing.oracle.tolerance import compare
from tests.testing import ops
from tests.testing.ops import GROUP, REST, T, X, call, dim, num, operand, read


def holds(result: Bounded, got: Array) -> bool:
    return compare("y", got, result).ok


def kernel_softmax(x: Array, order: Array) -> Array:
    """softmax in float32, its sum taken in the given order by one accumulator."""
    e = np.exp(x - x.max(-1, keepdims=True))
    total = np.zeros(x.shape[:-1], np.float32)
    for k in order:
        total = total + e[..., k]
    return np.asarray(e / total[..., None])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**31), st.integers(1, 60), st.sampled_from([0.1, 1.0, 30.0]))
def test_float32_evaluation_in_any_order_stays_within(seed: int, n: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((3, n)) * scale).astype(np.float32)
    want = evaluate(ops.softmax(), {"x": x})["y"]
    assert holds(want, kernel_softmax(x, rng.permutation(n)))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**31), st.integers(1, 40))
def test_layer_norm_within_for_any_order_and_dtype(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
        x = (rng.standard_normal((2, n)) * 3 + 5).astype(dtype)
        wide = x.astype(np.float32)
        order = rng.permutation(n)
        mean = np.add.accumulate(wide[:, order], axis=1)[:, -1] / np.float32(n)
        centred = wide - mean[:, None]
        var = np.add.accumulate((centred * centred)[:, order], axis=1)[:, -1] / np.float32(n)
        y = centred * (np.float32(1) / np.sqrt(var + np.float32(1e-5)))[:, None]
        found = evaluate(ops.layer_norm(), {"x": x})
        assert holds(found["y"], y.astype(dtype))
        assert compare("mean", mean, found["mean"]).ok


def test_bounds_are_tight() -> None:
    x = np.linspace(-3, 3, 41, dtype=np.float32)
    found = evaluate(ops.softmax(), {"x": x})["y"]
    # 40 additions, two exponentials of 4 ulp, their rounded arguments of size up to 6, one division.
    assert np.all(found.error <= (40 + 2 * 8 + 2 * 6 + 2) * 2.0**-24 * found.value)
    pointwise = evaluate(ops.leaky_relu(), {"x": x})["y"]
    assert np.all(pointwise.error[x >= 0] == 0)
    assert np.all(pointwise.error <= 2e-7 * np.abs(pointwise.value))


MUTANTS = {
    "wrong sign": lambda x: np.where(x >= 0, x, np.float32(-0.01) * x),
    "wrong constant": lambda x: np.where(x >= 0, x, np.float32(0.0100001) * x),
    "swapped condition": lambda x: np.where(x < 0, x, np.float32(0.01) * x),
    "dropped NaN": lambda x: np.fmax(np.where(x >= 0, x, np.float32(0.01) * x), np.float32(-np.inf)),
    "off by one": lambda x: np.roll(np.where(x >= 0, x, np.float32(0.01) * x), 1),
    "lost sign of zero": lambda x: np.where(x >= 0, x, np.float32(0.01) * x) + np.float32(0),
    "flushed denormals": lambda x: np.where(np.abs(x) < 1e-38, np.float32(0), np.where(x >= 0, x, np.float32(0.01) * x)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_kernels_are_caught(name: str) -> None:
    x = np.array([1.5, -2.0, 0.0, -0.0, np.nan, np.inf, -np.inf, 3e-40, -1e-3, 7.0], np.float32)
    want = evaluate(ops.leaky_relu(), {"x": x})["y"]
    assert holds(want, np.where(x >= 0, x, np.float32(0.01) * x))
    assert not holds(want, MUTANTS[name](x).astype(np.float32))


@pytest.mark.parametrize("fn", ["exp", "tanh", "log", "erf", "sqrt", "sin", "sigmoid"])
def test_error_of_8_ulp_is_caught_and_the_table_error_is_not(fn: str) -> None:
    x = np.linspace(0.3, 2.5, 57, dtype=np.float32)
    op = ops.pointwise("f", call(fn, X))
    want = evaluate(op, {"x": x})["y"]
    exact = evaluate(op, {"x": x}, precise=True)["y"].value.astype(np.float32)
    ulp = np.spacing(exact)
    limit = int(FUNCTIONS[fn].ulp)
    for k in range(limit):
        assert holds(want, exact + k * ulp)
    assert not holds(want, exact + 8 * ulp)
    assert not holds(want, exact - 8 * ulp)


def test_sum_that_forgets_an_element_is_caught() -> None:
    x = np.linspace(1, 2, 33, dtype=np.float32)
    op = ops.make(
        "total",
        (operand("x", dim("N")),),
        (operand("y"),),
        (Assign("y", (), Reduce("sum", (Axis("n", dim("N")),), read("x", "n"), T)),),
    )
    want = evaluate(op, {"x": x})["y"]
    assert holds(want, np.asarray(x.sum()))
    assert not holds(want, np.asarray(x[:-1].sum()))


def argmax_op(kind: str = "argmax") -> ops.Op:
    i64 = DType.INT64
    reduce = Reduce(kind, (Axis("n", dim("N")),), read("x", "...", "n"), i64)
    return ops.make(kind, (operand("x", REST, dim("N")),), (operand("y", REST, type=i64),), (Assign("y", (GROUP,), reduce),))


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_ties_go_to_the_first(kind: str) -> None:
    x = np.array([[1, 3, 3, 2], [0, 0, 0, 0], [1, np.nan, 5, np.nan], [-np.inf, -np.inf, -np.inf, -np.inf]], np.float32)
    want = evaluate(argmax_op(kind), {"x": x})["y"]
    right = getattr(np, kind)(x, axis=-1)
    assert holds(want, right)
    assert np.array_equal(want.bounds.low, want.bounds.high)
    last = 3 - getattr(np, kind)(x[:, ::-1], axis=-1)
    assert not holds(want, last)


def test_max_propagates_nan_and_infinity() -> None:
    reduce = Reduce("max", (Axis("n", dim("N")),), read("x", "...", "n"), T)
    op = ops.make("m", (operand("x", REST, dim("N")),), (operand("y", REST),), (Assign("y", (GROUP,), reduce),))
    x = np.array([[1, np.nan, 2], [np.inf, 1, -np.inf], [-np.inf, -np.inf, -np.inf]], np.float32)
    want = evaluate(op, {"x": x})["y"]
    assert holds(want, np.max(x, axis=-1))
    assert not holds(want, np.nanmax(x, axis=-1))


def test_maximum_of_nothing_is_an_error_unless_no_value_is_wanted() -> None:
    reduce = Reduce("max", (Axis("n", dim("N")),), read("x", "...", "n"), T)
    op = ops.make("m", (operand("x", REST, dim("N")),), (operand("y", REST),), (Assign("y", (GROUP,), reduce),))
    with pytest.raises(DomainError):
        evaluate(op, {"x": np.zeros((3, 0), np.float32)})
    assert evaluate(op, {"x": np.zeros((0, 0), np.float32)})["y"].shape == (0,)


@pytest.mark.parametrize(("kind", "value"), [("sum", 0.0), ("prod", 1.0)])
def test_empty_reductions(kind: str, value: float) -> None:
    reduce = Reduce(kind, (Axis("n", dim("N")),), read("x", "...", "n"), T)
    op = ops.make("r", (operand("x", REST, dim("N")),), (operand("y", REST),), (Assign("y", (GROUP,), reduce),))
    want = evaluate(op, {"x": np.zeros((2, 0), np.float32)})["y"]
    assert holds(want, np.full(2, value, np.float32))
    assert not holds(want, np.full(2, value + 1, np.float32))


def test_overflow_of_the_compute_type_is_infinite_and_cancellation_unknown() -> None:
    op = ops.pointwise("sq", call("mul", X, X))
    want = evaluate(op, {"x": np.array([1e30, 1e19], np.float32)})["y"]
    assert holds(want, np.array([np.inf, np.float32(1e19) ** 2], np.float32))
    half = evaluate(op, {"x": np.array([300.0], np.float16)})["y"]
    assert holds(half, np.array([np.inf], np.float16))
    difference = ops.pointwise("d", call("sub", call("mul", X, X), call("mul", X, call("add", X, num(1.0)))))
    found = evaluate(difference, {"x": np.array([1e30], np.float32)})["y"]
    assert found.bounds.nan.all()


def test_ambiguous_comparison_allows_both_branches_and_no_third() -> None:
    # x/3*3 may be x or a neighbour: the comparison with x may go either way.
    tripled = call("mul", call("div", X, num(3)), num(3))
    op = ops.pointwise("b", Select(call("eq", tripled, X), num(1), num(2), Weak.INT))
    want = evaluate(op, {"x": np.array([0.7], np.float32)})["y"]
    for value, right in ((1, True), (2, True), (3, False)):
        assert holds(want, np.array([value], np.float32)) is right


def test_integers_wrap_exactly_and_floor_divide() -> None:
    t = TypeVar("T", (DType.INT8, DType.UINT8))
    a, b = (Read(n, (GROUP,), t) for n in "ab")
    inputs = (operand("a", REST, type=t), operand("b", REST, type=t))
    for fn, numpy in (
        ("add", np.add),
        ("mul", np.multiply),
        ("floordiv", np.floor_divide),
        ("mod", np.mod),
        ("sub", np.subtract),
    ):
        op = ops.make(fn, inputs, (operand("y", REST, type=t),), (Assign("y", (GROUP,), call(fn, a, b)),), types=(t,))
        for dtype in (np.int8, np.uint8):
            x = np.array([127, 100, 3, 7, 250], np.int64).astype(dtype)
            y = np.array([1, 3, 200, 2, 250], np.int64).astype(dtype)
            want = evaluate(op, {"a": x, "b": y})["y"]
            assert holds(want, numpy(x, y))
            assert not holds(want, numpy(x, y) + dtype(1))


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8])
@pytest.mark.parametrize("fn", [f.name for f in FUNCTIONS.values() if f.types == "integer"])
def test_sets_of_integers_hold_what_operators_on_bits_make_of_their_members(fn: str, dtype: DType) -> None:
    """All pairs of two sets, one of which may be a single number; and the set is no larger than it needs to be where it tells."""
    value, rng = numpy_function(FUNCTIONS[fn].numpy), np.random.default_rng(3)
    for _ in range(60):
        low, other = rng.integers(dtype.least, dtype.most, 2, endpoint=True)
        high = min(low + int(rng.integers(0, 40)) * int(rng.integers(0, 2)), dtype.most)
        last = min(other + int(rng.integers(0, 40)) * int(rng.integers(0, 2)), dtype.most)
        a, b = (Bounds(*(np.array([v], np.int64) for v in ends), np.zeros(1, np.bool_)) for ends in ((low, high), (other, last)))
        found = integers.unary(fn, a, dtype) if FUNCTIONS[fn].arity == 1 else integers.binary(fn, a, b, dtype)
        members = np.meshgrid(*(np.arange(s.low[0], s.high[0] + 1) for s in (a, b)))
        every = integers.wrap(value(*members), dtype)
        assert found.low[0] <= every.min() <= every.max() <= found.high[0]
        if fn == "bit_not" or every.size == 1 or (fn == "shift_right" and other == last):
            assert (found.low[0], found.high[0]) == (every.min(), every.max())


def test_what_a_division_by_zero_leaves_open_wraps_at_every_end() -> None:
    t = TypeVar("I", (DType.INT64,))
    a, b = (Read(n, (GROUP,), t) for n in "ab")
    inputs = (operand("a", REST, type=t), operand("b", REST, type=t))
    for value in (call("sub", call("floordiv", a, b), num(1)), call("neg", call("floordiv", a, b))):
        op = ops.make("q", inputs, (operand("y", REST, type=t),), (Assign("y", (GROUP,), value),), types=(t,))
        want = evaluate(op, {"a": np.array([5]), "b": np.array([0])})["y"]
        assert all(holds(want, np.array([v])) for v in (0, -1, np.iinfo(np.int64).min, np.iinfo(np.int64).max))


def test_casts_saturate_and_nan_gives_zero() -> None:
    op = ops.make(
        "c", (operand("x", REST),), (operand("y", REST, type=DType.INT8),), (Assign("y", (GROUP,), Cast(X, DType.INT8)),)
    )
    x = np.array([1e9, -1e9, np.nan, 2.9, -2.9, np.inf, 127.5], np.float32)
    want = evaluate(op, {"x": x})["y"]
    assert holds(want, np.array([127, -128, 0, 2, -2, 127, 127], np.int8))
    assert not holds(want, np.array([127, -128, 0, 3, -2, 127, 127], np.int8))


def test_pad_lazy_select_and_checked_reads() -> None:
    n = dim("N")
    i = Affine.of(ops.Index("i"))
    left = Read("x", (i - 1,), T, pad=num(-5))
    shift = ops.make("shift", (operand("x", n),), (operand("y", n),), (Assign("y", ("i",), left),))
    x = np.array([1, 2, 3], np.float32)
    assert holds(evaluate(shift, {"x": x})["y"], np.array([-5, 1, 2], np.float32))
    bare = Read("x", (i - 1,), T)
    guarded = Select(call("gt", IndexValue(i), num(0)), bare, num(0), T)
    lazy = ops.make("lazy", (operand("x", n),), (operand("y", n),), (Assign("y", ("i",), guarded),))
    assert holds(evaluate(lazy, {"x": x})["y"], np.array([0, 1, 2], np.float32))
    unguarded = ops.make("bad", (operand("x", n),), (operand("y", n),), (Assign("y", ("i",), bare),))
    with pytest.raises(DomainError):
        evaluate(unguarded, {"x": x})


def test_data_dependent_reads() -> None:
    table = ops.make(
        "embedding",
        (operand("table", dim("V"), dim("D")), operand("ids", REST, type=DType.INT32)),
        (operand("y", REST, dim("D")),),
        (
            Assign(
                "y", (GROUP, "d"), Read("table", (Read("ids", (GROUP,), DType.INT32), Affine.of(ops.Index("d"))), T, checked=(0,))
            ),
        ),
    )
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    ids = np.array([[0, 3], [2, 2]], np.int32)
    assert holds(evaluate(table, {"table": values, "ids": ids})["y"], values[ids])
    with pytest.raises(DomainError):
        evaluate(table, {"table": values, "ids": np.array([4], np.int32)})
    with pytest.raises(DomainError):
        evaluate(table, {"table": values, "ids": np.array([-1], np.int32)})


def test_an_uncertain_condition_leaves_open_whether_an_op_has_a_value() -> None:
    # x / 3 * 3 may be x or a neighbour, so that of 2 it may be less than 2.
    x = Read("x", (Affine.of(ops.Index("i")),), T)
    less = call("lt", call("mul", call("div", x, num(3)), num(3)), num(2))
    first = Read("v", (Affine.of(0),), T, checked=(0,))
    inputs, output = (operand("v", dim("V")), operand("x", dim("N"))), (operand("y", dim("N")),)
    nothing = np.zeros(0, np.float32)
    for value in (
        Select(less, first, num(1), T),
        Select(call("and", less, call("gt", first, num(0))), num(2), num(1), T),
        Select(call("or", call("not", less), call("gt", first, num(0))), num(1), num(2), T),
    ):
        one = ops.make("pick", inputs, output, (Assign("y", ("i",), value),))
        assert evaluate(one, {"v": nothing, "x": np.array([3, 4], np.float32)})["y"].value.tolist() == [1, 1]
        for values, kind in (([3, 2], UndecidedError), ([2, 1], DomainError)):
            with pytest.raises(DomainError) as raised:
                evaluate(one, {"v": nothing, "x": np.array(values, np.float32)})
            assert raised.type is kind


def test_a_temporary_on_a_side_that_a_call_rules_out_leaves_open_whether_an_op_has_a_value() -> None:
    text = (
        "op: pick\ndomain: test\nversion: 1\ndoc: A test.\ntypes: {T: [float32]}\nattributes: {flag: bool}\ngradient: none\n"
        "inputs: {x: 'T[N]', 'b?': 'T[N]', w: 'T[M]'}\noutputs: {y: 'T[N]'}\nkernel: |\n  t = max[m](w[m])\n  y[i] = "
    )
    given = {"x": np.ones(2, np.float32), "w": np.zeros(0, np.float32)}
    for value, kinds in {
        "t[()] if flag else x[i]": (UndecidedError, DomainError),
        "x[i] if flag and t[()] > 0 else 0": (UndecidedError, DomainError),
        "x[i] if flag or t[()] > 0 else 0": (DomainError, UndecidedError),
        "t[()] if present(b) or N < 2 else x[i]": (UndecidedError, UndecidedError),
        "t[()] if x[i] < 0 else x[i]": (DomainError, DomainError),
    }.items():
        op = compile_text(f"{text}{value}\n", "pick.yaml").forward
        for flag, kind in enumerate(kinds):
            with pytest.raises(DomainError) as raised:
                evaluate(op, given, {"flag": bool(flag)})
            assert (raised.type is UndecidedError) == (kind is UndecidedError)


def test_an_uncertain_index_gives_the_elements_at_both_places() -> None:
    # x / 3 * 3 may be x or a neighbour, so its floor may be x or x - 1.
    x = Read("x", (Affine.of(ops.Index("i")),), T)
    place = Cast(call("floor", call("mul", call("div", x, num(3)), num(3))), DType.INT64)
    inputs, output = (operand("v", dim("V")), operand("x", dim("N"))), (operand("y", dim("N")),)
    padded = ops.make("sample", inputs, output, (Assign("y", ("i",), Read("v", (place,), T, pad=num(-1.0))),))
    values = np.array([10, 20, 30, 40], np.float32)
    want = evaluate(padded, {"v": values, "x": np.array([0.7, 2.0, 0.0, 4.0, 9.5], np.float32)})["y"]
    assert [float(v) for v in want.bounds.low] == [10, 20, 10, -1, -1]
    assert [float(v) for v in want.bounds.high] == [10, 30, 10, 40, -1]
    bare = ops.make("pick", inputs, output, (Assign("y", ("i",), Read("v", (place,), T, checked=(0,))),))
    with pytest.raises(DomainError):
        evaluate(bare, {"v": values, "x": np.array([5.0], np.float32)})


def test_absent_optional_input_is_never_read() -> None:
    b = Read("b", (GROUP,), T)
    value = call("add", X, Select(Present("b"), b, num(0), T))
    inputs = (operand("x", REST), operand("b", REST, optional=True))
    op = ops.make("o", inputs, (operand("y", REST),), (Assign("y", (GROUP,), value),))
    x = np.array([1.0, 2.0], np.float32)
    assert holds(evaluate(op, {"x": x, "b": None})["y"], x)
    assert holds(evaluate(op, {"x": x, "b": x})["y"], x + x)


def test_broadcast_axes_are_summed() -> None:
    rng = np.random.default_rng(0)
    b, d = (rng.standard_normal((4, 2, 3)).astype(np.float32) for _ in range(2))
    for shape, axes in (((2, 1), (0, 2)), ((), (0, 1, 2)), ((3,), (0, 1)), ((4, 1, 3), (1,))):
        found = evaluate(ops.mul_backward(), {"a": np.zeros(shape, np.float32), "b": b, "d_y": d})["d_a"]
        assert holds(found, np.asarray((b * d).sum(axis=axes)).reshape(shape))
        assert not holds(found, np.asarray((b * d).mean(axis=axes)).reshape(shape))


def test_attribute_counts_exact_or_rounded() -> None:
    op = ops.pointwise("scaled", call("mul", AttrRef("alpha", Weak.FLOAT), X), attributes=(ops.ALPHA,))
    x = np.array([1.0], np.float32)
    want = evaluate(op, {"x": x}, {"alpha": 0.1})["y"]
    assert holds(want, np.array([0.1], np.float32))
    assert not holds(want, np.array([0.1 + 3e-8], np.float32))


def test_float64_has_double_precision() -> None:
    op = ops.pointwise("e", call("add", call("exp", X), Const(1.0, Weak.FLOAT)))
    x = np.linspace(-1, 1, 9)
    want = evaluate(op, {"x": x})["y"]
    assert holds(want, np.exp(x) + 1)
    assert not holds(want, (np.exp(x) + 1) * (1 + 2.0**-49))


def test_half_outputs_round_once() -> None:
    op = ops.pointwise("third", call("div", X, num(3)))
    x = np.arange(1, 40).astype(np.float16)
    want = evaluate(op, {"x": x})["y"]
    right = (x.astype(np.float32) / np.float32(3)).astype(np.float16)
    assert holds(want, right)
    assert not holds(want, np.nextafter(right, np.float16(1e4)))


def test_varying_extent() -> None:
    n = Affine.of(Dim("N"))
    extent = Affine.of(ops.Index("i")) + 1
    total = Reduce("sum", (Axis("k", extent),), read("x", "k"), T)
    op = ops.make("cumsum", (operand("x", n),), (operand("y", n),), (Assign("y", ("i",), total),))
    x = np.array([1, 2, 4, 8], np.float32)
    assert holds(evaluate(op, {"x": x})["y"], np.cumsum(x, dtype=np.float32))


def test_an_extent_below_zero_has_no_points() -> None:
    n = Affine.of(Dim("N"))
    total = Reduce("sum", (Axis("k", n - 3),), Read("x", (Affine.of(ops.Index("k")),), T), T)
    op = ops.make("most", (operand("x", n),), (operand("y"),), (Assign("y", (), total),))
    for size, most in ((1, 0.0), (3, 0.0), (5, 2.0)):
        assert holds(evaluate(op, {"x": np.ones(size, np.float32)})["y"], np.array(most, np.float32))


def test_padded_read_of_an_empty_operand_where_another_axis_is_empty_too() -> None:
    family = compile_text(
        "op: shifted\ndomain: t\nversion: 1\ndoc: d\ntypes: {T: floating}\n"
        "inputs: {a: 'T[K]', b: 'T[M]', x: 'T[N]'}\noutputs: {y: 'T[K, M]', z: 'T[M]'}\n"
        "kernel: |\n  y[k, i] = pad(x[i - 1], 0) * a[k] * b[i]\n  z[i] = sum[k](a[k]) + pad(x[i + 1], 2) * b[i]\n",
        "shifted.yaml",
    )
    found = evaluate(family.forward, {"a": np.ones(0), "b": np.ones(3), "x": np.ones(0)})
    assert found["y"].bounds.low.shape == (0, 3)
    assert holds(found["z"], np.full(3, 2.0))


def test_nothing_is_asked_of_an_empty_batch() -> None:
    family = compile_text(
        "op: picked\ndomain: t\nversion: 1\ndoc: d\ntypes: {T: floating}\n"
        "inputs: {x: 'T[N, C]', ids: 'int64[N]', w: 'T[C]'}\noutputs: {y: 'T[N]', z: 'T[N]'}\n"
        "kernel: |\n  y[n] = x[n, ids[n]] * w[ids[n]]\n  z[n] = max[c](x[n, c])\n",
        "picked.yaml",
    )
    found = evaluate(family.forward, {"x": np.ones((0, 0)), "ids": np.zeros(0, np.int64), "w": np.ones(0)})
    assert found["y"].bounds.low.shape == found["z"].bounds.low.shape == (0,)
    with pytest.raises(DomainError):
        evaluate(family.forward, {"x": np.ones((2, 0)), "ids": np.zeros(2, np.int64), "w": np.ones(0)})


def test_a_maximum_that_varies_by_its_range_alone_is_not_asked_for_an_empty_batch() -> None:
    family = compile_text(
        "op: ranged\ndomain: t\nversion: 1\ndoc: d\ntypes: {T: floating}\n"
        "inputs: {x: 'T[N, M]', s: 'T[]'}\noutputs: {y: 'T[N, M]'}\n"
        "kernel: |\n  y[i, j] = s[()] * x[i, j] if min[k:N - i](2 * s[()]) <= x[i, j] else x[i, j]\n",
        "ranged.yaml",
    )
    assert family.backward is not None
    found = evaluate(family.backward, {"x": np.ones((0, 2)), "s": np.ones(()), "d_y": np.ones((0, 2))})
    assert found["d_x"].bounds.low.shape == (0, 2)
    assert holds(found["d_s"], np.zeros(()))


@pytest.mark.parametrize(
    ("values", "signs"), [([-0.0, 0.0], (True, False)), ([-0.0, -0.0], (True, True)), ([0.0, 0.0], (False, False))]
)
def test_of_zeros_any_of_which_may_be_read_each_sign_is_kept(values: list[float], signs: tuple[bool, bool]) -> None:
    found = over_all(exact(np.array([*values, *values])))
    assert (found.low, found.high) == (0, 0)
    assert (bool(np.signbit(found.low)), bool(np.signbit(found.high))) == signs


@pytest.mark.parametrize("index", ["at[i] % N", "at[i]", "(at[i] + 1) % N"])
def test_nothing_lies_in_an_empty_axis(index: str) -> None:
    text = (
        "op: read\ndomain: tests\nversion: 1\ndoc: Reads.\ntypes: {T: float64}\ninputs: {x: 'T[N]', at: 'int64[M]'}\n"
        f"outputs: {{y: 'T[M]'}}\nkernel: y[i] = x[{index}]\n"
    )
    op = compile_text(text, "read.yaml").forward
    with pytest.raises(DomainError, match="an index of x is outside axis 0 of size 0"):
        evaluate(op, {"x": np.zeros(0), "at": np.array([0, 3])})
    assert evaluate(op, {"x": np.zeros(0), "at": np.zeros(0, np.int64)})["y"].value.shape == (0,)
