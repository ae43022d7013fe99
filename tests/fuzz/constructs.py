"""Which constructs of the language a spec has, read off its text; and which there are, by tables of opc where there are such."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from opc.ir.dtypes import DType
from opc.ir.expr import REDUCTIONS
from opc.ir.functions import CALLABLE
from opc.ir.op import AttributeKind
from tests.fuzz.reading import Spec, read_spec, recurrent
from tests.fuzz.translate import entries, group_name

INDEX_FORMS = {
    ast.Mod: "%", ast.FloorDiv: "//", ast.IfExp: "if", ast.Sub: "-", ast.Add: "+", ast.Mult: "*",
}  # fmt: skip
BITS: dict[type[ast.AST], str] = {
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Invert: "~",
}  # fmt: skip
UNDRAWN = frozenset((DType.UINT64,))
"""The dtypes that no drawn spec has: uint64 mixes with no size and no index."""
OF_SPECS: dict[str, Callable[[str, Spec], object]] = {
    "broadcast": lambda text, spec: spec.broadcast,
    "broadcast beside named axes": lambda text, spec: spec.broadcast and spec.dims(),
    "derived shape": lambda text, spec: spec.shape,
    "require of a divisor": lambda text, spec: re.search(r"require:.* % ", text),
    "the lesser of two sizes": lambda text, spec: "minimum(" in text.partition("outputs:")[0],
    "a shape that an attribute chooses": lambda text, spec: re.search(r"'\w+ if \w+ else \w+'", text),
    "an input of a derived shape": lambda text, spec: spec.dims() & spec.shape.keys(),
    "an axis attribute": lambda text, spec: "dim: N" in text,
    "an attribute that places a new axis": lambda text, spec: "dim: K" in text,
    "an attribute of axes": lambda text, spec: "group: R" in text and "of: x" not in text,
    "a permutation of axes": lambda text, spec: "of: x" in text,
    "attributes that place two axes": lambda text, spec: "dim: M" in text,
    "axes that are kept": lambda text, spec: "keeps: R" in text,
    "a dtype attribute": lambda text, spec: "binds: U" in text,
    "an attribute with a default before one without": lambda text, spec: re.search(r"default:.*\n  \w+: (?!.*def)", _head(text)),
    "an attribute without a default before one with": lambda text, spec: re.search(r"type: (?!.*def).*\n.*default", _head(text)),
    "optional input": lambda text, spec: spec.optional,
    "several outputs": lambda text, spec: len(spec.outputs) > 1,
    "output read by another": lambda text, spec: any(re.search(rf" = .*\b{n}\b", text) for n in spec.outputs),
    "in place": lambda text, spec: "inplace:" in text,
    "gradient by hand": lambda text, spec: "  body: |" in text,
    "gradient by hand from a saved output": lambda text, spec: "saves:" in text,
    "a recurrence": lambda text, spec: recurrent(spec),
    "a recurrence that falls": lambda text, spec: any(
        re.search(rf"^  {n}\[.*\b{n}\[[^\]]*\+ \d", text, re.M) for n in recurrent(spec)
    ),
    "values that step together": lambda text, spec: len(recurrent(spec)) > 1,
    "an order": lambda text, spec: "= argsort[" in text,
    "an order that descends": lambda text, spec: re.search(r"= argsort\[.*, True\)\[", text),
    "ties": lambda text, spec: "ties: even" in text,
    "scatter": lambda text, spec: "scatter: atomic" in text,
    "integers beside floating types": lambda text, spec: re.search(r"T: \[.*float.*\bu?int", text),
    "no gradient": lambda text, spec: "gradient: none" in text,
    "an output over nothing": lambda text, spec: any(not dims for _, dims in map(_plain, spec.outputs.values())),
    "a statement without indices": lambda text, spec: any(isinstance(s.targets[0], ast.Name) for s in spec.statements()),
    "a range stated": lambda text, spec: re.search(r"^  t\d\[.*:.*\] = ", text, re.M),
    "a range found": lambda text, spec: re.search(r"^  t\d\[[^:]*i\d[^:]*\] = ", text, re.M),
    "a temporary with a dimension twice": lambda text, spec: re.search(r"^  t\d\[.*:(\w+).*:\1\b.*\] = ", text, re.M),
    **{f"out of range: {rule}": lambda text, spec, r=rule: f"out_of_range: {r}" in text for rule in ("error", "clamp", "zero")},
    **{
        f"{d} operands": lambda text, spec, d=d: re.search(rf"\b{d}\b", f"{spec.types} {spec.kinds()}")
        for d in (t.value for t in DType if t not in UNDRAWN)
    },
    **{f"{k.value} attribute": lambda text, spec, k=k: f"type: '{k.value}'" in text for k in AttributeKind},
    **{f"{k} attribute": lambda text, spec, k=k: f"type: '{k}'" in text for k in ("int[2]", "float[2]", "bool[2]", "float[]")},
}
"""What a spec has as a whole."""

OF_BODIES = (
    *(f"{name}()" for name in CALLABLE), "cast()", "pad()", "present()", "size()", "position()", "random()", "random_bits()",
    *(f"{kind}[]" for kind in REDUCTIONS), "mean[]",
    *(f"{form} in an index" for form in (*INDEX_FORMS.values(), "abs", "minimum", "maximum")),
    "% by a dimension in an index", "// by a dimension in an index", "// by a number in an index", "data as an index",
    "an index chosen by a size", "an index chosen by an attribute", "an index chosen by data", "an index twice in a read",
    "a dimension twice in an operand", "a reduction in a reduction", "a reduction over a group", "a reduction over two axes",
    "an extent with an index", "a product as extent", "an attribute as extent", "a derived extent", "% as a value",
    "// as a value", "& as a value", "| as a value", "^ as a value", "<< as a value", ">> as a value", "~ as a value",
    "an integer compared with an attribute", "an integer compared with a dimension", "an integer compared with an index",
    "an integer compared with a number", "a condition on a size", "a condition on a text", "a scatter",
    "a condition on a position", "a class of types asked for", "a class of types ruled out", "types behind and, or",
)  # fmt: skip
"""What stands in bodies."""


def every() -> set[str]:
    """Return the names of all constructs."""
    return {*OF_SPECS, *OF_BODIES} - {"broadcast()"}


def constructs(text: str) -> set[str]:
    """Return the names of the constructs that a spec has."""
    spec = read_spec(text)
    found = {name for name, has in OF_SPECS.items() if has(text, spec)}
    for statement in spec.statements():
        found |= set(_of(statement, spec))
    return found


def _head(text: str) -> str:
    return text.partition("attributes:\n")[2].partition("outputs:")[0]


def _plain(entry: tuple[str, tuple[ast.expr, ...]]) -> tuple[str, tuple[ast.expr, ...]]:
    return entry


def _names(tree: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}


def _of(statement: ast.AST, spec: Spec) -> Iterator[str]:
    for node in ast.walk(statement):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                yield f"{name}()"
            case ast.Call(func=ast.Subscript(value=ast.Name(id=kind)) as over):
                yield f"{kind}[]"
                yield from _of_reduction(node, entries(over.slice), spec)
            case ast.Subscript(value=ast.Name(id=name)) if name in spec.inputs or name[0] in "ty":
                yield from _of_read(name, entries(node.slice), spec)
            case ast.BinOp(op=ast.Mod()):
                yield "% as a value"
            case ast.BinOp(op=ast.FloorDiv()):
                yield "// as a value"
            case ast.BinOp(op=op) | ast.UnaryOp(op=op) if type(op) in BITS:
                yield f"{BITS[type(op)]} as a value"
            case ast.BoolOp(values=[ast.Compare(ops=[ast.In() | ast.NotIn()]), *_]):
                yield "types behind and, or"
            case ast.Compare(ops=[ast.In()]):
                yield "a class of types asked for"
            case ast.Compare(ops=[ast.NotIn()]):
                yield "a class of types ruled out"
            case ast.Compare(left=left, comparators=[right]):
                yield from _of_comparison(left, right, spec)


def _of_read(name: str, items: list[ast.expr], spec: Spec) -> Iterator[str]:
    indices = [n.id for n in items if isinstance(n, ast.Name)]
    if len(set(indices)) < len(indices):
        yield "an index twice in a read"
    dims = [ast.unparse(d) for d in spec.inputs[name][1]] if name in spec.inputs else []
    if len(set(dims)) < len(dims):
        yield "a dimension twice in an operand"
    for item in items:
        for node in ast.walk(item):
            match node:
                case ast.BinOp(op=op, right=right) if type(op) in INDEX_FORMS:
                    form = INDEX_FORMS[type(op)]
                    yield f"{form} in an index"
                    yield f"{form} by a {'dimension' if _names(right) & spec.dims() else 'number'} in an index"
                case ast.Call(func=ast.Name(id="abs" | "minimum" | "maximum" as called)):
                    yield f"{called} in an index"
                case ast.IfExp(test=test):
                    yield "if in an index"
                    of = {"an attribute": spec.attributes.keys(), "a size": spec.dims(), "data": spec.inputs.keys()}
                    yield from (f"an index chosen by {what}" for what, names in of.items() if _names(test) & names)
                case ast.Subscript() if _names(node.value) & spec.inputs.keys():
                    yield "data as an index"


def _of_reduction(node: ast.Call, items: list[ast.expr], spec: Spec) -> Iterator[str]:
    if len(items) > 1:
        yield "a reduction over two axes"
    if any(isinstance(n, ast.Call) and isinstance(n.func, ast.Subscript) for n in ast.walk(node.args[0])):
        yield "a reduction in a reduction"
    if (
        isinstance(node.args[0], ast.IfExp)
        and isinstance(node.args[0].test, ast.Compare)
        and _names(node.args[0].test) & {"ids", "jds"}
    ):
        yield "a scatter"
    for item in items:
        if group_name(item):
            yield "a reduction over a group"
        if isinstance(item, ast.Slice) and item.upper is not None:
            names = _names(item.upper)
            if any(re.fullmatch(r"[ik]\d+", n) for n in names):
                yield "an extent with an index"
            if isinstance(item.upper, ast.BinOp) and isinstance(item.upper.op, ast.Mult):
                yield "a product as extent"
            if names & spec.attributes.keys():
                yield "an attribute as extent"
            if names & spec.shape.keys():
                yield "a derived extent"


def _of_comparison(left: ast.expr, right: ast.expr, spec: Spec) -> Iterator[str]:
    for one, other in ((left, right), (right, left)):
        if isinstance(other, ast.Constant) and isinstance(other.value, str):
            yield "a condition on a text"
        if isinstance(one, ast.Name) and one.id in spec.dims():
            yield "a condition on a size"
        if "position(" in ast.unparse(one):
            yield "a condition on a position"
        read = one.args[0] if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "pad" else one
        if (
            isinstance(read, ast.Subscript)
            and isinstance(read.value, ast.Name)
            and spec.inputs.get(read.value.id, ("",))[0] == "Q"
        ):
            if isinstance(other, ast.Constant | ast.UnaryOp):
                yield "an integer compared with a number"
            if isinstance(other, ast.Name):
                kind = "attribute" if other.id in spec.attributes else "dimension" if other.id in spec.dims() else "index"
                yield f"an integer compared with {'an' if kind != 'dimension' else 'a'} {kind}"


__all__ = ["constructs", "every"]
