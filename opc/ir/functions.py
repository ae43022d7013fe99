"""The one table of scalar functions: a row is all that targets, the derivative, the oracle and the tests know of one.

`opc.ir.function` describes the columns; docs/adding_a_function.md goes through a row.

Sources: derivatives from Abramowitz & Stegun (1964), chapters 4, 6, 7 and 9, and each checked against central differences. The
functions in `runtime/include/opc` state bounds of their own, which are below these; 4 ulp is what libmvec promises of sin, cos
and tan (glibc manual, "Errors in Math Functions").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opc.ir.function import CHEAP, DEAR, FREE, MODERATE, REALS, SAMPLES, Function, Interval

ABOVE: Interval = (0.0, REALS[1])
INSIDE: Interval = (-1.0, 1.0)
POSITIVE = ((0.1, 8.0),)
UNIT = ((-0.95, 0.95),)


def _operator(
    name: str, symbol: str, types: str, onnx: str | None, derivative: tuple[str, ...] | None, **columns: Any
) -> Function:
    text = f"{{0}} {symbol} {{1}}"
    cost = CHEAP if types == "number" else FREE
    defaults: dict[str, Any] = {
        "mp": text,
        "c": text,
        "numpy": text,
        "python": text,
        "cost": cost,
        "samples": (SAMPLES, (0.5, 4.0)),
    }
    return Function(name, 2, types, onnx=onnx, derivative=derivative, symbol=symbol, **(defaults | columns))


def _unary(name: str, onnx: str | None, derivative: str | None, **columns: Any) -> Function:
    """Return a row of a floating function of one argument that is called the same everywhere, as far as nothing else is said."""
    defaults: dict[str, Any] = {
        "types": "float", "ulp": 4.0, "steady": REALS, "derivative": None if derivative is None else (derivative,),
        "mp": f"mp.{name}({{0}})", "c": f"opc::{name}({{0}})", "numpy": f"np.{name}({{0}})",
        "python": f"_ieee(math.{name}, {{0}})",
    }  # fmt: skip
    return Function(name, 1, onnx=onnx, **(defaults | columns))


def _step(name: str, onnx: str | None, mp: str, **columns: Any) -> Function:
    """Return a row of a function that is exact and has no slope."""
    return _unary(name, onnx, "0", mp=mp, **({"ulp": 0.5, "exact": True, "cost": CHEAP} | columns))


def _log(name: str, onnx: str, derivative: str, mp: str) -> Function:
    python = f"(-math.inf if {{0}} == 0 else _ieee(math.{name}, {{0}}))"
    return _unary(name, onnx, derivative, mp=mp, python=python, domain=ABOVE, samples=POSITIVE, finite=False)


def _bits(name: str, symbol: str, onnx: str, **columns: Any) -> Function:
    """Return a row of an operator on the bits of integers in two's complement."""
    return _operator(name, symbol, "integer", onnx, None, **({"exact": True, "cost": CHEAP} | columns))


def _polygamma(name: str, order: int, derivative: str | None, **columns: Any) -> Function:
    """Return a row of a derivative of digamma; those of an even order go to both infinities at their poles, the others to one."""
    # mpmath goes from a negative argument to a positive one step by step.
    slope = ("mp.cospi({0})", "-1", "2 * mp.cospi({0})", "-(4 * mp.cospi({0}) ** 2 + 2)")[order]
    mirrored = f"{'-' * (order % 2)}mp.psi({order}, 1 - {{0}}) - mp.pi ** {order + 1} * {slope} / mp.sinpi({{0}}) ** {order + 1}"
    defaults: dict[str, Any] = {
        "mp": f"mp.nan if {{0}} <= 0 and {{0}} == mp.floor({{0}}) else {mirrored} if {{0}} < 0 else mp.psi({order}, {{0}})",
        "c": f"opc::polygamma<{order}>({{0}})",
        "numpy": f"elementwise(_polygamma, {{0}}, {order})", "python": f"_polygamma({order}, {{0}})", "numpy_in_double": True,
        "numpy_ulp": 8.0, "samples": POSITIVE, "steady": ABOVE, "poles": GAMMA_POLES, "finite": False,
    }  # fmt: skip
    return _unary(name, None, derivative, **(defaults | columns))


