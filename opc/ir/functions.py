"""The one table of scalar functions: what each is called, means and differentiates to on every target.

A row's columns:

* `types`: "float" (floating arguments and result), "number" (floating or integer, result as the arguments), "compare" (two
  numbers or bools, result bool), "logic" (bools, result bool), "test" (floating argument, result bool).
* `c`: C++ expression over `{0}`, `{1}`; `opc::` functions live in `runtime/include/opc/math.h`. CUDA uses the same text.
* `numpy`: NumPy expression over `{0}`, `{1}` with NumPy as `np`; names without prefix live in `opc.emit.numpy.helpers`.
* `onnx`: nested calls of standard ONNX operators over `x`, `y`; None where none exists.
* `derivative`: one text an argument in the body language over the arguments `x`, `y` and the result `r`; "0" where the
  derivative is zero almost everywhere; None for functions whose result is bool or that take no part in differentiation.
* `ulp`: bound on the error of the C implementation, in units in the last place of the result, over the whole domain.
* `domain`: per argument the interval samples are drawn from for the table's own test.
* `symbol`: how the printer and the body language write an operator; None for a call.

Sources: derivatives from Abramowitz & Stegun (1964), chapters 4 and 7, and each checked against central differences. Those in
`runtime/include/opc` state bounds of their own, which are below these; 4 ulp is what libmvec promises of sin, cos and tan
(glibc manual, "Errors in Math Functions").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opc.ir.dtypes import Acc, DType, ElementType, ValueType, Weak, candidates, is_bool, is_floating, is_integer
from opc.ir.node import memoised

Interval = tuple[float, float]
REAL: Interval = (-4.0, 4.0)
POSITIVE: Interval = (0.1, 8.0)
UNIT: Interval = (-0.95, 0.95)


@dataclass(frozen=True, slots=True)
class Function:
    """One row of the table; see the module's docstring for the columns."""

    name: str
    arity: int
    types: str
    c: str
    numpy: str
    onnx: str | None
    derivative: tuple[str, ...] | None
    ulp: float = 0.5
    domain: tuple[Interval, ...] = (REAL,)
    symbol: str | None = None


def _operator(
    name: str, symbol: str, types: str, c: str, numpy: str, onnx: str | None, derivative: tuple[str, ...] | None
) -> Function:
    return Function(name, 2, types, c, numpy, onnx, derivative, 0.5, (REAL, (0.5, 4.0)), symbol)


def _unary(
    name: str,
    onnx: str | None,
    derivative: str,
    *,
    ulp: float = 4.0,
    domain: Interval = REAL,
    numpy: str | None = None,
    types: str = "float",
) -> Function:
    return Function(name, 1, types, f"opc::{name}({{0}})", numpy or f"np.{name}({{0}})", onnx, (derivative,), ulp, (domain,))


