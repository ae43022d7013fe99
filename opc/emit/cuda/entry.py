"""The functions of the C ABI on a device: the checks of the CPU's function, then each stage described and its kernel started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opc.emit.abi import attributes_type
from opc.emit.cpp.layout import present_member, size_member, wrapped
from opc.emit.cpp.text import message_literal
from opc.emit.cpp.values import axes_member
from opc.emit.cuda.given import GivenText
from opc.emit.cuda.text import Argument, CudaText
from opc.emit.cuda.tiles import TileEntryText
from opc.emit.kernel.asked import asked_for
from opc.emit.kernel.nests import dtype_text, memory_text
from opc.emit.shapes.cpp import checks, group_member, struct_name, type_member
from opc.ir.affine import Affine, Dim, GroupSize
from opc.ir.dtypes import DType, TypeVar
from opc.ir.expr import Axis
from opc.ir.op import Family, Group, Op
from opc.lower.build.context import Nest
from opc.lower.cuda.forms import Move, Packs, Points, form_of
from opc.lower.cuda.library import library_product_of
from opc.lower.cuda.packed import along
from opc.lower.cuda.points import neighbouring_axis, shared_terms
from opc.lower.cuda.products import Products
from opc.lower.cuda.rematerialised import Rematerialised
from opc.lower.cuda.rows import kept
from opc.lower.cuda.scans import ahead_of, first_terms, scanned_entry
from opc.lower.cuda.scatters import entries_in_order, entries_of_items, entries_of_keys, other_entries
from opc.lower.cuda.small import most_of
from opc.lower.cuda.weigh import Weighed
from opc.lower.loop_ir import IndexLoop, NestStage, RowStage, Stage, Temporary, loop_of, read_by, written_by
from opc.lower.lower import SpecialisedProgram
from opc.lower.nest_plans import ScanPlan, ScatterPlan
from opc.records import replace

_BLOCK = "opc::threads_a_block"
"""How many threads a block has where all may have something to do."""

_SOME_WORK, _SOME_POINTS = "if (described.work > 0)", "if (described.points > 0)"


def prototype(family: Family, op: Op) -> str:
    """Return the prototype of an op's function on a device, without the semicolon."""
    return (
        f"int32_t opc_{op.name}_cuda(const DLTensor *const *inputs, DLTensor *const *outputs,\n"
        f"    const {attributes_type(family)} *attributes, const opc_cuda_context *lent)"
    )


def infer_prototype(family: Family, op: Op) -> str:
    """Return the prototype of the function that infers an op's outputs on a device, without the semicolon."""
    return (
        f"int32_t opc_{op.name}_cuda_infer(const DLTensor *const *inputs, const {attributes_type(family)} *attributes,\n"
        "    opc_tensor_type *outputs, const opc_cuda_context *lent)"
    )


def status_prototype(family: Family) -> str:
    """Return the prototype of the function that tells what a family's kernels found, without the semicolon."""
    return f"int32_t opc_{family.name}_cuda_status(const int64_t *status, const opc_cuda_context *lent)"


def library_prototype(family: Family) -> str:
    """Return the prototype of the function that tells how many products a library has made, without the semicolon."""
    return f"int64_t opc_{family.name}_cuda_library(void)"


def faults_name(family: Family) -> str:
    """Return the name of the constant that tells how many kinds of mistakes a family's kernels find in data."""
    return f"opc_{family.name}_cuda_faults"