EXPM1 = """
half = Tanh(Mul(x, 0.5))
Mul(half, Add(Exp(x), 1.0))
"""
"""tanh(x / 2) (exp(x) + 1), which cancels nothing."""

LOG1P = """
u = Add(x, 1.0)
finite = Where(Equal(u, 1.0), x, Mul(Log(u), Div(x, Sub(u, 1.0))))
Where(IsInf(u), Log(u), finite)
"""
"""W. Kahan's log(u) x / (u - 1) of u = 1 + x as rounded; the product of log(u) and x alone would overflow."""

ERFC = """
size = Abs(x)
t = Where(Greater(size, 28.0), 28.0, size)
high = Div(Floor(Mul(t, 64.0)), 64.0)
power = Mul(Exp(Neg(Mul(high, high))), Exp(Mul(Sub(high, t), Add(high, t))))
scaled = Polynomial(Div(Sub(t, 4.0), Add(t, 4.0)),
    0.7553487931750763, -0.19167733398439019, 0.10399735387055646, -0.033165618819605704, -0.009517900868901039,
    0.02538004572709255,
    -0.02378244660816066, 0.01537199964430974, -0.007369087652222993, 0.002490717252097512, -0.0004370117757127203,
    -7.799683307664424e-05, 7.51489987907382e-05, -1.4595303458010285e-05, -5.0480078063003345e-06, 3.0434067299427723e-06,
    4.18073841680686e-08, -4.239766157994139e-07, 5.330855248078218e-08, 5.5590645714586495e-08, -1.1209103343602466e-08,
    -7.191711905056888e-09, 1.142529943634919e-09, 6.689658653380709e-10)
value = Mul(power, Div(scaled, Add(Mul(t, 1.1283791670955126), 1.0)))
Where(Less(x, 0.0), Sub(2.0, value), value)
"""
"""As opc/core/error_functions.h computes it; exp(-x^2) is that of x to six binary places, whose square is exact, and of the
rest."""

SIGMOID = """
e = Exp(Neg(Abs(x)))
Div(Where(GreaterOrEqual(x, 0.0), 1.0, e), Add(1.0, e))
"""
"""To the last digits of small results; ONNX Runtime's Sigmoid is exact to a share of 1."""

FLOORDIV = """
whole = Div(x, y)
exact = Equal(Add(Mul(whole, y), Mod(x, y)), x)
Where(exact, whole, Sub(whole, 1))
"""
"""Of integers, rounded to minus infinity, by what is not 0; x less its remainder may be no number of the type."""

BY_ANY = """
none = Equal(y, 0)
divisor = Where(none, 1, y)
whole = Div(x, divisor)
exact = Equal(Add(Mul(whole, divisor), Mod(x, divisor)), x)
Where(none, 0, Where(exact, whole, Sub(whole, 1)))
"""
"""The same by any integer. What ONNX's own division of integers by 0 gives is not defined: ONNX Runtime refuses it."""

_SHIFT = """
count = Cast(y, to=7)
inside = And(GreaterOrEqual(count, Cast(0, to=7)), Less(count, Cast(64, to=7)))
by = Cast(Where(inside, count, Cast(0, to=7)), to=13)
"""
"""By how much to shift what has 64 bits (7 is int64, and 13 uint64): ONNX shifts numbers without a sign, and only by less than
they have bits."""

SHIFT_LEFT = f"""{_SHIFT}
bits = Cast(BitShift(Cast(x, to=13), by, direction="LEFT"), to=7)
CastLike(Where(inside, bits, Cast(0, to=7)), x)
"""

SHIFT_RIGHT = f"""{_SHIFT}
sign = Neg(Cast(Less(Cast(x, to=11), Cast(0, to=11)), to=7))
bits = Cast(BitShift(Cast(BitwiseXor(Cast(x, to=7), sign), to=13), by, direction="RIGHT"), to=7)
CastLike(BitwiseXor(Where(inside, bits, Cast(0, to=7)), sign), x)
"""
"""A negative number has all its bits turned before and behind. A double, 11, tells the sign of every integer."""

