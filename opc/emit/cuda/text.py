"""The loop IR as CUDA C++: the words in which it differs from that of the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.emit.cpp.expressions import CppText, c_compute
from opc.emit.cpp.layout import wrapped
from opc.emit.cpp.loops import KernelText, symbol_type
from opc.emit.cuda.given import chosen, is_given
from opc.emit.dtypes import c_storage
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Mod
from opc.ir.dtypes import DType, TypeVar, ValueType, Weak, is_floating
from opc.ir.expr import Call, Cast, Const, Expr, IndexValue, StrConst
from opc.ir.op import AttributeKind, Op
from opc.ir.precedence import CPP
from opc.loops.names import DEVICE_PARAMETERS
from opc.loops.nodes import How, Kernel, Let, Loop
from opc.loops.values import Intrinsic, Load, Local, StoredType
from opc.lower.build.context import Nest
from opc.records import dataclass

_STARTS: Mapping[How, tuple[str, str]] = {
    How.TEAMS: ("opc::own_team({described})", "opc::all_teams({described})"),
    How.THREADS: ("opc::thread_of_team(tile)", "tile.team"),
    How.GRID: ("opc::own_thread()", "opc::all_threads()"),
}
"""Where a thread begins in a loop that several share, and how far it goes on each time."""


_DIVISORS: Mapping[str, int] = {"narrow_low": 2, "narrow_high": 2, "count_terms": 2, "quotient_by": 0, "rest_of": 0}
"""The intrinsics that divide, and which of their arguments they divide by."""

DESCRIPTION = {"nest": ("device_nest", "nest"), "cuda": ("device_tile", "tile")}
"""The struct that describes the operands of a function of each form, and what it is called there."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A member of the struct of what a function takes beside its operands: an attribute, or a member as the CPU's has them."""

    type: str
    name: str
    attribute: str = ""
    element: int = -1
    by: Affine | None = None
    """What numbers are divided by, of a divisor."""
    value: Expr | None = None
    """What the host computes, of a value that is given."""


