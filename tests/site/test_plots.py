"""Plots show what an op computes, and the slope of it."""

from __future__ import annotations

import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from opc.pipeline import load_family
from opc.site.plots import curves, svg

SPECS = Path(__file__).parents[2] / "specs"
PLOTTED = ("elu", "gelu", "hard_sigmoid", "leaky_relu", "relu", "selu", "sigmoid", "silu", "softplus")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.rotating
def test_elementwise_ops_of_one_tensor_are_plotted_and_no_others() -> None:
    assert [p.stem for p in sorted(SPECS.glob("*.yaml")) if curves(load_family(p)) is not None] == list(PLOTTED)


@pytest.mark.parametrize("name", PLOTTED)
def test_the_slope_is_that_of_the_curve(name: str) -> None:
    found = curves(load_family(SPECS / f"{name}.yaml"))
    assert found is not None
    assert found.slope is not None
    middle = (found.slope[1:] + found.slope[:-1]) / 2
    # Beside a kink the mean of two slopes is not that of the curve between.
    calm = np.abs(np.diff(found.slope)) < 0.02
    assert calm.sum() > 780
    np.testing.assert_allclose((np.diff(found.y) / np.diff(found.x))[calm], middle[calm], atol=1e-4)


def points(path: str) -> np.ndarray:
    return np.array([[float(v) for v in pair.split()] for pair in re.split("[ML]", path) if pair])


def test_the_picture_shows_the_values() -> None:
    family = load_family(SPECS / "sigmoid.yaml")
    found = curves(family)
    assert found is not None
    picture = ElementTree.fromstring(svg(family, found))
    drawn = [p.attrib["d"] for p in picture.iter(f"{SVG}path") if len(p.attrib["d"]) > 1000]
    assert len(drawn) == 2
    (x, y), slope = points(drawn[0]).T, points(drawn[1])[:, 1]
    # The function goes from 0 to 1 and through 1/2 in the middle; its derivative is 1/4 there.
    unit = (y[0] - y[-1]) / (1 / (1 + math.exp(-4)) - 1 / (1 + math.exp(4)))
    zero = y[len(y) // 2] + unit / 2
    np.testing.assert_allclose((zero - y) / unit, 1 / (1 + np.exp(-np.linspace(-4, 4, len(x)))), atol=2e-3)
    np.testing.assert_allclose((zero - slope).max() / unit, 0.25, atol=2e-3)
    assert np.all(np.diff(x) > 0)


def test_a_derivative_that_jumps_has_a_gap() -> None:
    family = load_family(SPECS / "leaky_relu.yaml")
    found = curves(family)
    assert found is not None
    picture = ElementTree.fromstring(svg(family, found))
    curve, slope = (p.attrib["d"] for p in picture.iter(f"{SVG}path") if len(p.attrib["d"]) > 1000)
    assert (curve.count("M"), slope.count("M")) == (1, 2)


def test_a_picture_says_in_words_what_it_shows() -> None:
    family = load_family(SPECS / "leaky_relu.yaml")
    found = curves(family)
    assert found is not None
    picture = ElementTree.fromstring(svg(family, found))
    named = picture.attrib["aria-labelledby"].split()
    told = [e.text for e in picture.iter() if e.attrib.get("id") in named]
    assert told == [
        "leaky_relu and its derivative",
        "y: -0.04 at -4, -0.02 at -2, -0.01 at -1, 0 at 0, 1 at 1, 2 at 2, 4 at 4;"
        " dy/dx: 0.01 at -4, 0.01 at -2, 0.01 at -1, 1 at 0, 1 at 1, 1 at 2, 1 at 4",
    ]