_ROUND = """
first = Mul(a, Cast(3528531795, to=7))
second = Mul(c, Cast(3449720151, to=7))
a = BitwiseXor(BitwiseXor(Cast(BitShift(Cast(second, to=13), half, direction="RIGHT"), to=7), b), key)
c = BitwiseXor(BitwiseXor(Cast(BitShift(Cast(first, to=13), half, direction="RIGHT"), to=7), d), other)
b = BitwiseAnd(second, word)
d = BitwiseAnd(first, word)
key = BitwiseAnd(Add(key, Cast(2654435769, to=7)), word)
other = BitwiseAnd(Add(other, Cast(3144134277, to=7)), word)
"""

PHILOX = f"""
half = Cast(32, to=13)
word = Cast(4294967295, to=7)
key = BitwiseAnd(Cast(x, to=7), word)
other = Cast(BitShift(Cast(x, to=13), half, direction="RIGHT"), to=7)
a = BitwiseAnd(Cast(y, to=7), word)
b = Cast(BitShift(Cast(y, to=13), half, direction="RIGHT"), to=7)
c = Cast(0, to=7)
d = Cast(0, to=7)
{_ROUND * 10}
CastLike(a, x)
"""
"""As opc/core/philox.h computes it. Runtimes multiply no numbers of 64 bits without a sign; those with one have the same bits."""

CBRT = """
size = Abs(x)
root = Pow(size, 0.3333333333333333)
finer = Sub(root, Div(Sub(root, Div(size, Mul(root, root))), 3.0))
Mul(Sign(x), Where(Or(Equal(x, 0.0), IsInf(x)), size, finer))
"""
"""A power, and a step of Newton's method for the digits that a rounded exponent takes from it."""

HYPOT = """
a = Abs(x)
b = Abs(y)
more = Max(a, b)
ratio = Div(Min(a, b), Where(Equal(more, 0.0), 1.0, more))
value = Mul(more, Sqrt(Add(Mul(ratio, ratio), 1.0)))
Where(IsInf(x), a, Where(IsInf(y), b, value))
"""

ATAN2 = """
a = Abs(x)
b = Abs(y)
more = Max(a, b)
less = Min(a, b)
ratio = Div(less, Where(Equal(more, 0.0), 1.0, more))
angle = Atan(Where(IsInf(less), 1.0, ratio))
upper = Where(Greater(a, b), Sub(1.5707963267948966, angle), angle)
left = Or(Less(y, 0.0), Less(Reciprocal(y), 0.0))
value = Where(left, Sub(3.141592653589793, upper), upper)
Where(Or(Less(x, 0.0), Less(Reciprocal(x), 0.0)), Neg(value), value)
"""
"""The angle in an octant, turned and mirrored; the reciprocal tells the signs of zeros apart."""

SINC = """
size = Abs(x)
whole = Round(size)
odd = Sub(whole, Mul(Floor(Mul(whole, 0.5)), 2.0))
sine = Mul(Sin(Mul(Sub(size, whole), 3.141592653589793)), Sub(1.0, Mul(odd, 2.0)))
Where(Equal(x, 0.0), 1.0, Div(sine, Mul(size, 3.141592653589793)))
"""

