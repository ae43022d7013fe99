"""The intrinsics of the loop IR: the functions and structs of the runtime's headers, and which header each is in.

What a target can't say as loops is an intrinsic: a row whose stored type is dispatched once, a register tile of windows, a
contraction. Methods of a struct (`at.first`) come with the struct.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.ir.expr import Expr, walk
from opc.loops.nodes import Body, Buffer, CallWithBody, Kernel, Let, Statement, Var, own_values, statements, values_of
from opc.loops.values import Block, Construct, Intrinsic, Kind, Named, Static

_HEADERS: Mapping[str, str] = {
    "nests/points": "advance group_offset group_index locate outside report store limits",
    "nests/loops": (
        "add_row add_shared clip constant fetch_row fill finish_phases finish_row greatest least max_identity min_identity "
        "next_of part_begin part_end quotient_up result_row row_at search_row target_of target_unit terms_begin terms_end "
        "widen_row with_count with_positions with_step with_stored zero_part zero_units sum_unit cursor row_copies"
    ),
    "nests/channels": (
        "are_many fill_channel_tables channels_from reduce_channels to_last_unit channel_memory channel_tables channel_windows"
    ),
    "nests/products": "add_products product_sum",
    "rows/loops": (
        "max_batched_columns columns_at count_lanes exp_below reduce_batch reduce_row batches_rows blend choose key_value "
        "max_key min_key minimum prefetch store_batch store_row store_segments store_values quotient row row_ahead "
        "interleaved_rows scratch_row load_batch load_values values_of extreme key peeled_range row_extreme row_reduction "
        "row_store"
    ),
    "cuda/tile": "block_reduce first_thread",
    "nests/windows": "combine fetch_ahead fetch_share padded_windows reach reduce_windows window_row",
}

_OF_FORM = {"cuda": "cuda/tile", "tile": "rows/loops", "nest": "nests/points", "row_nest": "nests/loops"}

HEADER: Mapping[str, str] = {name: header for header, names in _HEADERS.items() for name in names.split()}
"""The header of each function and struct, by name."""


def headers(kernel: Kernel) -> set[str]:
    """Return the headers that a function and its other forms need."""
    own = {_OF_FORM[kernel.form], *(HEADER[name] for name in used(kernel.body))}
    return own.union(*(headers(f.kernel) for f in kernel.forms))


def used(body: Body) -> Iterator[str]:
    """Yield the intrinsics and structs of the runtime's that a body uses."""
    for s in statements(body):
        yield from _in_statement(s)
    for v in values_of(body):
        yield from _in_value(v)


def _in_statement(s: Statement) -> Iterator[str]:
    if isinstance(s, Let | Var | Buffer):
        yield from _in_kind(s.kind)
    if isinstance(s, CallWithBody):
        for v in own_values(s):
            yield from _in_value(v)


def _in_kind(kind: Kind) -> Iterator[str]:
    if isinstance(kind, Named) and kind.name.startswith("opc::"):
        yield kind.name.removeprefix("opc::")


def _in_value(e: Expr) -> Iterator[str]:
    for node in walk(e):
        match node:
            case Intrinsic(name=name) if "." not in name:
                yield name
            case Construct(kind=kind):
                yield from _in_kind(kind)
            case Static(owner=owner):
                yield from _in_kind(owner)
            case Block(body=body):
                yield from used(body)