class CudaEntryText(TileEntryText):
    """Writes the function of one op on a device, given its programs there and their functions by stage name."""

    def __init__(
        self,
        family: Family,
        op: Op,
        variants: tuple[SpecialisedProgram, ...],
        tiles: dict[str, CudaText],
        functions: dict[str, str],
        seldom: set[str],
    ) -> None:
        super().__init__(family, op, variants, dict(tiles))
        self.functions, self.seldom = functions, seldom

    def device_text(self) -> str:
        """Return the checks and the functions."""
        op = self.op
        host = ["  const opc_context own = opc::host_context(lent), *const context = &own;"]
        lines = [
            f"{prototype(self.family, op)} {{",
            *host,
            f"  {struct_name(op)} call;",
            f"  int32_t code = begin_{op.name}(inputs, outputs, attributes, call, context);",
            "  if (code != OPC_OK) return code;",
            *self._overlap(),
            f"  if (opc::nothing_wanted(outputs, {len(op.outputs)})) return OPC_OK;",
            *self.arranged(),
            "  const opc::device_guard guard(lent);",
            *self._indices(),
        ]
        lines += self._programs()
        lines += [f"  return code == OPC_OK ? opc::started({message_literal(op.name)}, context) : code;", "}"]
        infer = [
            f"{infer_prototype(self.family, op)} {{",
            *host,
            f"  {struct_name(op)} call;",
            f"  return bind_{op.name}(inputs, attributes, call, outputs, context);",
            "}",
        ]
        texts = ["\n".join(wrapped("\n".join(text).split("\n"))) for text in (lines, infer)]
        return f"{checks(self.family, op)}\nOPC_EXPORT\n{texts[0]}\n\nOPC_EXPORT\n{texts[1]}\n"

    def _program(self, variant: SpecialisedProgram) -> Iterator[str]:
        """As `EntryText` says; what sizes refuse comes before any kernel, which would go on to tell what it finds in data."""
        lazy = asked_for(self.op, variant)
        for s in variant.program.stages:
            refusals = list(super()._nonempty(s, variant.case.op)) if isinstance(s, RowStage) else []
            wanted = self._stage_condition(s, variant, lazy) if refusals else []
            yield from [f"  if ({' && '.join(wanted)}) {{", *(f"  {line}" for line in refusals), "  }"] if wanted else refusals
        yield from super()._program(variant)

    def _nonempty(self, s: RowStage, op: Op) -> Iterator[str]:
        """Yield nothing: see `_program`."""
        return iter(())

    def _stage_condition(self, stage: Stage, variant: SpecialisedProgram, lazy: set[str]) -> list[str]:
        """As `EntryText` says: rows run where one of their products is wanted, for an op may make others elsewhere."""
        return super()._stage_condition(replace(stage, optional=()) if isinstance(stage, RowStage) else stage, variant, lazy)

    def _indices(self, only: SpecialisedProgram | None = None) -> Iterator[str]:
        """As `EntryText` says: the positions are those of stored types."""
        variants = self.variants if only is None else (only,)
        functions = [self.tiles[s.name] for v in variants for s in v.program.stages]
        for t in self.op.types if only is None else (t for t in only.case.op.types if t not in self.op.types):
            if len(t.dtypes) > 1 and any(t in f.types for f in functions):
                stored = ", ".join(f"opc::dtype_{d}" for d in t.dtypes)
                yield f"  const int32_t stored_{t.name} = opc::stored_index<{stored}>(call.{type_member(t.name)}.element);"

    def _given_to_loops(self, index: str) -> Iterator[str]:
        """Yield nothing: each kernel is given the present step when it is started."""
        return iter(())

    def _temporary(self, t: Temporary) -> Iterator[str]:
        if t.part_of is not None:
            return  # the loop over the steps has it
        yield f"  opc::device_temporary {memory_text(t.name)};"
        sizes = "".join(f", {self._extent(loop)}" for loop in t.loops)
        # What only outputs need that are not wanted is read and written all the same, where kernels do more than one thing.
        type_ = self._element(t.type) if t.copied else dtype_text(t.type)
        alone = all(isinstance(s, NestStage) for s in self._users(t.name))
        wanted = self._wanted(t.needed_by) if alone and t.needed_by else ""
        wanted = f"({wanted}) && " if " || " in wanted else f"{wanted} && " if wanted else ""
        yield f"  if ({wanted}!opc::allocate(lent, {memory_text(t.name)}, {type_}{sizes})) {{"
        yield f'    return opc::fail(context, OPC_OUT_OF_MEMORY, "{self.op.name}: no memory for the temporary {t.name}");'
        yield "  }"

    def _users(self, name: str) -> Iterator[Stage]:
        """Yield the stages that read or write a temporary."""
        for v in self.variants:
            yield from (s for s in v.program.stages if name in (*read_by(s), *written_by(s)))

    def _nest(self, s: NestStage, op: Op) -> Iterator[str]:
        text = self.tiles[s.name]
        assert text.nest is not None, "a nest stage has the text of a nest"
        names = text.nest.operands
        yield f"  opc::nest_operand operands[{len(names)}];"
        yield "  opc::nest_fault fault;"
        yield "  opc::nest nest;"
        yield "  opc::start(nest, context, operands, fault);"
        for d in op.operand(s.assign.target).dims:
            loop = loop_of(d)
            yield f"  opc::add_entry(nest, {self._extent(loop)});"
        inputs, outputs = [i.name for i in self.op.inputs], [o.name for o in self.op.outputs]
        for n, name in enumerate(names):
            if name in inputs or name in outputs:
                tensor = f"inputs[{inputs.index(name)}]" if name in inputs else f"outputs[{outputs.index(name)}]"
                yield f"  opc::add_device_tensor(nest, {tensor});"
                yield from self._split(n, name, op)
            else:
                yield f"  opc::add_temporary(nest, {memory_text(name)});"
        yield f"  opc::device_nest<{len(names)}> described;"
        yield "  opc::to_device(described, nest, lent);"
        match form_of(op, s):
            case Products() as products:
                yield from self._products(s, text, products, op)
            case Weighed() as weighed:
                yield from self._weighed(s, text, weighed, op)
                yield from self._launch(s, text, _SOME_WORK, "true", "plan.blocks", shared="plan.bytes")
            case Rematerialised() as found:
                yield from self._rematerialised(s, text, found, op)
                yield from self._launch(s, text, _SOME_WORK, "true", "plan.blocks", shared="plan.bytes")
            case Move(axis):
                last = len(s.assign.indices) - 1
                batches, across = ("".join(f" * described.size[{n}]" for n in r) for r in (range(axis), range(axis, last)))
                yield f"  opc::set_move(described, 1{batches}, 1{across}, described.size[{last}]);"
                yield from self._launch(s, text, _SOME_WORK, "true", "opc::blocks_for(described.work, 1)")
            case ScanPlan() as scan:
                yield from self._scan(s, text, scan)
            case ScatterPlan(shared=True) as scatter:
                yield f"  described.work = {self._items(other_entries(scatter), scatter)};"
                yield f"  opc::set_zero(lent, {memory_text(s.assign.target)});"
                yield from self._launch(s, text, _SOME_WORK, "false", f"opc::blocks_for(described.work, {_BLOCK})")
            case ScatterPlan() as scatter:
                yield from self._sorted(s, text, scatter)
            case Packs(entry):
                yield from self._packed(text, text.nest, entry, names)
                blocks = f"opc::blocks_for((described.points + lanes - 1) / lanes, {_BLOCK})"
                yield from self._launch(s, text, _SOME_POINTS, "false", blocks)
            case Points() if not text.kernel.schedule.args("share"):
                yield from self._launch(s, text, _SOME_POINTS, "false", f"opc::blocks_for(described.points, {_BLOCK})")
            case Points(packed):
                yield from self._teams(s, text, packed, op)

    def _products(self, s: NestStage, text: CudaText, products: Products, op: Op) -> Iterator[str]:
        """Yield what starts sums of products, which a library may make where it is there."""
        if products.split is not None:
            yield f"  opc::set_groups(described, {products.split.entry}, {self.scalar.number(products.split.points)});"
        yield f"  opc::set_tiles(described, {self._tiles(products)});"
        yield from self._steps("left", products.factors[0], products.down, products, s, op)
        yield from self._steps("right", products.factors[1], products.across, products, s, op)
        yield from self._stores(products, s, op)
        library = library_product_of(op, s, products)
        if library is None:
            yield from self._in_tiles(s, text, products)
            return
        yield from self._library(library, products, s, op)
        yield from (f"  {line}" for line in self._in_tiles(s, text, products))
        yield "  }"

    def _teams(self, s: NestStage, text: CudaText, packed: int | None, op: Op) -> Iterator[str]:
        """Yield what starts a kernel in which teams of threads share terms, for packs of points along an entry where they are
        `packed`."""
        assert text.nest is not None, "a nest stage has the text of a nest"
        schedule, last = text.kernel.schedule, len(s.assign.indices) - 1
        shared, reads_along = schedule.args("share"), (schedule.args("coalesce") or ("either",))[0]
        kept = 2 if "pairs" in shared else 1 if "parts" in shared else 0
        counts, side = self._terms(s, op)
        yield f"  const int64_t counts[] = {{{', '.join(counts)}}};"
        yield f"  const opc::nest_launch plan(described, {last}, lent, counts, {side}, {kept}, opc::reads_along::{reads_along});"
        yield from self._without_memory(f"parts of {s.assign.target}")
        lanes, work = "", "described.work"
        if packed is not None:
            yield from self._packed(text, text.nest, packed, text.nest.operands)
            lanes, work = ", lanes", "opc::greater(described.work, described.packed)"
        whole = "!is_small && described.points > 0" if text.may_be_small else "described.points > 0"
        steps = f"for (int32_t step = 0; {whole} && opc::next_step(described, step{lanes}); ++step)"
        blocks = f"opc::blocks_for({work} * described.team, {_BLOCK})"
        threads = f"opc::threads_for({work} * described.team)"
        if text.may_be_small:
            bound = most_of(op, s.assign)
            assert bound is not None, "it has one where it has such instances"
            yield f"  {text.description(small=True)} small;"
            yield f"  const double most = {self._magnitude(bound)};"
            yield f"  const bool is_small = opc::to_small(small, described, {len(s.assign.indices)}, most);"
        yield from self._launch(s, text, steps, "described.team > 1", blocks, threads)

    def _packed(self, text: CudaText, nest: Nest, entry: int, names: Sequence[str]) -> Iterator[str]:
        """Yield what decides whether threads take packs of points along an entry of the target."""
        own = along(nest, entry)
        yield f"  const int32_t along[] = {{{', '.join(str(names.index(name)) for name in own)}}};"
        yield f"  const int64_t sizes[] = {{{', '.join(self._stored_size(text, name) for name in own)}}};"
        yield f"  const int64_t lanes = opc::set_packed(described, nest, {entry}, along, sizes);"

    def _in_tiles(self, s: NestStage, text: CudaText, products: Products) -> Iterator[str]:
        """Yield what starts tiles of products."""
        element = self._element(products.stored) or dtype_text(products.sum.type)
        most = ", opc::small_tiles" if self.functions[s.name] in self.seldom else ""
        yield f"  opc::tile_launch plan(described, lent, {element}{most});"
        yield from self._without_memory(f"parts of {s.assign.target}")
        steps = "for (int32_t step = 0; described.work > 0 && plan.next_step(described, step); ++step)"
        yield from self._launch(s, text, steps, "true", "plan.blocks", shared="plan.bytes")

    def _scan(self, s: NestStage, text: CudaText, scan: ScanPlan) -> Iterator[str]:
        """Yield what starts a scan: in one pass by teams, or by a thread a line."""
        first = first_terms(scan)
        if first is None:
            yield f"  described.work = described.points == 0 ? 0 : described.points / described.size[{scanned_entry(scan)}];"
            yield from self._launch(s, text, _SOME_WORK, "false", f"opc::blocks_for(described.work, {_BLOCK})")
            return
        value = f"opc::itemsize({dtype_text(scan.reduction.type)})"
        assert text.nest is not None, "a scan has a nest"
        read = ahead_of(text.nest, scan)
        names = (s.assign.target, s.assign.target if read is None else read.operand)
        pack = ", ".join(self._stored_size(text, name) for name in names)
        arguments = f"described, lent, {scanned_entry(scan)}, {self.scalar.number(first)}, {value}, opc::pack_of({pack})"
        yield f"  const opc::scan_launch plan({arguments});"
        yield from self._without_memory(f"chunks of {s.assign.target}")
        yield from self._launch(s, text, "if (plan.blocks > 0)", "true", "plan.blocks", "plan.threads")

    @staticmethod
    def _stored_size(text: CudaText, name: str) -> str:
        """Return the C++ expression of the bytes of an element of an operand of a function."""
        of = text.op.operand(name).type
        if name in text.temporaries or not isinstance(of, DType | TypeVar):
            return f"opc::itemsize({dtype_text(of)})"
        stored = f"opc::dtype_{of}" if isinstance(of, DType) else f"call.{type_member(of.name)}.element"
        return f"opc::itemsize({stored})"

    def _items(self, entries: tuple[int, ...], scatter: ScatterPlan) -> str:
        """Return how many terms there are at the points of entries of the target."""
        return " * ".join([*(f"described.size[{n}]" for n in entries), *map(self._points, scatter.reduction.axes)])

    def _sorted(self, s: NestStage, text: CudaText, scatter: ScatterPlan) -> Iterator[str]:
        """Yield what starts a scatter in a fixed order: its kernel finds places, they are sorted, and it adds up."""
        segments = entries_of_items(scatter)
        own = [n for n in entries_of_keys(scatter) if n not in segments]
        segments_text, keys = (" * ".join(f"described.size[{n}]" for n in some) or "1" for some in (segments, own))
        yield f"  const int32_t order[] = {{{', '.join(map(str, entries_in_order(scatter)))}}};"
        yield f"  opc::scatter_launch plan(described, lent, {segments_text}, {self._items((), scatter)}, {keys}, order);"
        yield from self._without_memory(f"sort terms of {s.assign.target}", "to")
        blocks = "opc::blocks_for(described.work * described.team, opc::threads_a_block)"
        threads = "opc::threads_for(described.work * described.team)"
        steps = "for (int32_t step = 0; plan.next_step(described, step); ++step)"
        yield f"  {steps} {{"
        yield from (f"  {line}" for line in self._launch(s, text, _SOME_WORK, "described.team > 1", blocks, threads))
        yield "  }"

    def _terms(self, s: NestStage, op: Op) -> tuple[list[str], int]:
        """Return about how many terms there are along the axes that all reductions have, the outermost first, and along which
        axis they are read side by side, -1 where there is not one."""
        found: list[list[str]] = []
        sides: set[int | None] = set()
        for e, most in shared_terms(op, s):
            sides.add(neighbouring_axis(e))
            found += [[] for _ in e.axes[len(found) :]]
            for level, axis in enumerate(e.axes):
                varies = isinstance(axis, Axis) and axis.extent.indices()
                terms = "256" if varies else self._points(axis)
                for width in most[level]:
                    terms = f"opc::lesser({terms}, opc::at_least_0({self.scalar.number(width)}))"
                found[level].append(terms)
        # The loop that threads share is one that all of them have: the terms of one without it would be added up by each thread.
        levels = min(len(e.axes) for e, _ in shared_terms(op, s))
        side = sides.pop() if len(sides) == 1 else None
        return [self._greatest(counts) for counts in found[:levels]], -1 if side is None or side >= levels else side

    def _greatest(self, counts: list[str]) -> str:
        first, *rest = dict.fromkeys(counts)
        for other in rest:
            first = f"opc::greater({first}, {other})"
        return first

    def _stage(self, s: RowStage, op: Op) -> Iterator[str]:
        text = self.tiles[s.name]
        yield from self._described(s, op)
        yield f"  opc::device_tile<{len(s.operands)}> described;"
        pieces = text.kernel.schedule.args("unroll")[0]
        if not s.whole_rows:
            yield "  opc::to_device(described, stage);"
            some = "if (described.rows > 0 && described.columns > 0)"
            yield from self._launch(s, text, some, "false", f"opc::blocks_for(described, {pieces})")
            return
        seldom = "true" if self.functions[s.name] in self.seldom else "false"
        yield f"  opc::to_device(described, stage, {len(kept(s))}, {pieces}, {seldom});"
        yield "  const opc::row_launch plan(described, lent);"
        yield from self._without_memory(f"the rows of {s.name}")
        # Rows without points may still have values.
        yield from self._launch(s, text, "if (described.rows > 0)", "true", "plan.blocks", "plan.threads", "plan.bytes")

    def _split(self, n: int, name: str, op: Op) -> Iterator[str]:
        """Yield what takes axes of an operand as two each, which the lowered op has in parts."""
        dims, ranks, fixed = list(op.operand(name).dims), list[str](), 0
        for own in self.op.operand(name).dims:
            if dims.pop(0) != own:
                points = dims.pop(0)
                assert isinstance(points, Affine), "an axis is split in two axes"
                axis = " + ".join([*ranks, str(fixed)])
                yield f"  opc::split_axis(operands[{n}], {axis}, {self._extent(IndexLoop('', points))});"
                fixed += 2
            elif isinstance(own, Group):
                ranks.append(f"call.{group_member((own.name, own.of))}.rank")
            else:
                fixed += 1

    def _launch(
        self, s: Stage, text: CudaText, head: str, together: str, blocks: str, threads: str = _BLOCK, shared: str = "0"
    ) -> Iterator[str]:
        """Yield what starts a kernel, behind the `head` of a statement; whether its threads wait for each other is `together`."""
        function = self.functions[s.name]
        index = "".join(f"[stored_{t.name}]" for t in text.types if len(t.dtypes) > 1)
        own = ", arguments" if text.arguments else ""
        if text.arguments:
            values = ", ".join(map(self._argument, text.arguments))
            yield f"  const {self.family.name}_cuda::{function}_arguments arguments = {{{values}}};"
        which = "[described.tiles]" if text.is_tiled else "[described.general]" if text.is_packed else ""
        kernel = f"{self.family.name}_cuda::{function}_kernels{index}{which}"
        if text.may_be_small:
            some = f"{self.family.name}_cuda::{function}_small_kernels{index}"
            grid = f"opc::blocks_for(small.work, {_BLOCK}), opc::threads_for(small.work)"
            yield "  if (is_small && small.work > 0) {"
            yield f"    OPC_LAUNCH({some}, false, {grid}, 0, opc::stream_of(lent), small{own});"
            yield "  }"
        yield f"  {head} {{"
        yield f"    OPC_LAUNCH({kernel}, {together}, {blocks}, {threads}, {shared}, opc::stream_of(lent), described{own});"
        yield "  }"

    def _argument(self, a: Argument) -> str:
        """Return the value of a member of a function's arguments."""
        if a.attribute:
            place = f"attributes->{a.attribute}" + ("" if a.element < 0 else f"[{a.element}]")
            return f"opc::real_number({place})" if a.type == "opc::real_number" else place
        if a.type == "opc::device_extents":
            return f"call.{next(group_member(g) for g in self._own_groups() if axes_member(*g) == a.name)}"
        if a.value is not None:
            value = GivenText(self.op, self.scalar).convert(a.value, a.value.type).text
            return value if a.type == "bool" else f"opc::real_number({value})"
        if a.by is not None:
            return f"opc::divisor_of({self.scalar.number(a.by)})"
        inputs = [o.name for o in self.op.inputs]
        for n, name in enumerate(inputs):
            if present_member(name) == a.name:
                return f"inputs[{n}] != nullptr"
        sizes = {size_member(Dim(name)): Affine.of(Dim(name)) for name in self._dims()}
        sizes |= {size_member(GroupSize(name)): Affine.of(GroupSize(name)) for name in self._groups()}
        sizes |= {size_member(Dim(name)): Affine.of(Dim(name)) for name in self._step_names()}
        return f"{self.scalar.integer(sizes[a.name], bare=True)}.value"
