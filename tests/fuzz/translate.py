"""From a statement of a body, as Python's `ast` has it, to a Python expression of one element: for the brute-force evaluator.

What is translated is typed on the way, because integers wrap in their own dtype and numbers without one take the other side's:
`tests.fuzz.kinds` says which types there are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.fuzz.kinds import arithmetic, as_type, is_whole, join, wrap
from tests.fuzz.scalars import BITS, CLASSES, FLOATS, FUNCTIONS

if TYPE_CHECKING:
    from tests.fuzz.reading import Call

Dim = ast.expr
Operands = Mapping[str, tuple[str, tuple[Dim, ...]]]
EXACT = {"floordiv": "floordiv_", "mod": "mod_", "maximum": "maximum_", "minimum": "minimum_", "left": "left_", "right": "right_"}
SIGNS = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "left",
    ast.RShift: "right",
}


class OutsideError(Exception):
    """A read that the language promises to be inside is not."""


@dataclass(frozen=True)
class Frame:
    """What can be read: operands by name with dtype and dimensions; and those that are there."""

    operands: Operands
    given: Mapping[str, Any]


@dataclass(frozen=True)
class Made:
    """A statement ready to run: `code` over `names`, which take every combination of `ranges`."""

    target: str
    code: str
    names: tuple[str, ...]
    ranges: tuple[Any, ...]
    dtype: str
    shape: tuple[int, ...]
    dims: tuple[Dim, ...]


def group_name(d: ast.expr) -> str:
    """Return the name of the axis group that stands here, or nothing."""
    if isinstance(d, ast.Constant) and d.value is ...:
        return "..."
    return d.value.id if isinstance(d, ast.Starred) and isinstance(d.value, ast.Name) else ""


def entries(node: ast.expr) -> list[ast.expr]:
    """Return what stands in the brackets of a subscript."""
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


def bare_uses(
    name: str, tree: ast.AST, operands: Operands, loose: bool = False, padded: bool = False
) -> Iterator[tuple[Dim, bool]]:
    """Yield the axes that an index stands on by itself, and whether in `pad` or on a side of a conditional.

    An index inside an index is not in the `pad` of the read, `padded`.
    """
    match tree:
        case ast.Call(func=ast.Name(id="pad"), args=[ast.Subscript() as read, *others]):
            yield from bare_uses(name, read, operands, loose, True)
            for other in others:
                yield from bare_uses(name, other, operands, loose)
        case ast.IfExp():
            yield from bare_uses(name, tree.body, operands, True)
            yield from bare_uses(name, tree.test, operands, loose)
            yield from bare_uses(name, tree.orelse, operands, True)
        case ast.Subscript(value=ast.Name(id=operand)) if operand in operands:
            for item, dim in zip(entries(tree.slice), operands[operand][1]):
                if isinstance(item, ast.Name) and item.id == name and not group_name(dim):
                    yield dim, loose or padded
                yield from bare_uses(name, item, operands, loose)
        case ast.Subscript(value=ast.Call(func=ast.Subscript(slice=axis), args=[key, *_]), slice=ast.Name(id=place)):
            if place == name:
                own = axis.upper if isinstance(axis, ast.Slice) else None
                along = axis.lower if isinstance(axis, ast.Slice) else axis
                assert isinstance(along, ast.Name)
                yield (own or next(dim for dim, _ in bare_uses(along.id, key, operands))), loose or padded
            yield from bare_uses(name, key, operands, loose)
        case _:
            for child in ast.iter_child_nodes(tree):
                yield from bare_uses(name, child, operands, loose)


class Translator:
    """Translates the statements of one call: sizes and attributes are numbers by now."""

    def __init__(self, call: Call, frame: Frame) -> None:
        self.call, self.operands, self.given = call, frame.operands, frame.given
        self.extents: dict[str, Dim] = {}
        self.bound: set[str] = set()

    def number(self, tree: ast.expr) -> Any:
        """Return the value of a size or condition over dimensions and attributes."""
        from tests.fuzz.brute import NAMES

        return eval(self.value(tree)[0], dict(NAMES))

    # Statements

    def statement(self, s: ast.Assign) -> Made:
        """Return a statement ready to run."""
        (target,) = s.targets
        if isinstance(target, ast.Name):
            name, items = target.id, None
        else:
            assert isinstance(target, ast.Subscript)
            assert isinstance(target.value, ast.Name)
            name, items = target.value.id, entries(target.slice)
        declared = self.call.spec.outputs.get(name)
        dims = list(declared[1]) if declared else []
        if items is None:
            dims = dims if declared else self.widest(s.value)
            items = [d if group_name(d) else ast.Name(id=f"own{k}") for k, d in enumerate(dims)]
        elif not declared:
            dims = [self.range_of(i, s.value) for i in items]
        names, ranges, shape = [], [], ()
        for item, dim in zip(items, dims, strict=True):
            group = group_name(item)
            if group:
                names.append(group_variable(group))
                own = self.call.groups[group]
                ranges.append(list(np.ndindex(own)))
                shape += own
                self.bound.add(group)
                continue
            index = item.lower if isinstance(item, ast.Slice) else item
            assert isinstance(index, ast.Name)
            names.append(f"i_{index.id}")
            size = self.number(dim)
            ranges.append(range(size))
            shape += (size,)
            self.extents[index.id] = dim
        code, kind = self.value(s.value)
        dtype = (
            self.call.dtype(declared[0]) if declared else {"f": "f", "b": "bool"}.get(kind, "int64" if is_whole(kind) else kind)
        )
        code = f"float({code})" if dtype in (*FLOATS, "f") else f"wrap_({code}, '{dtype}')" if dtype in BITS else code
        return Made(name, code, tuple(names), tuple(ranges), dtype, shape, tuple(dims))

    def range_of(self, item: ast.expr, value: ast.expr) -> Dim:
        """Return what an index on the left of a temporary, or of a reduction, runs over."""
        if group_name(item):
            return item
        if isinstance(item, ast.Slice):
            assert item.upper is not None
            return item.upper
        assert isinstance(item, ast.Name)
        uses = list(bare_uses(item.id, value, self.operands))
        return next(d for d, loose in sorted(uses, key=lambda u: u[1]))

    def widest(self, value: ast.expr) -> list[Dim]:
        """Return the axes of a temporary without indices: those of the bare operand with the most."""
        held = {n.value for n in ast.walk(value) if isinstance(n, ast.Subscript)}
        bare = [n.id for n in ast.walk(value) if isinstance(n, ast.Name) and n not in held and n.id in self.operands]
        return list(max((self.operands[n][1] for n in bare), key=len, default=()))

    # Expressions

    def value(self, e: ast.expr) -> tuple[str, str]:
        """Return the code of an expression and its type."""
        match e:
            case ast.Constant(value=bool() as v):
                return str(v), "b"
            case ast.Constant(value=int() as v):
                return str(v), f"w{v}"
            case ast.Constant(value=float() as v):
                return repr(v), "f"
            case ast.Constant(value=str() as v):
                return repr(v), "s"
            case ast.Name():
                return self.name(e.id)
            case ast.Subscript(value=ast.Name(id=name)) if name in self.call.attributes:
                assert isinstance(e.slice, ast.Constant)
                return self.attribute(self.call.attributes[name][e.slice.value], self.call.spec.attributes[name]["type"])
            case ast.Subscript(value=ast.Call() as ordered):
                return self.ordering(ordered, e.slice), "int64"
            case ast.Subscript():
                return self.read(e, None)
            case ast.Call(func=ast.Subscript(value=ast.Name(id=kind))):
                return self.reduction(kind, e)
            case ast.Call(func=ast.Name(id=name)):
                return self.function(name, e)
            case ast.IfExp():
                answer = self.settled(e.test)
                if answer is not None:
                    # The other side may have no type for what T stands for.
                    return self.value(e.body if answer else e.orelse)
                test = self.value(e.test)[0]
                # A side that is never taken in this call may name what is not there.
                if test in ("True", "False"):
                    return self.joined(e, test == "True")
                (then, a), (other, b) = self.value(e.body), self.value(e.orelse)
                kind = join(a, b, self.call.listed)
                return f"({as_type(then, a, kind)} if {test} else {as_type(other, b, kind)})", kind
            case ast.BoolOp():
                word = " and " if isinstance(e.op, ast.And) else " or "
                sides: list[str] = []
                for v in e.values:
                    sides.append(self.value(v)[0])
                    # Behind what decides it, a condition may name what is not there.
                    if sides[-1] == str(isinstance(e.op, ast.Or)):
                        break
                return self.logic(sides, word), "b"
            case ast.UnaryOp(op=ast.Not()):
                code = self.value(e.operand)[0]
                return {"True": "False", "False": "True"}.get(code, f"(not {code})"), "b"
            case ast.UnaryOp(op=ast.UAdd()):
                return self.value(e.operand)
            case ast.UnaryOp(op=ast.USub()):
                code, kind = self.value(e.operand)
                kind = arithmetic("sub", "w0", kind) if is_whole(kind) else kind
                return wrap(f"(-{code})", kind), kind
            case ast.UnaryOp(op=ast.Invert()):
                code, kind = self.value(e.operand)
                if kind == "b":
                    return f"(not {code})", kind
                kind = arithmetic("sub", "w-1", kind) if is_whole(kind) else kind
                return wrap(f"(~{code})", kind), kind
            case ast.Compare(ops=[ast.In() | ast.NotIn()]):
                return str(self.settled(e)), "b"
            case ast.Compare():
                compared = [self.value(v) for v in (e.left, *e.comparators)]
                words = [COMPARE[type(op)] for op in e.ops]
                code = f"({compared[0][0]}{''.join(f' {word} {side[0]}' for word, side in zip(words, compared[1:]))})"
                return (str(eval(code)) if compared[0][1] == "s" else code), "b"
            case ast.BinOp():
                return self.binary(BINARY[type(e.op)], self.value(e.left), self.value(e.right))
        raise NotImplementedError(ast.dump(e))

    def settled(self, e: ast.expr) -> bool | None:
        """Return what a condition is as far as types alone decide it, None where they don't."""
        match e:
            case ast.Compare(left=ast.Name(id=name), ops=[ast.In() | ast.NotIn() as op], comparators=[among]):
                asked = {d.id for d in (among.elts if isinstance(among, ast.List) else [among]) if isinstance(d, ast.Name)}
                held = self.call.types[name] in asked.union(*(CLASSES.get(d, ()) for d in asked))
                return held == isinstance(op, ast.In)
            case ast.UnaryOp(op=ast.Not()):
                answer = self.settled(e.operand)
                return None if answer is None else not answer
            case ast.BoolOp():
                answers, decides = [self.settled(v) for v in e.values], isinstance(e.op, ast.Or)
                return decides if decides in answers else None if None in answers else not decides
        return None

    def joined(self, e: ast.IfExp, chosen: bool) -> tuple[str, str]:
        """Return the side of a conditional that is taken in all of this call, in the type of both where both can be told."""
        code, kind = self.value(e.body if chosen else e.orelse)
        try:
            other = self.value(e.orelse if chosen else e.body)[1]
        except KeyError:
            return code, kind
        both = join(kind, other, self.call.listed)
        return as_type(code, kind, both), both

    def logic(self, codes: list[str], word: str) -> str:
        settled = "False" if word == " and " else "True"
        if codes[0] == settled:
            return settled
        codes = [c for c in codes if c != ("True" if word == " and " else "False")] or codes[:1]
        return f"({word.join(codes)})" if len(codes) > 1 else codes[0]

    def name(self, name: str) -> tuple[str, str]:
        if name in self.extents:
            return f"i_{name}", "w"
        if name in self.operands:
            return self.bare(name)
        if name in self.call.attributes:
            return self.attribute(self.call.attributes[name], self.call.spec.attributes[name]["type"])
        if name in ("inf", "nan"):
            return f"{name}_", "f"
        return str(self.call.dims[name]), "w"

    def attribute(self, value: Any, kind: str) -> tuple[str, str]:
        kind = kind.partition("[")[0]
        if kind == "float":
            number = repr(float(value))
            return {"inf": "inf_", "-inf": "(-inf_)", "nan": "nan_"}.get(number, f"({number})"), "f"
        return {"bool": (str(bool(value)), "b"), "str": (repr(value), "s")}.get(kind, (f"({value})", "w"))

    def bare(self, name: str) -> tuple[str, str]:
        """Return the read that an operand's name alone is: each axis at the index that runs over it."""
        items: list[ast.expr] = []
        taken: list[str] = []
        for d in self.operands[name][1]:
            if group_name(d):
                items.append(d)
                continue
            index = next(i for i, e in self.extents.items() if ast.unparse(e) == ast.unparse(d) and i not in taken)
            taken.append(index)
            items.append(ast.Name(id=index))
        return self.read(ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=items)), None)

    def read(self, e: ast.Subscript, fill: tuple[str, str] | None) -> tuple[str, str]:
        assert isinstance(e.value, ast.Name)
        name = e.value.id
        dtype, dims = self.operands[name]
        if name not in self.given:
            raise KeyError(f"{name} is absent")
        kind = "f" if dtype in (*FLOATS, "f") else "b" if dtype == "bool" else dtype
        parts, data = [], False
        for item, dim in zip(entries(e.slice), dims, strict=True):
            group = group_name(item)
            if group:
                variable = group_variable(group)
                own = self.call.own.get(name) if self.call.spec.broadcast else None
                parts.append(f"*{variable}" if own is None else f"*aligned_({variable}, {own})")
                continue
            code, of = self.value(item)
            if of in BITS:
                data = True
                if fill is None and self.call.spec.out_of_range != "zero":
                    code = f"checked_({code}, {self.number(dim)}, '{self.call.spec.out_of_range}')"
            parts.append(f"int({code})" if of == "b" else code)
        index = f"({', '.join(parts)}{',' if parts else ''})"
        if fill is None and data and self.call.spec.out_of_range != "error":
            fill = ({"f": "0.0", "b": "False"}.get(kind, "0"), kind)
        if fill is None:
            return f"read_(values_, '{name}', {index})", kind
        both = kind if fill[1] == "f" else join(kind, fill[1], self.call.listed)
        return f"padded_(values_, '{name}', {index}, lambda: {as_type(*fill, both)})", both

    def binary(self, op: str, left: tuple[str, str], right: tuple[str, str]) -> tuple[str, str]:
        (a, s), (b, t) = left, right
        kind = join(s, t, self.call.listed)
        if op == "pow" and kind in BITS:
            return f"whole_power_({a}, {b}, '{kind}')", kind
        if op in ("div", "pow"):
            return f"{'div_' if op == 'div' else 'power_'}({as_type(a, s, 'f')}, {as_type(b, t, 'f')})", "f"
        if kind == "f":
            a, b = as_type(a, s, kind), as_type(b, t, kind)
        code = f"{EXACT[op]}({a}, {b})" if op in EXACT else f"({a} {SIGNS[op]} {b})"
        kind = arithmetic(op, s, t) if is_whole(kind) else kind
        return wrap(code, kind), kind

    def function(self, name: str, e: ast.Call) -> tuple[str, str]:
        match name:
            case "pad":
                assert isinstance(e.args[0], ast.Subscript)
                return self.read(e.args[0], self.value(e.args[1]))
            case "present":
                assert isinstance(e.args[0], ast.Name)
                return str(e.args[0].id in self.given), "b"
            case "size" | "position":
                group = e.args[0].id if isinstance(e.args[0], ast.Name) else group_name(e.args[0])
                shape = self.call.groups[group]
                return (f"position_({group_variable(group)}, {shape})" if name == "position" else str(int(np.prod(shape)))), "w"
            case "cast":
                return self.cast(self.call.dtype(ast.unparse(e.args[0])), *self.value(e.args[1]))
            case "maximum" | "minimum":
                return self.binary(name, self.value(e.args[0]), self.value(e.args[1]))
            case "random" | "random_bits" | "philox":
                word = f"random_({', '.join(self.value(a)[0] for a in e.args)})"
                if name != "random":
                    return word, "uint32" if name == "random_bits" else "uint64"
                return f"(({word} >> 8) / 2**24)", "f"
            case "hypot" | "atan2":
                return f"fn_{name}({', '.join(as_type(*self.value(a), 'f') for a in e.args)})", "f"
        code, kind = self.value(e.args[0])
        if name == "stop_gradient":
            return f"stop_({code})", kind
        if name in ("isnan", "isinf"):
            return f"{name}_({as_type(code, kind, 'f')})", "b"
        if name in ("abs", "sign") and kind != "f":
            kind = "w" if is_whole(kind) else kind
            return wrap(f"abs({code})" if name == "abs" else f"int(fn_sign({code}))", kind), kind
        assert name in FUNCTIONS, name
        return f"fn_{name}({as_type(code, kind, 'f')})", "f"

    def cast(self, dtype: str, code: str, kind: str) -> tuple[str, str]:
        if dtype in FLOATS:
            return f"float({code})", "f"
        if dtype == "bool":
            return f"({code} != 0)", "b"
        return f"toint_({code}, '{dtype}')", dtype

    def ordering(self, e: ast.Call, place: ast.expr) -> str:
        """Return the position at a place of an order."""
        assert isinstance(e.func, ast.Subscript)
        kept = dict(self.extents), set(self.bound)
        (item,) = entries(e.func.slice)
        extent = self.range_of(item, e.args[0])
        index = item.lower if isinstance(item, ast.Slice) else item
        assert isinstance(index, ast.Name)
        self.extents[index.id] = extent
        values = f"({self.value(e.args[0])[0]} for i_{index.id} in range({self.value(extent)[0]}))"
        self.extents, self.bound = kept
        descending = self.value(e.args[1])[0] if len(e.args) > 1 else "False"
        return f"order_({values}, {descending})[{self.value(place)[0]}]"

    def reduction(self, kind: str, e: ast.Call) -> tuple[str, str]:
        """Return a reduction as a generator over its axes."""
        assert isinstance(e.func, ast.Subscript)
        kept = dict(self.extents), set(self.bound)
        loops, sizes = [], []
        for item in entries(e.func.slice):
            group = group_name(item)
            if group:
                shape = self.call.groups[group]
                ranges = ", ".join(f"range({s})" for s in shape)
                loops.append(f"for {group_variable(group)} in product_({ranges})")
                sizes.append(str(int(np.prod(shape))))
                continue
            extent = self.range_of(item, e.args[0])
            size = self.value(extent)[0]
            index = item.lower if isinstance(item, ast.Slice) else item
            assert isinstance(index, ast.Name)
            self.extents[index.id] = extent
            loops.append(f"for i_{index.id} in range({size})")
            sizes.append(size)
        code, of = self.value(e.args[0])
        self.extents, self.bound = kept
        every = f"({code} {' '.join(loops)})"
        match kind:
            case "any" | "all":
                return f"{kind}([{every[1:-1]}])", "b"
            case "max" | "min":
                return f"{kind}_({every})", "w" if is_whole(of) else of
            case "argmax" | "argmin":
                return f"place_({kind[3:]}_, {every})", "int64"
            case "mean":
                return f"div_(float(total_({every})), float({'*'.join(f'({s})' for s in sizes)}))", "f"
        result = "f" if of == "f" else "w" if is_whole(of) else "int64"
        code = f"{'total_' if kind == 'sum' else 'prod_'}({every})"
        return (f"float({code})" if result == "f" else wrap(code, result)), result


def group_variable(group: str) -> str:
    return "g_" if group == "..." else f"g_{group}"
