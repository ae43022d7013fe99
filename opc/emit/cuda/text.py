"""The loop IR as CUDA C++: the words in which it differs from that of the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.emit.cpp.expressions import CppText, c_compute
from opc.emit.cpp.layout import wrapped
from opc.emit.cpp.loops import KernelText, symbol_type
from opc.emit.dtypes import c_storage
from opc.ir.dtypes import DType, TypeVar
from opc.ir.expr import StrConst
from opc.ir.op import AttributeKind, Op
from opc.loops.nodes import How, Kernel, Loop
from opc.loops.values import StoredType
from opc.lower.build.context import Nest
from opc.records import dataclass

_STARTS: Mapping[How, tuple[str, str]] = {
    How.TEAMS: ("opc::own_team({described})", "opc::all_teams({described})"),
    How.THREADS: ("opc::thread_of_team(tile)", "tile.team"),
    How.GRID: ("opc::own_thread()", "opc::all_threads()"),
}
"""Where a thread begins in a loop that several share, and how far it goes on each time."""

DESCRIPTION = {"nest": ("device_nest", "nest"), "cuda": ("device_tile", "tile")}
"""The struct that describes the operands of a function of each form, and what it is called there."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A member of the struct of what a function takes beside its operands: an attribute, or a member as the CPU's has them."""

    type: str
    name: str
    attribute: str = ""
    element: int = -1


class CudaText(KernelText):
    """The text of one function on a device; `faults` are what the family's functions report, by their numbers."""

    def __init__(self, op: Op, kernel: Kernel, temporaries: frozenset[str], nest: Nest | None, faults: dict[str, int]) -> None:
        self.faults = faults
        super().__init__(op, kernel, temporaries, nest)

    def text(self, name: str) -> str:
        """Return the definition of the function under a name, with the struct of its arguments."""
        types = [f"typename {t.name}_stored" for t in self.types]
        template = ", ".join([*types, *(["int Tiles"] if self.is_tiled else [])])
        struct, described = DESCRIPTION[self.kernel.form]
        parameters = f"OPC_PARAMETER(opc::{struct}<{len(self.kernel.operands)}>) {described}"
        lines = []
        if self.arguments:
            parameters += f", OPC_PARAMETER({name}_arguments) arguments"
            lines += [f"struct {name}_arguments {{", *(f"  {a.type} {a.name};" for a in self.arguments), "};"]
        if template:
            lines.append(f"template <{template}>")
        head = "OPC_KERNEL(opc::threads_a_block)"
        if self.is_tiled:
            schedule = self.kernel.schedule
            halves = schedule.args("tensor") and self.types
            bytes_ = "2" if schedule.args("compute") else f"sizeof({self.types[0].name}_stored)" if halves else "4"
            blocks, pairs = "blocks_of_weights" if schedule.args("rescale") else "blocks_of_tiles", ""
            if schedule.args("rematerialise"):
                weighs = "factor" in schedule.args("rematerialise")
                blocks, pairs = "blocks_of_factors", f", {schedule.args('products')[0] if weighs else 0}"
            head = f"OPC_TILED_KERNEL(opc::threads_a_block, opc::{blocks}(Tiles, {bytes_}{pairs}))"
        lines.append(f"{head} {name}({parameters}) {{")
        return "\n".join([*wrapped(lines), *self.after])

    @property
    def is_tiled(self) -> bool:
        """Whether the function has an instance for each shape of tiles."""
        return bool(self.kernel.schedule.args("tile"))

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """What the function takes beside its operands."""
        attributes = {(name, element): None for name, element, _ in self.attributes}
        found = [Argument(self._attribute_type(name), _member(name, element), name, element) for name, element in attributes]
        for member in self.symbols:
            kind = symbol_type(member)
            found.append(Argument("opc::device_extents" if kind.endswith("*") else kind, member))
        return tuple(found)

    def _attribute_type(self, name: str) -> str:
        return "opc::real_number" if self.op.attribute(name).kind is AttributeKind.FLOAT else "int64_t"

    def _views(self) -> Iterator[str]:
        return super()._views() if self.kernel.form == "nest" else iter(())

    def _prologue(self) -> Iterator[str]:
        yield from (f"  using {t.name} [[maybe_unused]] = opc::compute<{t.name}_stored>;" for t in self.types)
        for (name, element, target), local in self.attributes.items():
            place, kind = f"arguments.{_member(name, element)}", target or "int64_t"
            real = self.op.attribute(name).kind is AttributeKind.FLOAT
            value = f"{place}.as<{kind}>()" if real else place if kind == "int64_t" else f"{kind}({place})"
            yield f"  const {kind} {local} = {value};"
        for member in self.symbols:
            kind = symbol_type(member)
            pointer = kind.endswith("*")
            declaration = f"const opc::device_extents *const {member}" if pointer else f"const {kind} {member}"
            yield f"  {declaration} = {'&' if pointer else ''}arguments.{member};"

    def _loop_head(self, s: Loop) -> str:
        shared = _STARTS.get(s.how)
        if shared is None:
            return super()._loop_head(s)
        own, step = (text.format(described=DESCRIPTION[self.kernel.form][1]) for text in shared)
        low = self.integer(s.low)
        if s.step is not None:
            own, step = f"{own} * {self.integer(s.step)}", f"{step} * {self.integer(s.step)}"
        start = own if low == "0" else f"{low} + {own}"
        return f"for (int64_t {s.index} = {start}; {s.index} < {self.integer(s.high)}; {s.index} += {step})"

    def _kind(self, kind: object) -> str:
        if isinstance(kind, StoredType):
            return f"{'const ' if kind.constant else ''}{self.stored(kind.of, kind.operand)}"
        return super()._kind(kind)  # type: ignore[arg-type]  # it is one of those

    def _fault(self, e: StrConst) -> CppText:
        return CppText(str(self.faults.setdefault(e.value, len(self.faults) + 1)), 8, e.type)

    def stored(self, of: object, name: str) -> str:
        """Return the C++ type that an operand is stored as; temporaries are stored as they are computed."""
        if name not in self.temporaries and isinstance(of, DType):
            return c_storage(of)
        if name not in self.temporaries and isinstance(of, TypeVar):
            return f"{of.name}_stored"
        return c_compute(of)  # type: ignore[arg-type]  # it is the type of a value


CudaText.WRITERS = {**KernelText.WRITERS, StrConst: CudaText._fault}


def _member(name: str, element: int) -> str:
    return f"attribute_{name}" + ("" if element < 0 else f"_{element}")
