"""What a row stage does at a point, as C++: the elements that are read there, and values that are kept, folded and put."""

from __future__ import annotations

from collections.abc import Iterator

from opc.emit.cpp.expressions import Text, c_compute
from opc.emit.cpp.layout import Names, present_member, size_member, spec_names
from opc.emit.rows.expressions import RowExprText
from opc.emit.rows.folds import is_extreme
from opc.ir.affine import Dim, GroupSize, Index
from opc.ir.dtypes import is_floating
from opc.ir.expr import Read, reads
from opc.ir.op import Op
from opc.lower.loop_ir import Action, Fold, IndexLoop, Keep, Let, Pass, Put, RowStage

_ASSIGNMENT = {"sum": "+=", "prod": "*=", "any": "|=", "all": "&="}


def loaded(kind: str) -> str:
    """Return the C type that the elements of an operand's row are loaded as: no compiler vectorises a load of a `bool`."""
    return "uint8_t" if kind == "bool" else kind


class ActionText:
    """The actions of one row stage, and the names they use; `attributes` and `symbols` are what they read of the call."""

    def __init__(self, op: Op, stage: RowStage) -> None:
        self.op, self.stage = op, stage
        self.names = Names(spec_names(op) | {a.name for p in stage.passes for a in (*p.prologue, *p.body)})
        loop = stage.row[0] if len(stage.row) == 1 else None
        self.index_of_row = loop.index if stage.whole_rows and isinstance(loop, IndexLoop) else ""
        self.tile = self.names.fresh("tile")
        self.row = self.names.fresh("row")
        self.arguments = self.names.fresh("arguments")
        self.call = self.names.fresh("call")
        self.index = self.names.fresh(self.index_of_row or "i")
        self.place, self.once_place = self.index, "[0]"
        self.attributes: dict[tuple[str, int, str], str] = {}
        self.symbols: dict[str, None] = {}
        self.values: dict[str, Text] = {}
        self.here: dict[str, str] = {}
        self.pointers: dict[str, str] = {}
        self.varying = frozenset(o.name for o in stage.operands if o.along_row) | {
            a.name for p in stage.passes for a in p.body if isinstance(a, Let | Keep)
        }
        self.expr = RowExprText(op, self._read, self._attribute, self._symbol, self._present)

    def _loads(self, p: Pass, margin: str, still: bool = False) -> Iterator[str]:
        """Yield the declarations of the elements that a pass reads at a point, or of those it reads once a stretch.

        They are loaded whatever is chosen: under a choice, a load is a branch to the compiler, which then leaves the loop scalar.
        """
        kept = {a.name: a for q in self.stage.passes for a in q.body if isinstance(a, Keep) and q is not p}
        for name in dict.fromkeys(r.operand for a in p.body for r in reads(a.value)):
            if (name in self.stage.still) != still:
                continue
            if name in kept:
                pointer, local = self._buffer(kept[name]), self.names.fresh(f"{name}_here")
                self.values[name] = Text(local, 8, kept[name].type)
            elif any(o.name == name and o.along_row and not o.written for o in self.stage.operands):
                pointer, local = self.pointers[name], name
            else:
                continue
            kind = c_compute(self.values[name].type)
            test = "" if loaded(kind) == kind or name in kept else " != 0"
            yield f"{margin}const {kind} {local} = {pointer}[{self.place}]{test};"

    def _buffer(self, keep: Keep) -> str:
        """Return the row a kept value stands in."""
        return keep.name if keep.host is None else self.pointers[keep.host]

    def _action(self, a: Action, margin: str, place: str) -> Iterator[str]:
        kind = c_compute(a.type)
        match a:
            case Let():
                text = self.expr.convert(a.value, a.type)
                self.values[a.name] = Text(a.name, 8, a.type)
                yield f"{margin}const {kind} {a.name} = {text.text};"
            case Keep():
                text = self.expr.convert(a.value, a.type)
                self.values[a.name] = Text(f"{self._buffer(a)}{place}", 8, a.type)
                yield self._wanted(a.name, margin, f"{self._buffer(a)}{place} = {text.text};")
            case Fold() if is_extreme(a):
                yield f"{margin}{a.name}.take({self.expr.convert(a.value, a.type).text});"
            case Fold(kind="max" | "min"):
                text = self.expr.convert(a.value, a.type)
                here = self.names.fresh(f"{a.name}_here")
                yield f"{margin}const auto {here} = opc::{a.kind}_key({text.text});"
                yield f"{margin}{a.name} = {here} {'>' if a.kind == 'max' else '<'} {a.name} ? {here} : {a.name};"
            case Fold():
                text = self.expr.convert(a.value, a.type)
                yield f"{margin}{a.name} {_ASSIGNMENT[a.kind]} {text.text};"
            case Put():
                operand = self.stage.operand(a.name)
                text = self.expr.convert(a.value, operand.type)
                target = self.here.get(a.name) or f"{self.pointers[a.name]}{place if operand.along_row else self.once_place}"
                assign = "+=" if operand.reduction == "sum" else "="  # partial sums, to which each row adds
                yield self._wanted(a.name, margin, f"{target} {assign} {text.text};", put=True)

    def _wanted(self, name: str, margin: str, statement: str, put: bool = False) -> str:
        needed = frozenset([name]) if put and self.stage.optional else self.stage.needed.get(name, frozenset())
        if not needed:
            return f"{margin}{statement}"
        condition = " || ".join(f"want_{n}" for n in self.stage.optional if n in needed)
        return f"{margin}if constexpr ({condition}) {statement}"

    def _read(self, e: Read) -> Text:
        value = self.values[e.operand]
        optional = any(i.name == e.operand and i.optional for i in self.op.inputs)
        if optional and e.operand not in self.expr.given and self.stage.operand(e.operand).along_row:
            # A value computed ahead of the choice that asks for the operand: where it is absent, the value is not used.
            kind, present = c_compute(value.type), self._present(e.operand)
            if is_floating(value.type):
                return Text(f"opc::blend<{kind}>({present}, {value.text}, 0)", 8, value.type)
            return Text(f"({present} ? {value.text} : {kind}(0))", 8, value.type)
        return value

    def _attribute(self, name: str, element: int, target: str) -> str:
        key = (name, element, target)
        if key not in self.attributes:
            wanted = name if element < 0 else f"{name}_{element}"
            others = any(k[0] == name and k[1] == element for k in self.attributes)
            self.attributes[key] = self.names.fresh(wanted) if others or element >= 0 else wanted
        return self.attributes[key]

    def _symbol(self, symbol: Dim | GroupSize | Index) -> str:
        if isinstance(symbol, Index):
            assert symbol.name == self.index_of_row, "only the index of the row is used as a number"
            return self.index
        member = size_member(symbol)
        self.symbols[member] = None
        return member

    def _present(self, operand: str) -> str:
        member = present_member(operand)
        self.symbols[member] = None
        return member
