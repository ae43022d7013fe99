"""Checks that an op is well formed. Run after every pass; what it finds is a bug of opc, never of the user."""

from __future__ import annotations

from collections import Counter

from opc.ir.affine import Affine, AttrInt, Dim, GroupSize, Index
from opc.ir.dtypes import DType, TypeVar, Weak, is_bool, is_floating, is_integer
from opc.ir.expr import (
    AttrRef,
    Axis,
    BroadcastAxis,
    Call,
    Cast,
    Const,
    Expr,
    GroupAxis,
    GroupIndex,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Reduce,
    Select,
    StrConst,
    TypeIs,
    reads,
    walk,
)
from opc.ir.functions import FUNCTIONS
from opc.ir.node import remembered
from opc.ir.op import Assign, AttributeKind, Group, Op, Operand
from opc.ir.printer import format_expr
from opc.ir.promotion import join, result_type
from opc.ir.recurrence import NoRecurrence, NotSteppingError, circles, stepping
from opc.ir.rules import assignable, common_type, needs_width, reduction_type


class VerifyError(Exception):
    """An op breaks a rule of the IR: a bug of the pass that made it."""


class StepsVerifyError(VerifyError):
    """Statements read one another in a circle that is no recurrence; its cause says why."""


@remembered("_verified")
def verify(op: Op) -> None:
    """Check the rules of the IR on an op.

    Names are defined once and before use, but for what a recurrence reads of itself; every output and temporary is assigned
    once, on all its axes; index variables and groups are bound and not shadowed; reads fit their operand's axes; every node has
    the type that its parts give it. An op that a pass has left as it is has been checked before.

    Raises:
        VerifyError: with the op, the statement and what is wrong with it.
    """
    _OpVerifier(op).run()


def verify_reads(op: Op) -> None:
    """Check that reads have the types of their operands, which lowered ops keep too: in kernels a type says how memory is read.

    Raises:
        VerifyError: with the op, the statement and the read.
    """
    for s in op.body:
        for read in reads(s.value):
            kind = op.operand(read.operand).type
            if read.type != kind:
                raise VerifyError(f"{op.name}: {s.target}: a read of '{read.operand}' has type {read.type}, and that is {kind}")