class CudaText(KernelText):
    """The text of one function on a device; `faults` are what the family's functions report, by their numbers."""

    def __init__(self, op: Op, kernel: Kernel, temporaries: frozenset[str], nest: Nest | None, faults: dict[str, int]) -> None:
        self.faults = faults
        self.divisors: dict[Affine, str] = {}
        """What many numbers are divided by, and the members that hold factors for it."""
        self.given_values: dict[Expr, str] = {}
        """What the host computes, and the members that hold it."""
        self.given_locals: set[str] = set()
        """The variables that hold such values."""
        super().__init__(op, kernel, temporaries, nest)

    def text(self, name: str) -> str:
        """Return the definition of the function under a name, with the struct of its arguments."""
        return self._defined([*self.arguments_struct(name), *self._head(name)])

    def arguments_struct(self, name: str) -> list[str]:
        """Return the struct of what the function under a name takes beside its operands; nothing where it has none."""
        members = [f"  {a.type} {a.name};" for a in self.arguments]
        return [f"struct {name}_arguments {{", *members, "};"] if members else []

    def definition(self, name: str) -> str:
        """Return the definition of the function under a name, without the struct of its arguments."""
        return self._defined(self._head(name))

    def _defined(self, head: list[str]) -> str:
        small = ["  using whole = typename Nest::whole;"] if self.may_be_small else []
        return "\n".join([*wrapped([*head[:-1], f"{head[-1]} {{", *small]), *self.after])

    def _head(self, name: str) -> list[str]:
        """Return what a declaration of the function begins with, under a name."""
        types = [f"typename {t.name}_stored" for t in self.types]
        kind = (
            ["int Tiles"]
            if self.is_tiled
            else ["bool Plain"]
            if self.is_packed
            else ["typename Nest"]
            if self.may_be_small
            else []
        )
        template = ", ".join([*types, *kind])
        described = "described" if self.is_packed else DESCRIPTION[self.kernel.form][1]
        parameters = f"OPC_PARAMETER({'Nest' if self.may_be_small else self.description()}) {described}"
        if self.arguments:
            parameters += f", OPC_PARAMETER({name}_arguments) arguments"
        resident = self.kernel.schedule.args("occupancy")
        head = f"OPC_ROW_KERNEL(opc::most_threads_a_row, {resident[0]})" if resident else "OPC_KERNEL(opc::threads_a_block)"
        if self.is_tiled:
            schedule = self.kernel.schedule
            halves = schedule.args("tensor") and self.types
            bytes_ = "2" if schedule.args("compute") else f"sizeof({self.types[0].name}_stored)" if halves else "4"
            blocks, pairs = "blocks_of_weights" if schedule.args("rescale") else "blocks_of_tiles", ""
            if schedule.args("rematerialise"):
                weighs = "factor" in schedule.args("rematerialise")
                blocks, pairs = "blocks_of_factors", f", {schedule.args('products')[0] if weighs else 0}"
            head = f"OPC_TILED_KERNEL(opc::threads_a_block, opc::{blocks}(Tiles, {bytes_}{pairs}))"
        return [*([f"template <{template}>"] if template else []), f"{head} {name}({parameters})"]

    @property
    def parameters(self) -> frozenset[str]:
        """As `KernelText` says."""
        return DEVICE_PARAMETERS.union(f"{t.name}_stored" for t in self.types)

    def description(self, *, small: bool = False) -> str:
        """Return the C++ type that describes the operands, of a small nest or any."""
        struct = "small_nest" if small else DESCRIPTION[self.kernel.form][0]
        return f"opc::{struct}<{len(self.kernel.operands)}>"

    @property
    def may_be_small(self) -> bool:
        """Whether the function has an instance for nests whose numbers have 32 bits."""
        return bool(self.kernel.schedule.args("index"))

    @property
    def is_tiled(self) -> bool:
        """Whether the function has an instance for each shape of tiles."""
        return bool(self.kernel.schedule.args("tile"))

    @property
    def instances(self) -> int:
        """How many instances the function has for the same dtypes: for shapes of tiles, or for plain rows and others."""
        return 3 if self.is_tiled else 2 if self.is_packed else 1

    @property
    def is_packed(self) -> bool:
        """Whether the function goes along rows in packs: it may have an instance for plain stages."""
        return bool(self.kernel.schedule.args("unroll"))

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """What the function takes beside its operands."""
        attributes = {(name, element): None for name, element, _ in self.attributes}
        found = [Argument(self._attribute_type(name), _member(name, element), name, element) for name, element in attributes]
        for member in self.symbols:
            kind = symbol_type(member)
            found.append(Argument("opc::device_extents" if kind.endswith("*") else kind, member))
        found += [Argument("opc::divisor", member, by=by) for by, member in self.divisors.items()]
        for value, member in self.given_values.items():
            found.append(Argument("bool" if value.type is DType.BOOL else "opc::real_number", member, value=value))
        return tuple(found)

    def _attribute_type(self, name: str) -> str:
        return "opc::real_number" if self.op.attribute(name).kind is AttributeKind.FLOAT else "int64_t"

    @property
    def integer_type(self) -> str:
        """As `ExprText` says: a small nest has numbers of 32 bits."""
        return "whole" if self.may_be_small else super().integer_type

    @property
    def extremes(self) -> Mapping[str, str]:
        """As `KernelText` says."""
        return {"max": "larger", "min": "smaller"} if self.may_be_small else super().extremes

    def _view_type(self, stored: str) -> str:
        return "auto" if self.may_be_small else super()._view_type(stored)

    def _views(self) -> Iterator[str]:
        return super()._views() if self.kernel.form == "nest" else iter(())

    def _prologue(self) -> Iterator[str]:
        if self.is_packed:
            yield "  const auto &tile = opc::tile_as<Plain>(described);"
        yield from (f"  using {t.name} [[maybe_unused]] = opc::compute<{t.name}_stored>;" for t in self.types)
        for (name, element, target), local in self.attributes.items():
            place, kind = f"arguments.{_member(name, element)}", target or self.integer_type
            real = self.op.attribute(name).kind is AttributeKind.FLOAT
            value = f"{place}.as<{kind}>()" if real else place if kind == "int64_t" else f"{kind}({place})"
            yield f"  const {kind} {local} = {value};"
        for member, local in self.symbols.items():
            kind = symbol_type(member)
            pointer = kind.endswith("*")
            declaration = f"const opc::device_extents *const {local}" if pointer else f"const {kind} {local}"
            if self.may_be_small and kind == "int64_t":
                yield f"  const whole {local} = static_cast<whole>(arguments.{member});"
                continue
            yield f"  {declaration} = {'&' if pointer else ''}arguments.{member};"

    def convert(self, e: Expr, wanted: ValueType) -> CppText:
        """As `ExprText` says: what the host computes is there in either precision."""
        if e.type is Weak.FLOAT and self._is_given(e):
            return CppText(f"{self._given(e)}.as<{self.computed(wanted)}>()", CPP.atom, wanted, True)
        if is_floating(wanted) and (twice := _twice(e)) is not None:
            # It is rounded once, as in double precision.
            target = self.computed(wanted)
            return CppText(f"{target}({self.affine(twice)}) * {target}(0.5)", CPP.strength["mul"], wanted, True)
        if is_floating(wanted) and (choice := chosen(e, wanted)) is not None:
            return super().convert(choice, wanted)
        return super().convert(e, wanted)

    def expr(self, e: Expr) -> CppText:
        """As `ExprText` says, but for what the host computes."""
        if not self._is_given(e):
            return super().expr(e)
        if e.type is DType.BOOL:
            return CppText(self._given(e), CPP.atom, e.type, True)
        return self.convert(e, e.type)

    def _is_given(self, e: Expr) -> bool:
        return e.name in self.given_locals if isinstance(e, Local) else is_given(e)

    def _given(self, e: Expr) -> str:
        """Return what holds what the host computes."""
        if isinstance(e, Local):
            self.read.add(e.name)
            return e.name
        return f"arguments.{self.given_values.setdefault(e, f'value_{len(self.given_values) + 1}')}"

    def _cast(self, e: Cast) -> CppText:
        return self.convert(e.arg, e.type) if is_floating(e.type) and self._is_given(e.arg) else super()._cast(e)

    def _within(self, e: Expr, kind: ValueType) -> str:
        return self.convert(e, kind).text if self._is_given(e) else super()._within(e, kind)

    def _let(self, s: Let) -> str:
        if s.kind is not Weak.FLOAT or not self._is_given(s.value):
            return super()._let(s)
        # Whoever reads it takes it in a precision of its own.
        self.given_locals.add(s.name)
        return f"const opc::real_number &{s.name} = {self._given(s.value)};"

    def _loop_head(self, s: Loop) -> str:
        shared = _STARTS.get(s.how)
        if shared is None:
            return super()._loop_head(s)
        own, step = (text.format(described=DESCRIPTION[self.kernel.form][1]) for text in shared)
        low = self.integer(s.low)
        if s.step is not None:
            own, step = f"{own} * {self.integer(s.step)}", f"{step} * {self.integer(s.step)}"
        start = own if low == "0" else f"{low} + {own}"
        return f"for ({self.integer_type} {s.index} = {start}; {s.index} < {self.integer(s.high)}; {s.index} += {step})"

    def _intrinsic(self, e: Intrinsic) -> str:
        at = _DIVISORS.get(e.name, -1)
        args = [
            self._divisor(a.value) if n == at and isinstance(a, IndexValue) else self.integer(a) for n, a in enumerate(e.args)
        ]
        return f"{self._callee(e)}({', '.join(args)})"

    def _atom(self, atom: Atom) -> str:
        if self.nest is None or not isinstance(atom, FloorDiv | Mod):
            return super()._atom(atom)
        if self._is_divisor(atom.denominator) and self.nest.positive(atom.denominator):
            found = "floor_by" if isinstance(atom, FloorDiv) else "rest_by"
            return f"opc::{found}<{self.integer_type}>({self._divisor(atom.denominator)}, {self.affine(atom.numerator)})"
        return super()._atom(atom)

    def _divisor(self, by: Affine) -> str:
        """Return what divides by a number that is greater than zero where anything is divided by it."""
        if by.constant is not None:
            return f"opc::constant_divisor<{by.constant}>()"
        if not self._is_divisor(by):
            return f"opc::found_divisor<{self.integer_type}>{{{self.affine(by)}}}"
        return f"arguments.{self.divisors.setdefault(by, f'by_{len(self.divisors) + 1}')}"

    def _element(self, e: Load) -> str:
        view, offset = e.view, self.integer(e.offset)
        self.read.add(view)
        # An offset is a number of its own, which is found in as many bits as it needs.
        return f"opc::load({view}.data + ({offset}))" if self.may_be_small else super()._element(e)

    def _is_divisor(self, by: Affine) -> bool:
        """Whether a number is made of sizes and attributes, but is not a plain one."""
        atoms = {atom for monomial, _ in by.terms for atom in monomial}
        return bool(atoms) and all(isinstance(atom, AttrInt | Dim | GroupSize) for atom in atoms)

    def _kind(self, kind: object) -> str:
        if isinstance(kind, StoredType):
            return f"{'const ' if kind.constant else ''}{self.stored(kind.of, kind.operand)}"
        return super()._kind(kind)  # type: ignore[arg-type]  # it is one of those

    def _fault(self, e: StrConst) -> CppText:
        return CppText(str(self.faults.setdefault(e.value, len(self.faults) + 1)), CPP.atom, e.type)

    def _call(self, e: Call) -> CppText:
        """As `CppText` says; a product with a power of two is kept apart from the product before it."""
        factor = _scale(e)
        if factor is None:
            return super()._call(e)
        value = self.convert(e.args[0] if e.args[1] is factor[0] else e.args[1], e.type)
        return CppText(f"opc::scaled<{c_compute(e.type)}>({value.text}, {factor[1]!r})", CPP.atom, e.type)

    def stored(self, of: object, name: str) -> str:
        """Return the C++ type that an operand is stored as; temporaries are stored as they are computed."""
        if name not in self.temporaries and isinstance(of, DType):
            return c_storage(of)
        if name not in self.temporaries and isinstance(of, TypeVar):
            return f"{of.name}_stored"
        return c_compute(of)  # type: ignore[arg-type]  # it is the type of a value


