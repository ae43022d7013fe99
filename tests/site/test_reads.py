"""Pictures of what is read show what the op reads: windows, rows, what indices choose."""

from __future__ import annotations

import itertools
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from opc.pipeline import compile_text, load_family
from opc.site.pictures import LETTERS, svg, told
from opc.site.reads import Sample, samples
from opc.testing.oracle.evaluation import evaluate

SPECS = Path(__file__).parents[2] / "specs"
# Windows, rows, products, masks, scans, rearrangements, indices: what reads in ways of its own.
DRAWN = (
    "attention", "avg_pool2d", "conv_transpose2d", "cross_entropy", "cumsum", "embedding", "grid_sample", "matmul", "max_pool2d",
    "pad_reflect", "pixel_shuffle", "scatter_add", "softmax", "upsample_nearest2d",
)  # fmt: skip
SVG = "{http://www.w3.org/2000/svg}"


def drawn(name: str) -> list[Sample]:
    return samples(load_family(SPECS / f"{name}.yaml"))


def window(sample: Sample, at: tuple[int, ...]) -> tuple[set[tuple[int, ...]], int]:
    """Return what a convolution's element is read from, by the rule that every textbook has, and how much lies outside."""
    n, o, *place = at
    a, height, width = sample.attributes, *sample.inputs["x"].shape[2:]
    _, channels, kh, kw = sample.inputs["w"].shape
    first = o // (sample.shape[1] // a["groups"]) * channels
    named = [
        (n, first + c, *(place[k] * a["stride"][k] + tap[k] * a["dilation"][k] - a["padding"][k] for k in (0, 1)))
        for c, *tap in itertools.product(range(channels), range(kh), range(kw))
    ]
    inside = {p for p in named if 0 <= p[2] < height and 0 <= p[3] < width}
    return inside, len(named) - len(inside)


def test_windows_are_those_of_a_convolution_whatever_its_attributes() -> None:
    found = drawn("conv2d")
    assert [s.changed for s in found] == [None, "stride", "padding", "extra_padding", "dilation", "groups"]
    for sample in found:
        assert len(sample.reads) == len(LETTERS)
        for at, r in sample.reads.items():
            inside, outside = window(sample, at)
            assert (set(r.elements["x"]), len(r.outside.get("x", ()))) == (inside, outside)


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_not_marked_does_not_matter(name: str) -> None:
    op = load_family(SPECS / f"{name}.yaml").forward
    for sample in drawn(name):
        right = evaluate(op, sample.inputs, sample.attributes, precise=True)[sample.output].bounds.low
        marked = 0
        for at, r in sample.reads.items():
            other = {}
            for operand, array in sample.inputs.items():
                read = np.zeros(array.shape, bool)
                for p in r.elements.get(operand, ()):
                    read[p] = True
                marked += read.sum()
                other[operand] = np.where(read, array, 0 if array.dtype.kind == "i" else array + 3).astype(array.dtype)
            changed = evaluate(op, other, sample.attributes, precise=True)[sample.output].bounds.low
            assert changed[at] == pytest.approx(right[at], rel=1e-9)
        assert 0 < marked < len(sample.reads) * sum(a.size for a in sample.inputs.values()) or name == "cross_entropy"


def test_what_is_marked_matters() -> None:
    for name in ("matmul", "avg_pool2d", "conv_transpose2d", "pixel_shuffle"):
        op = load_family(SPECS / f"{name}.yaml").forward
        for sample in drawn(name)[:2]:
            right = evaluate(op, sample.inputs, sample.attributes, precise=True)[sample.output].bounds.low
            for at, r in sample.reads.items():
                for operand, p in [(operand, p) for operand, points in r.elements.items() for p in points]:
                    other = {n: a.copy() for n, a in sample.inputs.items()}
                    other[operand][p] = 1e6
                    changed = evaluate(op, other, sample.attributes, precise=True)[sample.output].bounds.low
                    # A factor of exactly 0 is read, and hides the other one.
                    zeros = any((a == 0).any() for a in sample.inputs.values())
                    assert changed[at] != right[at] or zeros, (name, operand, p)


def test_arrows_lead_from_indices_to_what_they_choose() -> None:
    def links(name: str) -> set[tuple[str, int, str, int]]:
        (sample,) = drawn(name)
        found = [link for r in sample.reads.values() for link in r.links]
        return {(s, int(sample.inputs[s][at]), t, to[0 if name == "embedding" else 1]) for (s, at), (t, to) in found}

    assert links("embedding") == {("ids", k, "table", k) for k in (0, 1, 2)}
    assert {(s, t) for s, _, t, _ in links("scatter_add")} == {("index", "y")}
    assert all(value == row for _, value, _, row in links("scatter_add"))
    assert links("cross_entropy") == {("target", k, "x", k) for k in (0, 1, 2, 3)}


REVERSED = """op: turned
domain: docs
version: 1
doc: Some.
types: {T: floating}
inputs: {x: 'T[N]'}
outputs: {y: 'T[N]'}
kernel: |
  y[i] = x[N - 1 - i] + x[(i + 1) % N]
"""


def test_reversed_and_rolled_reads_are_seen() -> None:
    (sample,) = samples(compile_text(REVERSED))
    assert told(sample) == [
        "A: y[0] is read from x[1 and 3].",
        "B: y[2] is read from x[1 and 3].",
        "C: y[3] is read from x[0].",
    ]


def test_no_picture_of_what_reads_its_own_place_alone() -> None:
    assert drawn("gelu") == []
    assert samples(load_family(SPECS / "native" / "inverse.yaml")) == []


@pytest.mark.parametrize("name", ["conv2d", "embedding", "pixel_shuffle"])
def test_a_picture_shows_every_element_that_is_read(name: str) -> None:
    for sample in drawn(name):
        text = svg(sample, "some", "A <title>")
        assert text == svg(sample, "some", "A <title>")
        assert "\n" not in text
        picture = ElementTree.fromstring(text)
        assert (picture[0].tag, picture[0].text) == (f"{SVG}title", "A <title>")
        assert picture.attrib["aria-labelledby"] == "some-title some-desc"
        assert (picture[1].tag, picture[1].text) == (f"{SVG}desc", " ".join(told(sample)))
        marks: dict[tuple[str, tuple[int, ...]], str] = {}
        for letter, (at, r) in zip(LETTERS, sample.reads.items()):
            read = [*r.elements.items(), *r.outside.items(), (sample.output, [at])]
            for key in {(operand, p) for operand, points in read for p in points}:
                marks[key] = marks.get(key, "") + letter
        shown = [e.attrib["class"].split() for e in picture.iter(f"{SVG}rect")]
        assert sorted(kind for kind, *_ in shown) == sorted(
            f"opc-{m.lower()}" if len(m) == 1 else "opc-many" for m in marks.values()
        )
        dashed = {(operand, p) for r in sample.reads.values() for operand, points in r.outside.items() for p in points}
        assert sum("opc-outside" in kinds for kinds in shown) == len(dashed)
        drawn_texts = [e.text for e in picture.iter(f"{SVG}text")]
        assert sorted(t for t in drawn_texts if t and set(t) <= set(LETTERS)) == sorted(marks.values())
        tips = [e for e in picture.iter(f"{SVG}path") if "opc-tip" in e.attrib["class"]]
        assert len(tips) == len({link for r in sample.reads.values() for link in r.links})