class _OpVerifier:
    def __init__(self, op: Op) -> None:
        self.op = op
        self.where = "signature"
        self.operands: dict[str, Operand] = {}
        self.attributes = {a.name: a for a in op.attributes}
        self.dims: set[str] = set()
        self.groups: set[str] = set()
        self.indices: set[str] = set()
        self.open_groups: set[str] = set()
        self.circles: dict[str, tuple[str, ...]] = {}

    def _need(self, holds: bool, message: str, *parts: object) -> None:
        """Raise unless `holds`, with the parts put into the message: they are printed only then, for printing is dear."""
        if not holds:
            text = message.format(*(format_expr(p) if isinstance(p, Expr) else p for p in parts)) if parts else message
            raise VerifyError(f"{self.op.name}: {self.where}: {text}")

    def run(self) -> None:
        op = self.op
        self._signature()
        targets = {o.name: o for o in (*op.outputs, *op.temporaries)}
        counts = Counter(s.target for s in op.body)
        self.circles = {name: circle for circle in circles(op) for name in circle}
        for circle in dict.fromkeys(self.circles.values()):
            found = stepping(op, circle)
            self.where = f"the recurrence of {', '.join(circle)}"
            if isinstance(found, NoRecurrence):
                text = f"'{found.read.operand}' is read before it is assigned: {found.reason}"
                raise StepsVerifyError(f"{self.op.name}: {self.where}: {text}") from NotSteppingError(found.reason)
        for s in op.body:
            self.where = f"the statement of '{s.target}'"
            self._need(s.target in targets, f"'{s.target}' is no output or temporary")
            self._need(counts[s.target] == 1, "'{}' is assigned {} times", s.target, counts[s.target])
            circle = self.circles.get(s.target, ())
            ahead = {name: targets[name] for name in circle if name not in self.operands}
            self.operands |= ahead  # `stepping` has told that what is read of them is there
            self._statement(s, targets[s.target])
            for name in ahead:
                del self.operands[name]
            self.operands[s.target] = targets[s.target]
        self.where = "body"
        for name in targets if not op.opaque else ():
            self._need(name in counts, f"'{name}' is not assigned")

    def _signature(self) -> None:
        op = self.op
        names = [o.name for o in op.operands] + [a.name for a in op.attributes]
        for name, count in Counter(names).items():
            self._need(count == 1, "'{}' is declared {} times", name, count)
        types = {t.name: t for t in op.types}
        for o in op.operands:
            base = getattr(o.type, "of", o.type)
            self._need(not isinstance(base, TypeVar) or types.get(base.name) == base, f"the type of '{o.name}' is not declared")
        for o in op.inputs:
            self.operands[o.name] = o
            for d in o.dims:
                if isinstance(d, Affine):
                    self.dims |= {a.name for a in d.atoms() if isinstance(a, Dim)}
                else:
                    self.groups.add(d.name)
        for name, size in op.dims:
            self._affine(size)
            self.dims.add(name)
        for o in (*op.outputs, *op.temporaries):
            for d in o.dims:
                if isinstance(d, Affine):
                    self._affine(d)
                else:
                    self._need(d.name in self.groups, f"'{o.name}' has the unknown group {d}")
        for condition in [r.condition for r in op.require] + [a.check for a in op.attributes if a.check is not None]:
            self._need(is_bool(condition.type), "the condition {} is no boolean", condition)
            self._expr(condition)
        inputs, outputs = {o.name for o in op.inputs}, {o.name for o in op.outputs}
        for y, x in op.inplace:
            self._need(y in outputs and x in inputs, f"{y} can't be in place of {x}")
        if op.derivation is not None:
            self._need(len(op.derivation.inputs) == len(op.inputs), "the derivation does not tell every input")
            self._need(len(op.derivation.outputs) == len(op.outputs), "the derivation does not tell every output")

    def _statement(self, s: Assign, target: Operand) -> None:
        self._need(len(s.indices) == len(target.dims), "{} indices on {} axes", len(s.indices), len(target.dims))
        self.indices = {i for i in s.indices if isinstance(i, str)}
        self.open_groups = {i.name for i in s.indices if isinstance(i, GroupRef)}
        self._need(len(self.indices) + len(self.open_groups) == len(s.indices), "an index stands twice on the left")
        for index, dim in zip(s.indices, target.dims):
            fits = isinstance(dim, Affine) if isinstance(index, str) else isinstance(dim, Group) and dim.name == index.name
            self._need(fits, "{} stands on the axis {}", index, dim)
        self._expr(s.value)
        self._need(not isinstance(s.value, StrConst), "a text is no value")
        self._need(assignable(s.value.type, target.type), "a value of type {} in {}", s.value.type, target.type)

    def _affine(self, e: Affine) -> None:
        for atom in e.atoms():
            match atom:
                case Index():
                    self._need(atom.name in self.indices, "the index {} is not bound", atom)
                case Dim():
                    self._need(atom.name in self.dims, "the dimension {} is not known", atom)
                case GroupSize():
                    self._need(atom.name in self.groups, "the group of {} is not known", atom)
                case AttrInt():
                    self._attribute(atom.name, atom.element)
                    wanted = (
                        AttributeKind.STR if atom.text is not None else AttributeKind.BOOL if atom.flag else AttributeKind.INT
                    )
                    self._need(self.attributes[atom.name].kind is wanted, "{} is no {} attribute", atom, wanted.value)
                    known = atom.text is None or atom.text in (self.attributes[atom.name].values or ())
                    self._need(known, "{} has no value {!r}", atom.name, atom.text)

    def _attribute(self, name: str, element: int) -> None:
        self._need(name in self.attributes, f"the attribute '{name}' is not declared")
        length = self.attributes[name].length
        fits = element < 0 if length is None else 0 <= element < length
        self._need(fits, "'{}' has no element {}", name, element)

    def _expr(self, e: Expr) -> None:
        match e:
            case Const():
                self._const(e)
            case StrConst():
                pass
            case AttrRef():
                self._attribute(e.name, e.element)
                kind = self.attributes[e.name].kind
                wanted = {AttributeKind.INT: Weak.INT, AttributeKind.FLOAT: Weak.FLOAT}.get(kind, DType.BOOL)
                self._need(e.type is wanted, "the attribute '{}' has type {}", e.name, e.type)
            case IndexValue():
                self._affine(e.value)
            case GroupIndex():
                self._need(e.group in self.groups, "the group of {} is not known", GroupRef(e.group))
            case Read():
                self._read(e)
            case Call():
                for a in e.args:
                    self._expr(a)
                self._need(e.fn in FUNCTIONS, f"the function '{e.fn}' is not in the table")
                self._need(len(e.args) == FUNCTIONS[e.fn].arity, "{} of {} arguments", e.fn, len(e.args))
                result = result_type(FUNCTIONS[e.fn], tuple(a.type for a in e.args))
                self._need(result == e.type, "{} has type {}, and its parts give {}", e, e.type, result)
                self._wide(e, e.args)
            case Select():
                for part in (e.cond, e.then, e.other):
                    self._expr(part)
                self._need(is_bool(e.cond.type), "the condition {} is no boolean", e.cond)
                result = join(e.then.type, e.other.type)
                self._need(result == e.type, "{} has type {}, and its sides give {}", e, e.type, result)
                self._wide(e, (e.then, e.other))
            case Reduce():
                self._reduce(e)
            case Cast():
                self._expr(e.arg)
                self._need(not isinstance(e.type, Weak), "a cast to a weak type")
            case Present():
                operand = self.operands.get(e.operand)
                self._need(operand is not None and operand.optional, f"'{e.operand}' is no optional operand")
            case TypeIs():
                among = next((t.dtypes for t in self.op.types if t.name == e.variable), ())
                self._need(set(e.dtypes) < set(among), "{} asks what is known", e)

    def _wide(self, e: Expr, parts: tuple[Expr, ...]) -> None:
        common = common_type(tuple(p.type for p in parts))
        self._need(not needs_width(parts, common), "{} cuts a whole number to fit {}", e, common)

    def _const(self, e: Const) -> None:
        if isinstance(e.value, bool):
            self._need(is_bool(e.type), "the boolean {} has type {}", e.value, e.type)
        elif isinstance(e.value, float):
            self._need(is_floating(e.type), "the number {} has type {}", e.value, e.type)
        else:
            self._need(not is_bool(e.type), "the number {} has type {}", e.value, e.type)

    def _read(self, e: Read) -> None:
        self._need(e.operand in self.operands, f"'{e.operand}' is read before it is assigned")
        operand = self.operands[e.operand]
        self._need(e.type == operand.type, "a read of '{}' has type {}, and that is {}", e.operand, e.type, operand.type)
        self._need(len(e.indices) == len(operand.dims), "{} has {} indices for {}", e, len(e.indices), len(operand.dims))
        for index, dim in zip(e.indices, operand.dims):
            match index:
                case GroupRef():
                    fits = isinstance(dim, Group) and dim.name == index.name
                    self._need(index.name in self.open_groups, "nothing binds {} in {}", index, e)
                case Affine():
                    fits = isinstance(dim, Affine)
                    self._affine(index)
                case _:
                    fits = isinstance(dim, Affine)
                    self._expr(index)
                    self._need(is_integer(index.type), "the index {} has type {}", index, index.type)
            self._need(fits, "{} has {} on the axis {}", e, index, dim)
        if e.pad is not None:
            self._expr(e.pad)
            self._need(not any(isinstance(part, Read) for part in walk(e.pad)), "the pad of {} reads", e)
            self._need(assignable(e.pad.type, operand.type), "the pad of {} has type {}", e, e.pad.type)
        self._need(all(0 <= k < len(e.indices) for k in e.checked), "{} checks an axis it has not", e)

    def _reduce(self, e: Reduce) -> None:
        indices, groups = self.indices, self.open_groups
        self._need(bool(e.axes), f"{e.kind} over no axis")
        new: set[str] = set()
        for axis in e.axes:
            match axis:
                case Axis():
                    self._need(axis.index not in indices | new, "the index {} is bound twice", axis.index)
                    self._affine(axis.extent)
                    new.add(axis.index)
                case GroupAxis() | BroadcastAxis():
                    self._need(axis.name in self.groups, "the group of {} is not known", axis)
                    groups = groups | {axis.name}
                    if isinstance(axis, BroadcastAxis):
                        known = {o.name for o in self.op.inputs} | {
                            g.of for o in self.op.outputs for g in o.dims if isinstance(g, Group)
                        }
                        self._need(self.op.broadcast and axis.operand in known, f"{axis} names no broadcast operand")
        kept = self.indices, self.open_groups
        self.indices, self.open_groups = indices | new, groups
        self._expr(e.body)
        self.indices, self.open_groups = kept
        result = reduction_type(e.kind, e.body.type)
        self._need(result == e.type, "{} has type {}, and its body gives {}", e, e.type, result)
