"""The intrinsics of the loop IR: the functions and structs of the runtime's headers, and which header each is in.

What a target can't say as loops is an intrinsic: a row whose stored type is dispatched once, a register tile of windows, a
contraction. Methods of a struct (`at.first`) come with the struct.
"""

from __future__ import annotations

from collections.abc import Mapping

HEADERS: Mapping[str, str] = {
    "nests/points": "advance group_offset group_index locate outside report store limits",
    "nests/loops": (
        "add_row add_shared clip clip_from clip_to constant fetch_row fill fill_part finish_phases finish_row greatest least "
        "max_identity min_identity next_of part_begin part_end quotient_up result_row row_at search_row target_of "
        "target_unit terms_begin terms_end widen_row with_count with_positions with_step with_stored zero_part zero_units "
        "sum_unit cursor row_copies"
    ),
    "nests/channels": (
        "are_many fill_channel_tables channels_from reduce_channels to_last_unit channel_memory channel_tables channel_windows"
    ),
    "nests/order": "order_memory order_rows",
    "nests/products": "add_products product_sum",
    "rows/loops": (
        "max_batched_columns columns_at count_lanes exp_below reduce_batch reduce_row batches_rows blend choose key_value "
        "max_key min_key minimum prefetch store_batch store_row store_segments store_values quotient row row_ahead "
        "interleaved_rows scratch_row load_batch load_values values_of extreme key peeled_range row_extreme row_reduction "
        "row_store input_row row_position load widened"
    ),
    "cuda/move": "move_axis",
    "cuda/multiply": "along_points along_terms computed_places digit_of digits digits_of gathered_places multiply_tiles placed",
    "cuda/nest": (
        "add_at adds_runs are_dense broadcast_place broadcast_points count_own_terms count_terms dense_step "
        "end_of_line entry_place far finds_places first_term group_offsets is_part item_at items_of_key join_items join_runs "
        "join_search join_terms keep_terms key_of_run leads load_points name_nothing name_place narrow_high narrow_low "
        "narrow_range new_points no_terms place_in place_in_order point_of quotient_by quotient_down rest_of "
        "skip_ahead store_points stores_point strides_of term_step thread_of_team"
    ),
    "cuda/rows": (
        "buffer_of column_of_piece column_offsets columns_of_chunk count_packed count_pieces device_row_of end_of_chunks "
        "first_of_team has_pack has_rest is_wanted keep_pack load_pack load_pieces load_raw new_pack new_pieces new_values "
        "pack_offset read_pieces recall_pieces reload_pieces row_offsets row_value single_row_of spread step_of_chunks "
        "store_pack team_reduce"
    ),
    "cuda/rematerialise": "exp_in_sum factors multiply_rematerialised reduce_rematerialised weighed",
    "cuda/scan": "scan_lines",
    "cuda/weigh": "weigh_rows",
    "poplar/codelet": "saturated share_begin share_end share_first",
    "nests/windows": "combine fetch_ahead fetch_share padded_windows reach reduce_windows window_row",
}
"""The functions and structs of each header. A name is in one of them, for it tells what a kernel includes."""

HEADER_OF_FORM = {
    "codelet": "poplar/codelet",
    "cuda": "cuda/rows",
    "tile": "rows/loops",
    "nest": "nests/points",
    "row_nest": "nests/loops",
}
"""The header of what a function of each form is called with."""

HEADER: Mapping[str, str] = {name: header for header, names in HEADERS.items() for name in names.split()}
"""The header of each function and struct, by name."""
