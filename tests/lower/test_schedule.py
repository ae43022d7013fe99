"""Schedules: what is decided is what is printed and what runs, and may be overridden."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opc.emit.kernel.files import kernel_files
from opc.loops.schedule import NAMES, Schedule, ScheduleError, Transformation, overridden, overrides
from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.pipeline import load_family

SPECS = Path(__file__).parents[2] / "specs"


def loops(op: str, *changes: str) -> str:
    family = load_family(SPECS / f"{op}.yaml")
    with overridden(overrides(changes)):
        return "".join(format_variant(v, loops=True) for v in lower(family.forward))


def kernel(op: str, *changes: str) -> str:
    family = load_family(SPECS / f"{op}.yaml")
    with overridden(overrides(changes)):
        return kernel_files(family)[f"kernel/{op}_loops.cpp"]


def test_what_is_printed_is_what_runs() -> None:
    text = loops("depthwise_conv2d")
    assert "schedule: vectorise(j), split, tile(p, q), channels(c), version" in text
    for intrinsic in ("reduce_windows", "reduce_channels"):
        assert f"{intrinsic}(" in text or f"{intrinsic}<" in text
        assert f"opc::{intrinsic}" in kernel("depthwise_conv2d")


@pytest.mark.parametrize(
    ("op", "change", "intrinsic"),
    [
        ("softmax", "-interleave", "interleaved_rows"),
        ("softmax", "-batch", "batches_rows"),
        ("layer_norm", "-nontemporal", "store_row"),
        ("layer_norm", "-prefetch", "row_ahead"),
        ("avg_pool2d", "-tile", "reduce_windows"),
        ("depthwise_conv2d", "-channels", "reduce_channels"),
        ("causal_softmax", "-products", "add_products"),
        ("max_pool2d", "-version", "with_step"),
        ("cumsum", "-scan", "with_count"),
    ],
)
def test_a_transformation_is_left_out(op: str, change: str, intrinsic: str) -> None:
    assert intrinsic in kernel(op)
    assert intrinsic not in kernel(op, change)
    assert intrinsic not in loops(op, change)


def test_arguments_and_stages_are_named() -> None:
    assert "batches_rows<count_lanes<T>(), 4>" in loops("softmax")
    assert "batches_rows<count_lanes<T>(), 6>" in loops("softmax", "softmax: batch(6, whole)")
    assert loops("softmax", "other: -batch") == loops("softmax")
    assert "interleave" not in loops("softmax", "soft*: -interleave, -batch")


def test_overrides_change_nothing_behind_them() -> None:
    before = kernel("softmax")
    kernel("softmax", "-batch")
    assert kernel("softmax") == before


@pytest.mark.parametrize(
    ("text", "message"),
    [("-unroll", "there is no transformation 'unroll'"), ("batch[3]", "is not of the form"), ("f: ba tch", "is not of the form")],
)
def test_what_is_no_transformation_is_refused(text: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        overrides([text])


def test_a_schedule_is_text() -> None:
    assert str(Schedule()) == "plain loops"
    assert str(Schedule((Transformation("batch", ("3", "whole")), Transformation("version")))) == "batch(3, whole), version"
    assert len(set(NAMES)) == len(NAMES)


def test_the_page_names_every_transformation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "kernels.md").read_text()
    rows = re.findall(r"^\| `([a-z]+)` \|[^|]*\| (`[^|]*) \|", page, re.MULTILINE)
    assert tuple(name for name, _ in rows) == NAMES
    for _, where in rows:
        assert all((Path(__file__).parents[2] / path).is_file() for path in re.findall(r"`([^`]+)`", where))