_ROWS = (
    _operator("add", "+", "number", "{0} + {1}", "{0} + {1}", "Add(x, y)", ("1", "1")),
    _operator("sub", "-", "number", "{0} - {1}", "{0} - {1}", "Sub(x, y)", ("1", "-1")),
    _operator("mul", "*", "number", "{0} * {1}", "{0} * {1}", "Mul(x, y)", ("y", "x")),
    _operator("div", "/", "float", "{0} / {1}", "{0} / {1}", "Div(x, y)", ("1 / y", "-r / y")),
    _operator("floordiv", "//", "number", "opc::floordiv({0}, {1})", "floordiv({0}, {1})", None, ("0", "0")),
    _operator("mod", "%", "number", "opc::mod({0}, {1})", "mod({0}, {1})", None, ("1", "-(x // y)")),
    Function(
        "pow",
        2,
        "float",
        "opc::pow({0}, {1})",
        "power({0}, {1})",
        "Pow(x, y)",
        ("y * x ** (y - 1) if y != 0 else 0", "r * log(x) if x > 0 else 0"),
        4.0,
        (POSITIVE, REAL),
        "**",
    ),
    Function("neg", 1, "number", "-{0}", "-{0}", "Neg(x)", ("-1",), 0.5, (REAL,), "-"),
    _operator("lt", "<", "compare", "{0} < {1}", "{0} < {1}", "Less(x, y)", None),
    _operator("le", "<=", "compare", "{0} <= {1}", "{0} <= {1}", "LessOrEqual(x, y)", None),
    _operator("gt", ">", "compare", "{0} > {1}", "{0} > {1}", "Greater(x, y)", None),
    _operator("ge", ">=", "compare", "{0} >= {1}", "{0} >= {1}", "GreaterOrEqual(x, y)", None),
    _operator("eq", "==", "compare", "{0} == {1}", "{0} == {1}", "Equal(x, y)", None),
    _operator("ne", "!=", "compare", "{0} != {1}", "{0} != {1}", "Not(Equal(x, y))", None),
    _operator("and", "and", "logic", "{0} && {1}", "{0} & {1}", "And(x, y)", None),
    _operator("or", "or", "logic", "{0} || {1}", "{0} | {1}", "Or(x, y)", None),
    Function("not", 1, "logic", "!{0}", "~{0}", "Not(x)", None, 0.5, (REAL,), "not "),
    Function(
        "maximum",
        2,
        "number",
        "opc::maximum({0}, {1})",
        "np.maximum({0}, {1})",
        "Max(x, y)",
        ("1 if x >= y else 0", "0 if x >= y else 1"),
        0.5,
        (REAL, REAL),
    ),
    Function(
        "minimum",
        2,
        "number",
        "opc::minimum({0}, {1})",
        "np.minimum({0}, {1})",
        "Min(x, y)",
        ("1 if x <= y else 0", "0 if x <= y else 1"),
        0.5,
        (REAL, REAL),
    ),
    _unary("abs", "Abs(x)", "1 if x > 0 else -1 if x < 0 else 0", ulp=0.5, types="number"),
    _unary("sign", "Sign(x)", "0", ulp=0.5, types="number"),
    _unary("sqrt", "Sqrt(x)", "0.5 / r", ulp=0.5, domain=POSITIVE),
    _unary("rsqrt", "Reciprocal(Sqrt(x))", "-0.5 * r * r * r", ulp=1.5, domain=POSITIVE, numpy="1.0 / np.sqrt({0})"),
    _unary("exp", "Exp(x)", "r"),
    _unary("expm1", None, "exp(x)"),
    _unary("exp2", None, "r * log(2.0)"),
    _unary("log", "Log(x)", "1 / x", domain=POSITIVE),
    _unary("log1p", None, "1 / (1 + x)", domain=(-0.9, 8.0)),
    _unary("log2", None, "1 / (x * log(2.0))", domain=POSITIVE),
    _unary("log10", None, "1 / (x * log(10.0))", domain=POSITIVE),
    _unary("sin", "Sin(x)", "cos(x)"),
    _unary("cos", "Cos(x)", "-sin(x)"),
    _unary("tan", "Tan(x)", "1 + r * r", domain=(-1.4, 1.4)),
    _unary("asin", "Asin(x)", "rsqrt((1 - x) * (1 + x))", domain=UNIT, numpy="np.arcsin({0})"),
    _unary("acos", "Acos(x)", "-rsqrt((1 - x) * (1 + x))", domain=UNIT, numpy="np.arccos({0})"),
    _unary("atan", "Atan(x)", "1 / (1 + x * x)", numpy="np.arctan({0})"),
    _unary("sinh", "Sinh(x)", "cosh(x)"),
    _unary("cosh", "Cosh(x)", "sinh(x)"),
    _unary("tanh", "Tanh(x)", "1 - r * r"),
    _unary("asinh", "Asinh(x)", "rsqrt(x * x + 1)", numpy="np.arcsinh({0})"),
    _unary("acosh", "Acosh(x)", "rsqrt((x - 1) * (x + 1))", domain=(1.1, 8.0), numpy="np.arccosh({0})"),
    _unary("atanh", "Atanh(x)", "1 / ((1 - x) * (1 + x))", domain=UNIT, numpy="np.arctanh({0})"),
    _unary("erf", "Erf(x)", "1.1283791670955126 * exp(-x * x)", numpy="erf({0})"),
    _unary("erfc", None, "-1.1283791670955126 * exp(-x * x)", numpy="erfc({0})"),
    _unary("sigmoid", "Sigmoid(x)", "r * (1 - r)", ulp=6.0, numpy="sigmoid({0})"),
    _unary("floor", "Floor(x)", "0", ulp=0.5),
    _unary("ceil", "Ceil(x)", "0", ulp=0.5),
    _unary("trunc", None, "0", ulp=0.5),
    _unary("round", "Round(x)", "0", ulp=0.5, numpy="np.rint({0})"),
    Function("stop_gradient", 1, "number", "{0}", "{0}", "Identity(x)", ("0",)),
    Function("isnan", 1, "test", "opc::isnan({0})", "np.isnan({0})", "IsNaN(x)", None),
    Function("isinf", 1, "test", "opc::isinf({0})", "np.isinf({0})", "IsInf(x)", None),
)

