"""Attributes of random specs: every type, lists, with and without defaults, in any order."""

from __future__ import annotations

import random

DECLARED = {
    "alpha": ("float", "0.5", ""),
    "beta": ("float", "-1.5", ""),
    "width": ("int", "2", "width > 0 and width < 5"),
    "stride": ("int", "2", "stride > 0 and stride < 4"),
    "groups": ("int", "2", "groups > 0 and groups < 4"),
    "big": ("int", "200", "big > -70000 and big < 70000"),
    "flag": ("bool", "true", ""),
    "mode": ("str", "plain", ""),
    "pads": ("int[2]", "[1, 0]", "pads >= 0 and pads < 4"),
    "scales": ("float[2]", "[0.5, 2.0]", "scales > 0"),
    "gates": ("bool[2]", "[true, false]", ""),
    "extras": ("float[]", "[1.0, 2.0]", ""),
    "to": ("dtype", "float32", ""),
    "axis": ("axis", "-1", ""),
    "place": ("axis", "-1", ""),
    "axis1": ("axis", "-2", ""),
    "axis2": ("axis", "-1", ""),
    "axes": ("axes", "[0]", ""),
    "perm": ("permutation", "[]", ""),
    "keepdims": ("bool", "false", ""),
}
"""The type, the default and the check of each."""

MODES = ("plain", "scaled", "other")
FURTHER = {
    "mode": f"values: [{', '.join(MODES)}]",
    "to": "binds: U",
    "axis": "dim: N",
    "place": "dim: K",
    "axis1": "dim: N",
    "axis2": "dim: M",
    "axes": "group: R",
    "perm": "group: R, of: x",
    "keepdims": "keeps: R",
}


def declarations(rng: random.Random, names: set[str]) -> str:
    """Return the attributes' part of a spec: each with a default or without, in an order of chance."""
    chosen = sorted(names)
    rng.shuffle(chosen)
    lines = []
    for name in chosen:
        kind, default, check = DECLARED[name]
        parts = [f"type: '{kind}'", *([FURTHER[name]] if name in FURTHER else [])]
        if rng.random() < 0.6:
            parts.append(f"default: {default}")
        if check:
            parts.append(f"check: {check}")
        lines.append(f"  {name}: {{{', '.join(parts)}}}\n")
    return "attributes:\n" + "".join(lines) if lines else ""