CudaText.WRITERS = {**KernelText.WRITERS, StrConst: CudaText._fault, Call: CudaText._call, Cast: CudaText._cast}
CudaText.STATEMENTS = {**KernelText.STATEMENTS, Let: CudaText._let}

_MOST_HALVES = 1 << 10

_SCALES = frozenset((2, 4, 8, 0.5, 0.25, 0.125))
"""The factors that ptxas takes into the product before them, which then does not overflow where it should."""


def _twice(e: Expr) -> Affine | None:
    """Return two times a value, of a place and an odd number of halves such as `i + 0.5`; None of any other.

    A nest in 32 bits has room for that much.
    """
    if not isinstance(e, Call) or e.type is not Weak.FLOAT or e.fn not in ("add", "sub"):
        return None
    signs = (1, 1 if e.fn == "add" else -1)
    places = [(a.value, sign) for a, sign in zip(e.args, signs, strict=True) if isinstance(a, IndexValue)]
    halves = [(a.value * 2, sign) for a, sign in zip(e.args, signs, strict=True) if isinstance(a, Const)]
    if len(places) != 1 or len(halves) != 1 or not float(halves[0][0]).is_integer() or abs(halves[0][0]) > _MOST_HALVES:
        return None
    (place, sign), (half, other) = places[0], halves[0]
    return place * (2 * sign) + int(half) * other


def _scale(e: Call) -> tuple[Const, float] | None:
    """Return the literal power of two of a product, or that a product is divided by, and the factor that it is."""
    if e.fn not in ("mul", "div") or not is_floating(e.type):
        return None
    found = next((a for a in e.args if isinstance(a, Const) and a.value in _SCALES), None)
    if found is None or isinstance(found.value, bool) or (e.fn == "div" and found is not e.args[1]):
        return None
    return found, 1 / found.value if e.fn == "div" else float(found.value)


def _member(name: str, element: int) -> str:
    return f"attribute_{name}" + ("" if element < 0 else f"_{element}")
