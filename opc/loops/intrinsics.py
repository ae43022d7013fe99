"""The intrinsics of the loop IR: the functions and structs of the runtime's headers, and which header each is in.

What a target can't say as loops is an intrinsic: a row whose stored type is dispatched once, a register tile of windows, a
contraction. Methods of a struct (`at.first`) come with the struct.
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.ir.expr import NOTHING, Expr, children
from opc.ir.node import remembered
from opc.loops.nodes import Body, Buffer, Kernel, Let, Var, statements, values_of
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
    "nests/windows": "combine fetch_ahead fetch_share reach reduce_windows window_row",
}

_OF_FORM = {"cuda": "cuda/tile", "tile": "rows/loops", "nest": "nests/points", "row_nest": "nests/loops"}

HEADER: Mapping[str, str] = {name: header for header, names in _HEADERS.items() for name in names.split()}
"""The header of each function and struct, by name."""


def headers(kernel: Kernel) -> set[str]:
    """Return the headers that a function and its other forms need."""
    own = {_OF_FORM[kernel.form], *(HEADER[name] for name in used(kernel.body))}
    return own.union(*(headers(f.kernel) for f in kernel.forms))


def used(body: Body) -> set[str]:
    """Return the intrinsics and structs of the runtime's that a body uses."""
    found: set[str] = set()
    for s in statements(body):
        if isinstance(s, Let | Var | Buffer):
            found |= _in_kind(s.kind)
    return found.union(*map(_in_value, values_of(body)))


def _in_kind(kind: Kind) -> frozenset[str]:
    if isinstance(kind, Named) and kind.name.startswith("opc::"):
        return frozenset((kind.name.removeprefix("opc::"),))
    return NOTHING


@remembered("_intrinsics")
def _in_value(e: Expr) -> frozenset[str]:
    match e:
        case Intrinsic(name=name) if "." not in name:
            own = frozenset((name,))
        case Construct(kind=kind):
            own = _in_kind(kind)
        case Static(owner=owner):
            own = _in_kind(owner)
        case Block(body=body):
            own = frozenset(used(body))
        case _:
            own = NOTHING
    below = children(e)
    return own.union(*map(_in_value, below)) if below else own
