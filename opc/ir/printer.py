"""The IR as text: what `opc show` prints, golden tests compare, and error messages quote.

The body is printed in the spec language as far as the language reaches, so that a derived gradient can be read, and pasted back.
"""

from __future__ import annotations

import math

from opc.ir.affine import Affine
from opc.ir.dtypes import TypeVar, Weak
from opc.ir.expr import (
    AttrRef,
    Call,
    Cast,
    Const,
    Expr,
    Extension,
    GroupIndex,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Reduce,
    Select,
    StrConst,
    TypeIs,
)
from opc.ir.functions import FUNCTIONS
from opc.ir.node import remembered
from opc.ir.op import Assign, Attribute, DimSpec, Group, Op, Operand
from opc.ir.precedence import CONDITIONAL, PYTHON

_OR, _SUM, _UNARY = (PYTHON.strength[fn] for fn in ("or", "add", "neg"))
_ATOM = PYTHON.atom


def number(value: int | float | bool) -> str:
    """Return a literal as the body language writes it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return repr(value)


def format_expr(e: Expr) -> str:
    """Return `e` as one line of the body language."""
    return _format(e)[0]


def _at(e: Expr, strength: int) -> str:
    text, own = _format(e)
    return text if own >= strength else f"({text})"


@remembered("_format")
def _format(e: Expr) -> tuple[str, int]:
    match e:
        case Const():
            text = number(e.value)
            return text, _UNARY if text.startswith("-") else _ATOM
        case StrConst():
            return repr(e.value), _ATOM
        case AttrRef():
            return (e.name if e.element < 0 else f"{e.name}[{e.element}]"), _ATOM
        case IndexValue():
            alone = e.value.single is not None or (e.value.constant is not None and e.value.constant >= 0)
            return str(e.value), _ATOM if alone and "//" not in str(e.value) else _SUM
        case GroupIndex():
            return f"position({GroupRef(e.group)})", _ATOM
        case Read():
            text = f"{e.operand}[{', '.join(_index(i) for i in e.indices)}]" if e.indices else f"{e.operand}[()]"
            return (text if e.pad is None else f"pad({text}, {format_expr(e.pad)})"), _ATOM
        case Call():
            return _call(e)
        case Select():
            return f"{_at(e.then, _OR)} if {_at(e.cond, _OR)} else {_at(e.other, CONDITIONAL)}", CONDITIONAL
        case Reduce():
            return f"{e.kind}[{', '.join(str(a) for a in e.axes)}]({format_expr(e.body)})", _ATOM
        case Cast() if str(e.type) == str(e.arg.type):
            return _format(e.arg)  # between a type variable and what a side knows of it, where the language converts by itself
        case Cast():
            return f"cast({e.type}, {format_expr(e.arg)})", _ATOM
        case Present():
            return f"present({e.operand})", _ATOM
        case TypeIs():
            return f"{e.variable} in [{', '.join(map(str, e.dtypes))}]", PYTHON.strength["eq"]
        case Extension():
            return e.text(), _ATOM


def _index(i: Affine | GroupRef | Expr) -> str:
    return str(i) if isinstance(i, Affine | GroupRef) else format_expr(i)


def _call(e: Call) -> tuple[str, int]:
    fn = FUNCTIONS[e.fn]
    if fn.symbol is None:
        return f"{e.fn}({', '.join(format_expr(a) for a in e.args)})", _ATOM
    own = PYTHON.strength[e.fn]
    if fn.arity == 1:
        return f"{fn.symbol}{_at(e.args[0], own)}", own
    left, right = PYTHON.sides(e.fn)
    return f"{_at(e.args[0], left)} {fn.symbol} {_at(e.args[1], right)}", own


def format_dims(dims: tuple[DimSpec, ...]) -> str:
    """Return a shape as in a signature: `[..., D]`."""
    return f"[{', '.join(str(d) for d in dims)}]"


def format_operand(o: Operand) -> str:
    """Return `name?: T[dims]`."""
    return f"{o.name}{'?' if o.optional else ''}: {o.type}{format_dims(o.dims)}{' permuted' if o.permuted else ''}"


def format_attribute(a: Attribute) -> str:
    """Return `name: kind = default`."""
    length = "" if a.length is None else "[]" if a.length < 0 else f"[{a.length}]"
    places = f" of {a.dim}" if a.dim else f" binds {a.binds}" if a.binds else f" keeps *{a.keeps}" if a.keeps else ""
    kind = f"{a.kind.value}{length}" if a.picks is None else f"axes of *{a.picks[0]}"
    kind = "size" if a.told else kind if a.permutes is None else f"permutation of *{a.permutes}"
    default = "" if a.required else f" = {list(a.default) if isinstance(a.default, tuple) else a.default!r}"
    return f"{a.name}: {kind}{places}{default}"


def format_assign(s: Assign) -> str:
    """Return one statement of the body."""
    indices = ", ".join(i if isinstance(i, str) else str(i) for i in s.indices) or "()"
    return f"{s.target}[{indices}] = {format_expr(s.value)}"


def format_body(op: Op) -> str:
    """Return the statements of the body, one a line, as a spec takes them: each index of a temporary with its range.

    Raises:
        ValueError: when the language has no words for a temporary: one that is as small as an operand of a broadcast op.
    """
    temporaries = {o.name: o for o in op.temporaries}
    lines = []
    for s in op.body:
        if s.target not in temporaries:
            lines.append(format_assign(s))
            continue
        operand = temporaries[s.target]
        if any(isinstance(d, Group) and d.of is not None for d in operand.dims):
            raise ValueError(f"{s.target} has the shape of an operand that is broadcast")
        pairs = zip(s.indices, operand.dims, strict=True)
        indices = ", ".join(f"{i}:{d}" if isinstance(i, str) else str(i) for i, d in pairs) or "()"
        value = Cast(s.value, operand.type) if isinstance(s.value.type, Weak) else s.value
        lines.append(f"{s.target}[{indices}] = {format_expr(value)}")
    return "\n".join(lines) + "\n"


def _types(types: tuple[TypeVar, ...]) -> list[str]:
    return [f"  type {t.name}: {', '.join(str(d) for d in t.dtypes)}" for t in types]


def format_op(op: Op) -> str:
    """Return the whole op: signature, rules and body, one item a line, ending in a line break."""
    lines = [f"op {op.name}{' broadcast' if op.broadcast else ''}"]
    lines += _types(op.types)
    lines += [f"  input {format_operand(o)}" for o in op.inputs]
    lines += [f"  attribute {format_attribute(a)}" for a in op.attributes]
    lines += [f"  output {format_operand(o)}" for o in op.outputs]
    lines += [f"  temporary {format_operand(o)}" for o in op.temporaries]
    lines += [f"  dim {name} = {value}" for name, value in op.dims]
    lines += [f"  require {format_expr(r.condition)}" for r in op.require]
    lines += [f"  {format_assign(s)}" for s in op.body]
    return "\n".join(lines) + "\n"