ERFINV = """
w = Neg(Log(Mul(Sub(1.0, x), Add(1.0, x))))
root = Sqrt(w)
near = Polynomial(Sub(w, 3.125),
    1.6536545626831027, 0.24015818242558826, -0.006033670871427753, -0.0007407025341539544, 0.00018673420802425467,
    -1.3882523395793293e-05, -1.3654691844323374e-06, 4.2347881908024375e-07, -2.9070382776648378e-08, -4.112661979758031e-09,
    1.0512183991279638e-09, -5.414238912768767e-11, -1.2976958459382295e-11, 2.630354353372985e-12, -8.117005912836966e-14,
    -3.998974190030991e-14, 6.594697191261283e-15, -4.2869536458607676e-17, -1.3003889926330609e-16, 1.576004159544312e-17,
    1.1444058316249121e-18, -3.5755987484092317e-19, -1.0090023132527011e-21, 3.375914946092168e-21)
middle = Polynomial(Sub(root, 3.25),
    3.0838856104922203, 1.0052589676941597, 0.005370914553602698, -0.0037512085075982987, 0.002491442095508288,
    -0.0016882755553131535, 0.0009532893906899131, -0.0003550375281584775, 2.4031010238097195e-05, 6.828489686345908e-05,
    -4.731771491763788e-05, 1.2475154359757437e-05, 2.921895494470215e-06, -4.013584691706339e-06, 1.5054609153707718e-06,
    1.7956789701195677e-08, -2.7774915117085057e-07, 9.087304722232126e-08, 3.2290559994394552e-09)
far = Polynomial(Sub(root, 5.0),
    4.849906401408584, 1.0103004648645433, -0.00013871931833696354, -0.00021503011971464925, 7.5995277047271e-05,
    -1.9681772387714385e-05, 4.526062415691216e-06, -9.930183163174362e-07, 2.290057846927867e-07, -6.759413685955373e-08,
    2.9145253996938398e-08, -1.5182073672687137e-08, 7.61974402858941e-09, -3.5506915738583203e-09, 1.5046119172469912e-09,
    -3.9203745586804097e-10, -2.6205143481339413e-11, 3.216069287844262e-11)
value = Mul(x, Where(Less(w, 6.25), near, Where(Less(w, 16.0), middle, far)))
Where(Equal(Abs(x), 1.0), Div(x, 0.0), value)
"""
"""As opc/core/error_functions.h computes it."""

I0 = """
size = Abs(x)
square = Mul(Mul(size, size), 0.25)
near = Polynomial(square, 1.0,
    1.0, 0.25, 0.02777777777777776, 0.0017361111111111427, 6.944444444441264e-05, 1.9290123456994183e-06,
    3.9367598882577854e-08, 6.151187353600623e-10, 7.594057841711876e-12, 7.594067800904429e-14, 6.275971195926224e-16,
    4.3593383915360144e-18, 2.5730303493474502e-20, 1.3414533253131622e-22, 5.11176740526617e-25, 3.506225585461389e-27)
scaled = Polynomial(Reciprocal(size),
    0.3989422804014327, 0.04986778505011216, 0.028050629189977937, 0.0292193468270272, 0.044760462981503324,
    0.08711565799604849, 0.6734020033391779, -39.43768430187005, 2660.963925873234, -133035.2807749448, 5129578.519081393,
    -154490910.168592, 3668385828.6113615, -69037299800.76118, 1031521159257.418, -12215100226298.596, 114017358163603.75,
    -830677101253383.0, 4650694604952050.0, -1.9534790889265496e+16, 5.928359792846572e+16, -1.2206358412621251e+17,
    1.5148012774217338e+17, -8.460962409739075e+16)
half = Exp(Mul(size, 0.5))
far = Mul(Mul(half, Div(scaled, Sqrt(size))), half)
Where(Less(size, 8.0), near, Where(IsInf(size), size, far))
"""
"""As opc/core/bessel.h computes it and i1, with half the exponent twice, so that nothing overflows before the result does."""

I1 = """
size = Abs(x)
square = Mul(Mul(size, size), 0.25)
near = Mul(Mul(size, 0.5), Polynomial(square,
    1.0, 0.5, 0.08333333333333329, 0.00694444444444456, 0.0003472222222220636, 1.1574074074202372e-05, 2.7557319217318844e-07,
    4.920949884922248e-09, 6.834652003903776e-11, 7.594068745093614e-13, 6.903556866131423e-15, 5.23130208918824e-17,
    3.34439212322627e-19, 1.8800590284320436e-21, 7.623836042768673e-24, 5.65208056178185e-26))
scaled = Polynomial(Reciprocal(size),
    0.39894228040143265, -0.14960335515046605, -0.0467510485898048, -0.040907105596137194, -0.057544942544199625,
    -0.10707083613422971, -0.7364757306854881, 41.16310078741744, -2775.3746903734564, 138383.67196335728, -5321919.725936875,
    159858292.11808205, -3785442536.0232506, 71036043926.79803, -1058148330871.0255, 12489044969238.297, -116150029331325.4,
    842750899368157.4, -4696104780269186.0, 1.961634269581302e+16, -5.913167937957502e+16, 1.2072394868438245e+17,
    -1.481526813431968e+17, 8.14600108708811e+16)
half = Exp(Mul(size, 0.5))
far = Mul(Mul(half, Div(scaled, Sqrt(size))), half)
value = Where(Less(size, 8.0), near, Where(IsInf(size), size, far))
Where(Less(x, 0.0), Neg(value), value)
"""