FUNCTIONS: Mapping[str, Function] = {f.name: f for f in _ROWS}
"""Every function and operator by name."""

_POLES = {"div", "floordiv", "mod", "pow", "rsqrt", "log", "log1p", "log2", "log10"}
_DOMAINS = {"sqrt", "asin", "acos", "acosh", "atanh"}
_OVERFLOWS = {"exp", "expm1", "exp2", "sinh", "cosh"}

UNBOUNDED: frozenset[str] = frozenset(_POLES | _DOMAINS | _OVERFLOWS)
"""The functions that are not finite for every finite argument: they have poles, a bounded domain, or overflow soon."""

CALLABLE: tuple[str, ...] = tuple(f.name for f in _ROWS if f.symbol is None)
"""The names a kernel body may call; operators are written as symbols."""


@memoised
def join(a: ValueType, b: ValueType) -> ValueType | None:
    """Return the value type of an operation on `a` and `b`, or None when they do not mix.

    A weak type takes the other's; a weak float does not become an integer; T and acc(T) mix, as acc(T), when T is floating: their
    values are then computed in the same type. acc(T) of an integer T is int64 or uint64.
    """
    a, b = _known(a), _known(b)
    if a == b:
        return a
    if isinstance(a, Weak) and isinstance(b, Weak):
        return Weak.FLOAT
    if isinstance(a, Weak):
        return join(b, a)
    if isinstance(b, Weak):
        if is_bool(a) or (b is Weak.FLOAT and not is_floating(a)):
            return None
        return a
    if is_floating(a) and is_floating(b) and _base(a) == _base(b):
        return a if not hasattr(a, "of") else b
    # A type variable that can be nothing but int64 mixes with what is int64; so with uint64.
    return _single(a) if _single(a) is not None and _single(a) == _single(b) else None


def _known(t: ValueType) -> ValueType:
    """Return the dtype of an accumulator type of integers that can be nothing else."""
    return _single(t) or t if isinstance(t, Acc) else t


def _single(t: ElementType) -> DType | None:
    """Return int64 or uint64, which whole numbers are accumulated in, where `t` can be nothing else."""
    found = candidates(t)
    return found[0] if len(found) == 1 and found[0].is_integer and found[0].accumulator is found[0] else None


def _base(t: ValueType) -> ValueType:
    return t.of if hasattr(t, "of") else t


def result_type(fn: Function, args: tuple[ValueType, ...]) -> ValueType | None:
    """Return the value type of `fn` applied to arguments of these types, or None when it does not take them."""
    joined: ValueType | None = args[0]
    for a in args[1:]:
        joined = None if joined is None else join(joined, a)
    if joined is None:
        return None
    match fn.types:
        case "float":
            if joined is Weak.INT:
                return Weak.FLOAT
            return joined if is_floating(joined) else None
        case "number":
            return joined if is_floating(joined) or is_integer(joined) or not is_bool(joined) else None
        case "compare":
            return DType.BOOL
        case "logic":
            return DType.BOOL if is_bool(joined) else None
        case _:
            return DType.BOOL if is_floating(joined) else None
