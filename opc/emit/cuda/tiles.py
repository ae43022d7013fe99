"""What a call describes of sums of products in tiles: points, terms, and the steps between a factor's elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.emit.cuda.text import CudaText
from opc.emit.kernel.entry import EntryText
from opc.emit.kernel.nests import dtype_text
from opc.emit.shapes.cpp import group_member, type_member
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, TypeVar, ValueType
from opc.ir.expr import Axis, BroadcastAxis, Expr, GroupAxis, GroupRef, Read, ReduceAxis
from opc.ir.op import Group, Op, Operand
from opc.lower.cuda.gathered import Gathered
from opc.lower.cuda.library import LibraryProduct, places_in
from opc.lower.cuda.products import Products, lies_along_terms, places_of
from opc.lower.cuda.rematerialised import Rematerialised
from opc.lower.cuda.weigh import Needed, Weighed, lies_along
from opc.lower.loop_ir import NestStage


class TileEntryText(EntryText):
    """Writes what describes tiles."""

    tiles: dict[str, CudaText]  # type: ignore[assignment]  # those of the CPU are texts too

    def _weighed(self, s: NestStage, text: CudaText, weighed: Weighed, op: Op) -> Iterator[str]:
        """Yield what describes a weighed sum, and looks for infinities where columns are left out."""
        batches = " * ".join(f"described.size[{n}]" for n in weighed.batch) or "1"
        term, column = weighed.term, weighed.column
        down, across = (f"described.size[{n}]" for n in (weighed.row, weighed.across))
        yield f"  opc::set_tiles(described, {batches}, {down}, {across}, {self._points(term)});"
        yield f"  described.columns = {self._points(column)};"
        own = str(s.assign.indices[weighed.row]), str(s.assign.indices[weighed.across])
        sizes = {own[0]: down, own[1]: across, column.index: "described.columns", term.index: "described.terms"}
        along = ((own[0], term.index), (column.index, term.index), (own[1], column.index))
        for field, read, (point, terms) in zip(("left", "right", "weighed"), weighed.elements(), along, strict=True):
            yield from self._in_steps(field, read, (point, terms), sizes, text, op)
        element = self._element(weighed.stored) or dtype_text(weighed.sum.type)
        yield f"  opc::weigh_launch plan(described, lent, {element});"
        if weighed.needed is not None:
            yield from self._left_out(s, text, weighed.needed, op)

    def _rematerialised(self, s: NestStage, text: CudaText, found: Rematerialised, op: Op) -> Iterator[str]:
        """Yield what describes a reduction of values made anew, and looks for infinities where columns are left out."""
        batches = " * ".join(f"described.size[{n}]" for n in found.batch) or "1"
        down, across = (f"described.size[{n}]" if n is not None else "1" for n in (found.row, found.across))
        row, column = str(s.assign.indices[found.row]), found.column.index
        counts = [self._points(found.term(n)) for n in range(len(found.products))]
        yield f"  opc::set_tiles(described, {batches}, {down}, {across}, {counts[0]});"
        yield f"  described.columns = {self._points(found.column)};"
        repeats = " * ".join(map(self._points, found.others)) or "1"
        yield f"  opc::set_terms(described, {counts[1] if len(counts) > 1 else '0'}, {repeats});"
        for n, (left, right) in enumerate(found.factors):
            more, term = "more_" if n else "", found.term(n).index
            sizes = {row: down, column: "described.columns", term: f"described.{more}terms"}
            yield from self._in_steps(f"{more}left", left, (row, term), sizes, text, op)
            yield from self._in_steps(f"{more}right", right, (column, term), sizes, text, op)
        if found.weighed is not None and found.across is not None:
            own = str(s.assign.indices[found.across])
            sizes = {own: across, column: "described.columns"}
            yield from self._in_steps("weighed", found.weighed, (own, column), sizes, text, op)
        element = self._element(found.stored) or dtype_text(found.reduction.type)
        terms = "opc::greater(described.terms, described.more_terms)"
        wide = "true" if found.weighed is not None else "false"
        yield "  opc::weigh_launch plan(lent);"
        yield f"  plan.take_shape(described, {element}, {terms}, {len(found.factors) - 1}, {wide});"
        if found.needed is not None:
            yield from self._left_out(s, text, found.needed, op)

    def _in_steps(
        self, field: str, read: Read, along: tuple[str, str], sizes: Mapping[str, str], text: CudaText, op: Op
    ) -> Iterator[str]:
        """Yield what tells the steps between elements that are read, along the indices of points and of terms."""
        declared, operand, of = self._operand(read, text, op)
        places = self._first_axes(declared.dims)
        for part, index in zip(("points", "terms"), along, strict=True):
            place = places[read.indices.index(Affine.of(Index(index)))]
            yield f"  opc::axes_in_steps {field}_{part};"
            yield f"  {field}_{part}.add({sizes[index]}, {operand}, {place});"
        by = f"opc::along_{'terms' if lies_along(read, along[1]) else 'points'}"
        yield f"  described.{field} = {{{field}_points.step, {field}_terms.step, opc::in_steps, 0}};"
        yield f"  opc::set_steps<{by}>(described.{field}, {operand}, {field}_points, {field}_terms, {of});"

    def _left_out(self, s: NestStage, text: CudaText, needed: Needed, op: Op) -> Iterator[str]:
        """Yield what has columns left out where operands are finite."""
        if not needed.rises:
            yield "  described.falls = true;"
        if not needed.finite:
            yield "  described.leaves = true;"
            return
        yield "  plan.leave_out(described);"
        yield from self._without_memory(f"the columns of {s.assign.target}")
        for name in needed.finite:
            _, operand, of = self._operand(Read(name, (), op.operand(name).type), text, op)
            yield f"  plan.look_at({operand}, {of});"

    def _without_memory(self, wanted: str, word: str = "for") -> Iterator[str]:
        """Yield the refusal of a call whose plan lacks memory for what is wanted."""
        yield "  if (plan.lacks_memory()) {"
        yield f'    return opc::fail(context, OPC_OUT_OF_MEMORY, "{self.op.name}: no memory {word} {wanted}");'
        yield "  }"

    def _operand(self, read: Read, text: CudaText, op: Op) -> tuple[Operand, str, str]:
        """Return an operand that is read, how the entry calls it, and the type that its elements are stored as."""
        assert text.nest is not None, "a nest stage has the text of a nest"
        declared = op.operand(read.operand)
        of = self._element(declared.type) if read.operand not in text.temporaries else ""
        return declared, f"operands[{text.nest.operands.index(read.operand)}]", of or dtype_text(declared.type)

    def _tiles(self, products: Products) -> str:
        """Return how many batches, points down and across, and terms there are."""
        counts = (
            " * ".join(self._entry_size(products, own, n) for n in own) or "1"
            for own in (products.batch, products.down, products.across)
        )
        return ", ".join((*counts, " * ".join(map(self._points, products.sum.axes))))

    def _entry_size(self, products: Products, own: tuple[int, ...], n: int) -> str:
        """Return how many points there are along an entry of the target: of one that is split groups, or points of a group."""
        if products.split is None or products.split.entry != n:
            return f"described.size[{n}]"
        return "described.groups" if own is products.batch else "described.group_points"

    def _element(self, stored: ValueType | None) -> str:
        """Return the type that tensors' elements are stored as; nothing where there is none."""
        match stored:
            case DType():
                return f"opc::dtype_{stored}"
            case TypeVar():
                return f"call.{type_member(stored.name)}.element"
            case _:
                return ""

    def _steps(self, side: str, factor: Expr, own: tuple[int, ...], products: Products, s: NestStage, op: Op) -> Iterator[str]:
        """Yield what tells the steps between a factor's elements, of one that has them in steps."""
        text = self.tiles[s.name]
        if side in products.computed:
            yield f"  described.{side}.how = opc::computed;"
            return
        if (gathered := products.gathered.get(side)) is not None:
            yield self._gathered(side, gathered, products, s, op)
            return
        found = places_of(products, op, s, side)
        assert isinstance(factor, Read), "it has been found to be a read"
        declared, operand, of = self._operand(factor, text, op)
        places = self._first_axes(declared.dims)

        def step(name: str, size: str, whole: str) -> str:
            if name not in found:
                return f"add({size}, 0)"
            dim = declared.dims[found[name]]
            if isinstance(dim, Group):
                return f"add({operand}, {places[found[name]]}, call.{group_member((dim.name, dim.of))}, {whole})"
            return f"add({size}, {operand}, {places[found[name]]})"

        points, terms = f"{side}_points", f"{side}_terms"
        yield f"  opc::axes_in_steps {points}, {terms};"
        for n in own:
            entry, dim = s.assign.indices[n], op.operand(s.assign.target).dims[n]
            whole = f"call.{group_member((dim.name, dim.of))}" if isinstance(dim, Group) else ""
            name = entry.name if isinstance(entry, GroupRef) else str(entry)
            yield f"  {points}.{step(name, self._entry_size(products, own, n), whole)};"
        for axis in products.sum.axes:
            match axis:
                case BroadcastAxis():
                    size = self._points(axis)
                    yield f"  {terms}.{self._shared(axis.name, declared, found, operand, size, axis.operand, 'true')};"
                case GroupAxis():
                    yield f"  {terms}.{step(axis.name, self._points(axis), f'call.{group_member((axis.name, None))}')};"
                case Axis():
                    yield f"  {terms}.{step(axis.index, self._points(axis), '')};"
        along = "opc::along_terms" if lies_along_terms(side, products) else "opc::along_points"
        yield f"  opc::set_steps<{along}>(described.{side}, {operand}, {points}, {terms}, {of});"

    def _stores(self, products: Products, s: NestStage, op: Op) -> Iterator[str]:
        """Yield what tells whether several points are stored at once."""
        text = self.tiles[s.name]
        assert text.nest is not None, "a nest stage has the text of a nest"
        declared = op.operand(s.assign.target)
        _, operand, of = self._operand(Read(declared.name, (), declared.type), text, op)
        across = ", ".join(map(str, products.across))
        split = "" if products.split is None else f", {products.split.entry}"
        yield f"  opc::set_stores(described, {operand}.data, {of}, {{{across}}}{split});"

    def _shared(
        self, name: str, declared: Operand, found: Mapping[str, int], operand: str, size: str, target: str | None, summed: str
    ) -> str:
        """Return what adds the axes of a group that are `summed`, or those that are not, to the steps of an operand."""
        if name not in found:
            return f"add({size}, 0)"
        dim, place = declared.dims[found[name]], self._first_axes(declared.dims)[found[name]]
        assert isinstance(dim, Group), "a group is read by its name"
        own, whole, kept = (f"call.{group_member(g)}" for g in ((name, dim.of), (name, None), (name, target)))
        return f"add({operand}, {place}, {own}, {whole}, {kept}, {summed})"

    def _library(self, product: LibraryProduct, products: Products, s: NestStage, op: Op) -> Iterator[str]:
        """Yield what describes a product to the library, and the beginning of what runs where the library does not make it."""
        text = self.tiles[s.name]
        assert text.nest is not None, "a nest stage has the text of a nest"
        dims, operands = op.operand(s.assign.target).dims, list[str]()
        for side, factor in zip(("left", "right"), product.factors, strict=True):
            found = places_in(op, s, products, factor)
            assert found is not None, "its elements are in steps"
            declared, operand, of = self._operand(factor, text, op)
            places = self._first_axes(declared.dims)
            yield f"  opc::axes_in_steps {side}_batches;"
            for n in products.batch:
                entry, dim, size = s.assign.indices[n], dims[n], f"described.size[{n}]"
                if isinstance(dim, Group) and isinstance(entry, GroupRef):
                    yield f"  {side}_batches.{self._shared(entry.name, declared, found, operand, size, dim.of, 'false')};"
                else:
                    name = str(entry)
                    yield f"  {side}_batches.add({size}, {f'{operand}, {places[found[name]]}' if name in found else '0'});"
            operands.append(f"{{{operand}.data, {of}, {side}_batches, {side}_points, {side}_terms}}")
        for name, entries in (("batches", products.batch), ("down", products.down), ("across", products.across)):
            yield f"  opc::axes_in_steps made_{name};"
            yield from (f"  made_{name}.add(described.size[{n}], described.after[{n}]);" for n in entries)
        made = text.nest.operands.index(s.assign.target)
        target = Read(s.assign.target, (), op.operand(s.assign.target).type)
        operands.append(f"{{operands[{made}].data, {self._operand(target, text, op)[2]}, made_batches, made_down, made_across}}")
        bias = "nullptr, opc::dtype_unknown, 0"
        if product.bias is not None:
            _, operand, of = self._operand(product.bias, text, op)
            bias = f"{operand}.data, {of}, described.{operand}.stride[0]"
        counts = "described.work, described.down, described.across, described.terms"
        yield f"  const opc::plain_product product = {{{counts}, {', '.join(operands)}, {bias}}};"
        yield "  if (!opc::multiply_by_library(product, lent)) {"

    def _gathered(self, side: str, found: Gathered, products: Products, s: NestStage, op: Op) -> str:
        """Return what tells how a factor is brought whose elements are found by their places."""
        text = self.tiles[s.name]
        assert text.nest is not None, "a nest stage has the text of a nest"
        name = found.read.operand
        axis, count = len(found.read.indices) - 1 if found.along is not None else -1, "0"
        for a in products.sum.axes:
            if isinstance(a, Axis) and a.index == found.along:
                count = self._points(a)
        for n, entry in enumerate(s.assign.indices):
            if entry == found.along:
                count = f"described.size[{n}]"
        if products.split is not None and found.along == products.split.place:
            count = "described.group_points"
        own = f"operands[{text.nest.operands.index(name)}]"
        bytes_ = f"int32_t(sizeof(opc::near_place<{found.numbers}>))"
        of = self._element(op.operand(name).type)
        given = f"{own}, {axis}, {count}, {of}, {bytes_}, {self._magnitude(found.most)}"
        return f"  opc::set_places(described.{side}, described.{side}_together, {given});"

    def _magnitude(self, most: Affine) -> str:
        """Return the value of a bound, in which each size and attribute counts by its magnitude."""
        terms = []
        for monomial, times in most.terms:
            factors = [f"opc::magnitude({self.scalar.number(Affine.of(atom))})" for atom in monomial]
            terms.append(" * ".join([f"{times}.0", *factors] if times > 1 or not factors else factors))
        return " + ".join(terms) or "0.0"

    def _first_axes(self, dims: tuple[Affine | Group, ...]) -> list[str]:
        """Return the first axis of each entry of a tensor's shape."""
        found, ranks, fixed = list[str](), list[str](), 0
        for dim in dims:
            found.append(" + ".join([*ranks, str(fixed)]) if fixed or not ranks else " + ".join(ranks))
            if isinstance(dim, Group):
                ranks.append(f"call.{group_member((dim.name, dim.of))}.rank")
            else:
                fixed += 1
        return found

    def _points(self, axis: ReduceAxis) -> str:
        """Return how many terms there are along an axis of a sum."""
        match axis:
            case Axis():
                return f"opc::at_least_0({self.scalar.number(axis.extent)})"
            case GroupAxis():
                return f"opc::count(call.{group_member((axis.name, None))})"
            case BroadcastAxis():
                whole, own = group_member((axis.name, None)), group_member((axis.name, axis.operand))
                return f"opc::broadcast_points(call.{whole}, call.{own})"