GAMMA_POLES = "np.minimum(np.floor({0}), 0)"

_ROWS = (
    _operator("add", "+", "number", "Add(x, y)", ("1", "1")),
    _operator("sub", "-", "number", "Sub(x, y)", ("1", "-1")),
    _operator("mul", "*", "number", "Mul(x, y)", ("y", "x")),
    _operator("div", "/", "float", "Div(x, y)", ("1 / y", "-r / y"), python="_divide({0}, {1})", finite=False, cost=MODERATE),
    _operator(
        "floordiv", "//", "number", None, ("0", "0"), mp="mp.floor({0} / {1})", c="opc::floordiv({0}, {1})",
        numpy="floordiv({0}, {1})", finite=False, cost=MODERATE, onnx_of={"nonzero": FLOORDIV, "integer": BY_ANY},
    ),
    _operator(
        "mod", "%", "number", None, ("1", "-(x // y)"), mp="{0} - {1} * mp.floor({0} / {1})", c="opc::mod({0}, {1})",
        numpy="mod({0}, {1})", finite=False, cost=MODERATE,
        onnx_of={"nonzero": "Mod(x, y)", "integer": "Mod(x, Where(Equal(y, 0), 1, y))"},
    ),
    _operator(
        "pow", "**", "float", "Pow(x, y)", ("y * x ** (y - 1) if y != 0 else 0", "0 if x <= 0 else r * log(x)"),
        mp="mp.power({0}, {1})", c="opc::pow({0}, {1})", numpy="power({0}, {1})", python="_power({0}, {1})", ulp=4.0,
        samples=(*POSITIVE, SAMPLES), finite=False, cost=DEAR, whole=True,
    ),
    _unary(
        "neg", "Neg(x)", "-1", types="number", mp="-{0}", c="-{0}", numpy="-{0}", python="-{0}", ulp=0.5, exact=True, cost=FREE,
        symbol="-", onnx_of={"unsigned": "Sub(0, x)"},
    ),
    _bits("bit_and", "&", "BitwiseAnd(x, y)", mp="int({0}) & int({1})"),
    _bits("bit_or", "|", "BitwiseOr(x, y)", mp="int({0}) | int({1})"),
    _bits("bit_xor", "^", "BitwiseXor(x, y)", mp="int({0}) ^ int({1})"),
    _bits(
        "shift_left", "<<", SHIFT_LEFT, mp="int({0}) << int({1}) if 0 <= {1} < 64 else 0", c="opc::shift_left({0}, {1})",
        numpy="np.left_shift({0}, {1})", python="_shift_left({0}, {1})",
    ),
    _bits(
        "shift_right", ">>", SHIFT_RIGHT, mp="int({0}) >> (int({1}) if 0 <= {1} < 64 else 64)", c="opc::shift_right({0}, {1})",
        numpy="np.right_shift({0}, {1})", python="_shift_right({0}, {1})",
    ),
    _unary(
        "bit_not", "BitwiseNot(x)", None, types="integer", mp="~int({0})", c="~{0}", numpy="~{0}", python="~{0}", ulp=0.5,
        exact=True, cost=FREE, symbol="~",
    ),
    Function(
        "philox", 2, "integer", "_philox({0}, {1})", "opc::philox({0}, {1})", "philox({0}, {1})", "_philox({0}, {1})", PHILOX,
        None, exact=True,
    ),
    _operator("lt", "<", "compare", "Less(x, y)", None, onnx_of={"bool": "And(Not(x), y)"}),
    _operator("le", "<=", "compare", "LessOrEqual(x, y)", None, onnx_of={"bool": "Or(Not(x), y)"}),
    _operator("gt", ">", "compare", "Greater(x, y)", None, onnx_of={"bool": "And(x, Not(y))"}),
    _operator("ge", ">=", "compare", "GreaterOrEqual(x, y)", None, onnx_of={"bool": "Or(x, Not(y))"}),
    _operator("eq", "==", "compare", "Equal(x, y)", None),
    _operator("ne", "!=", "compare", "Not(Equal(x, y))", None),
    _operator("and", "and", "logic", "And(x, y)", None, c="{0} && {1}", numpy="{0} & {1}"),
    _operator("or", "or", "logic", "Or(x, y)", None, c="{0} || {1}", numpy="{0} | {1}"),
    _unary(
        "not", "Not(x)", None, types="logic", mp="not {0}", c="!{0}", numpy="~{0}", python="not {0}", ulp=0.5, exact=True,
        cost=FREE, symbol="not ",
    ),
    Function(
        "maximum", 2, "number", "max({0}, {1})", "opc::maximum({0}, {1})", "np.maximum({0}, {1})", "_maximum({0}, {1})",
        "Max(x, y)", ("1 if x >= y else 0", "0 if x >= y else 1"), exact=True, samples=(SAMPLES, SAMPLES), cost=CHEAP,
    ),
    Function(
        "minimum", 2, "number", "min({0}, {1})", "opc::minimum({0}, {1})", "np.minimum({0}, {1})", "-_maximum(-({0}), -({1}))",
        "Min(x, y)", ("1 if x <= y else 0", "0 if x <= y else 1"), exact=True, samples=(SAMPLES, SAMPLES), cost=CHEAP,
    ),
    _unary(
        "abs", "Abs(x)", "1 if x > 0 else -1 if x < 0 else 0", types="number", mp="abs({0})", python="abs({0})", ulp=0.5,
        exact=True, turns=(0.0,), cost=CHEAP,
    ),
    _step(
        "sign", "Sign(x)", "mp.sign({0})", types="number", python="(({0} > 0) - ({0} < 0) if {0} == {0} else {0})",
    ),
    _unary(
        "sqrt", "Sqrt(x)", "0.5 / r", ulp=0.5, numpy_ulp=0.5, domain=ABOVE, samples=POSITIVE, finite=False, cost=MODERATE,
    ),
    _unary(
        "rsqrt", "Reciprocal(Sqrt(x))", "-0.5 * r * r * r", mp="1 / mp.sqrt({0})", numpy="1.0 / np.sqrt({0})",
        python="_divide(1.0, _ieee(math.sqrt, {0}))", ulp=1.5, numpy_ulp=1.5, domain=ABOVE, turns=(0.0,), samples=POSITIVE,
        finite=False, cost=MODERATE,
    ),
    _unary("cbrt", CBRT, "1 / (3 * r * r)", mp="mp.sign({0}) * mp.cbrt(abs({0}))"),
    Function(
        "hypot", 2, "float", "mp.hypot({0}, {1})", "opc::hypot({0}, {1})", "np.hypot({0}, {1})", "math.hypot({0}, {1})", HYPOT,
        ("x / r if r != 0 else 0", "y / r if r != 0 else 0"), ulp=4.0, samples=(SAMPLES, SAMPLES), steady=REALS, turns=(0.0,),
    ),
    _unary("exp", "Exp(x)", "r", finite=False, smooth=True),
    _unary("expm1", EXPM1, "exp(x)", finite=False, smooth=True),
    _unary("exp2", "Pow(2.0, x)", "r * log(2.0)", mp="mp.power(2, {0})", python="_power(2.0, {0})", finite=False, smooth=True),
    _log("log", "Log(x)", "1 / x", "mp.log({0})"),
    _unary(
        "log1p", LOG1P, "1 / (1 + x)", python="(-math.inf if {0} == -1 else _ieee(math.log1p, {0}))", domain=(-1.0, REALS[1]),
        samples=((-0.9, 8.0),), finite=False,
    ),
    _log("log2", "Div(Log(x), 0.6931471805599453)", "1 / (x * log(2.0))", "mp.log({0}) / mp.log(2)"),
    _log("log10", "Div(Log(x), 2.302585092994046)", "1 / (x * log(10.0))", "mp.log10({0})"),
    _unary("sin", "Sin(x)", "cos(x)", steady=None, range=INSIDE, smooth=True),
    _unary("cos", "Cos(x)", "-sin(x)", steady=None, range=INSIDE, smooth=True),
    _unary("tan", "Tan(x)", "1 + r * r", samples=((-1.4, 1.4),), poles="np.floor({0} / np.pi + 0.5)"),
    _unary("asin", "Asin(x)", "rsqrt((1 - x) * (1 + x))", numpy="np.arcsin({0})", domain=INSIDE, samples=UNIT, finite=False),
    _unary("acos", "Acos(x)", "-rsqrt((1 - x) * (1 + x))", numpy="np.arccos({0})", domain=INSIDE, samples=UNIT, finite=False),
    _unary("atan", "Atan(x)", "1 / (1 + x * x)", numpy="np.arctan({0})", smooth=True),
    Function(
        "atan2", 2, "float", "mp.atan2({0}, {1})", "opc::atan2({0}, {1})", "np.arctan2({0}, {1})", "math.atan2({0}, {1})", ATAN2,
        (
            "y / hypot(x, y) / hypot(x, y) if x != 0 or y != 0 else 0",
            "-x / hypot(x, y) / hypot(x, y) if x != 0 or y != 0 else 0",
        ),
        ulp=4.0, samples=(SAMPLES, SAMPLES), steady=REALS, turns=(0.0,),
    ),
    _unary("sinh", "Sinh(x)", "cosh(x)", python="math.copysign(_ieee(math.sinh, abs({0})), {0})", finite=False, smooth=True),
    _unary("cosh", "Cosh(x)", "sinh(x)", turns=(0.0,), finite=False, smooth=True),
    _unary("tanh", "Tanh(x)", "1 - r * r", smooth=True),
    _unary("asinh", "Asinh(x)", "rsqrt(x * x + 1)", numpy="np.arcsinh({0})", smooth=True),
    _unary(
        "acosh", "Acosh(x)", "rsqrt((x - 1) * (x + 1))", numpy="np.arccosh({0})", domain=(1.0, REALS[1]), samples=((1.1, 8.0),),
        finite=False,
    ),
    _unary(
        "atanh", "Atanh(x)", "1 / ((1 - x) * (1 + x))", numpy="np.arctanh({0})",
        python="(math.copysign(math.inf, {0}) if abs({0}) == 1 else _ieee(math.atanh, {0}))", domain=INSIDE, samples=UNIT,
        finite=False,
    ),
    # Far out erf and erfc are 1 and exp(-10^8), which is 0 in any type here; mpmath can't take larger arguments.
    _unary(
        "erf", "Erf(x)", "1.1283791670955126 * exp(-x * x)", mp="mp.erf(max(min({0}, 10**4), -(10**4)))",
        numpy="elementwise(math.erf, {0})", numpy_ulp=1.0, numpy_in_double=True, smooth=True,
    ),
    _unary(
        "erfc", ERFC, "-1.1283791670955126 * exp(-x * x)", mp="mp.erfc(max(min({0}, 10**4), -(10**4)))",
        numpy="elementwise(math.erfc, {0})", numpy_ulp=5.0, numpy_in_double=True, smooth=True,
    ),
    _unary(
        "erfinv", ERFINV, "0.8862269254527580 * exp(r * r)", numpy="elementwise(_erfinv, {0})", python="_erfinv({0})",
        ulp=6.0, numpy_in_double=True, domain=INSIDE, samples=UNIT, finite=False,
    ),
    _unary(
        "sigmoid", SIGMOID, "r * (1 - r)", mp="1 / (1 + mp.exp(-{0}))", numpy="sigmoid({0})",
        python="_divide(1.0, 1.0 + _ieee(math.exp, -({0})))", ulp=6.0, numpy_ulp=8.0, smooth=True,
    ),
    _unary(
        "sinc", SINC, "sinc_slope(x)", mp="mp.sincpi({0})", numpy="elementwise(_sinc, {0})", python="_sinc({0})",
        numpy_in_double=True, steady=None, range=(-0.2172336282112217, 1.0), smooth=True,
    ),
    # The spherical Bessel function of order 1, which cancels nothing near 0.
    _unary(
        "sinc_slope", None, "-9.869604401089358 * sinc(x) - 2 * r / x if x != 0 else -3.289868133696453",
        mp="-mp.sign({0}) * mp.pi * mp.sqrt(0.5 / abs({0})) * mp.besselj(1.5, mp.pi * abs({0})) if 0 < abs({0}) < 1"
        " else (mp.cospi({0}) - mp.sincpi({0})) / {0} if {0} != 0 else mp.mpf(0)",
        numpy="elementwise(_sinc_slope, {0})", python="_sinc_slope({0})", absolute=1.0, numpy_in_double=True, steady=None,
        range=(-1.5, 1.5), hidden=True,
    ),
    _unary(
        "lgamma", None, "digamma(x)", mp="mp.nan if {0} <= 0 and {0} == mp.floor({0}) else mp.re(mp.loggamma({0}))",
        numpy="elementwise(_lgamma, {0})", python="_lgamma({0})", ulp=6.0, absolute=64.0, numpy_in_double=True, samples=POSITIVE,
        steady=ABOVE, turns=(1.4616321449683623,), poles=GAMMA_POLES, finite=False,
    ),
    _polygamma("digamma", 0, "trigamma(x)", ulp=6.0, absolute=64.0, steady=REALS),
    _polygamma("trigamma", 1, "tetragamma(x)", ulp=6.0, range=ABOVE),
    _polygamma("tetragamma", 2, "pentagamma(x)", ulp=10.0, absolute=64.0, hidden=True),
    _polygamma("pentagamma", 3, None, ulp=10.0, range=ABOVE, hidden=True),
    _unary(
        "i0", I0, "i1(x)", mp="mp.besseli(0, min(abs({0}), 10**4))", numpy="elementwise(_bessel_i, {0}, 0)",
        python="_bessel_i(0, {0})", ulp=8.0, numpy_in_double=True, turns=(0.0,), finite=False, smooth=True,
    ),
    _unary(
        "i1", I1, "i0(x) - (r / x if x != 0 else 0.5)", mp="mp.sign({0}) * mp.besseli(1, min(abs({0}), 10**4))",
        numpy="elementwise(_bessel_i, {0}, 1)", python="_bessel_i(1, {0})", ulp=8.0, numpy_in_double=True, finite=False,
        smooth=True,
    ),
    _step("floor", "Floor(x)", "mp.floor({0})"),
    _step("ceil", "Ceil(x)", "mp.ceil({0})"),
    _step("trunc", "Mul(Sign(x), Floor(Abs(x)))", "mp.sign({0}) * mp.floor(abs({0}))"),
    _step("round", "Round(x)", "mp.mpf(round(float({0})))", numpy="np.rint({0})", python="_ieee(lambda x: float(round(x)), {0})"),
    _step("stop_gradient", "Identity(x)", "{0}", types="number", c="{0}", numpy="{0}", python="({0})", cost=FREE),
    Function(
        "isnan", 1, "test", "False", "opc::isnan({0})", "np.isnan({0})", "math.isnan({0})", "IsNaN(x)", None, exact=True,
        cost=FREE,
    ),
    Function(
        "isinf", 1, "test", "False", "opc::isinf({0})", "np.isinf({0})", "math.isinf({0})", "IsInf(x)", None, exact=True,
        cost=FREE,
    ),
)  # fmt: skip

FUNCTIONS: Mapping[str, Function] = {f.name: f for f in _ROWS}
"""Every function and operator by name."""

CALLABLE: tuple[str, ...] = tuple(f.name for f in _ROWS if f.symbol is None and not f.hidden)
"""The names a kernel body may call; operators are written as symbols, and derivatives call hidden functions too."""
