"""Runs built packages on eight devices of the host; started by `live.py`.

Arguments: the folder of the packages. Writes a line of JSON for each case to standard output: what differs from the call on whole
arrays, where the first output and the gradients lie, and the collectives of the compiled call and of its gradient.
"""

from __future__ import annotations

import faulthandler
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

COLLECTIVE = re.compile(r" (all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)(?:-start)?\(")


@dataclass(frozen=True)
class Call:
    """One call: the op, its arrays (differentiated where they are floating), and where each lies."""

    name: str
    op: str
    arrays: tuple[Any, ...]
    places: tuple[Any, ...]
    attributes: dict[str, Any]


def calls() -> list[Call]:
    random = np.random.default_rng(5)

    def some(*shape: int) -> Any:
        return random.standard_normal(shape)

    x, w, b = some(8, 4), some(16, 4), some(16)
    ids = random.integers(0, 11, (8, 3))
    return [
        Call("elementwise", "leaky_relu", (some(8, 3),), (P("a"),), {"alpha": 0.3}),
        Call("elementwise-both", "leaky_relu", (some(8, 2),), (P("a", "b"),), {}),
        Call("elementwise-uneven", "leaky_relu", (some(9, 3),), (P(),), {}),
        Call("broadcast-row", "add", (some(8, 4), some(4)), (P("a"), P()), {}),
        Call("broadcast-columns", "add", (some(6, 4), some(4)), (P(None, "a"), P("a")), {}),
        Call("softmax-batch", "softmax", (some(8, 5),), (P(("a", "b")),), {}),
        Call("softmax-behind", "softmax", (some(3, 5, 4),), (P(None, None, "a"),), {"axis": 1}),
        Call("softmax-along", "softmax", (some(6, 4),), (P(None, "a"),), {"axis": 1}),
        Call("new-axis-ahead", "unsqueeze", (some(3, 4),), (P(None, "a"),), {"axis": 1}),
        Call("new-axis-behind", "unsqueeze", (some(3, 4, 5),), (P(None, "a"),), {"axis": -2}),
        Call("linear-batch", "linear", (x, w, b), (P("a"), P(), P()), {}),
        Call("linear-column", "linear", (x, w, b), (P(), P("a"), P("a")), {}),
        Call("linear-row", "linear", (x, w, None), (P(None, "a"), P(None, "a"), None), {}),
        Call("linear-row-bias", "linear", (x, w, b), (P(None, "a"), P(None, "a"), P()), {}),
        Call("linear-both", "linear", (x, w, b), (P("a"), P("b"), P("b")), {}),
        Call("embedding-batch", "embedding", (ids, some(11, 4)), (P("a"), P()), {}),
        Call("embedding-columns", "embedding", (ids, some(11, 4)), (P(), P(None, "a")), {}),
    ]


def collectives(compiled: Any) -> dict[str, int]:
    return dict(Counter(COLLECTIVE.findall(compiled.as_text())))


def spec(array: Any) -> str:
    return str(tuple(array.sharding.spec)) if isinstance(array.sharding, NamedSharding) else "?"


def run(call: Call, mesh: Any) -> dict[str, Any]:
    function = getattr(import_module(f"{call.op}.jax"), call.op)
    there = [i for i, a in enumerate(call.arrays) if a is not None]
    whole = [jnp.asarray(call.arrays[i]) for i in there]
    spread = [jax.device_put(a, NamedSharding(mesh, call.places[i])) for i, a in zip(there, whole)]

    def value(*given: Any) -> Any:
        operands = [None] * len(call.arrays)
        for i, array in zip(there, given):
            operands[i] = array
        return function(*operands, **call.attributes)

    moving = tuple(i for i, a in enumerate(whole) if a.dtype.kind == "f")
    seed = jnp.asarray(np.random.default_rng(1).standard_normal(value(*whole).shape))

    def pulled(*given: Any) -> Any:
        def floating(*leaves: Any) -> Any:
            operands = list(given)
            for i, leaf in zip(moving, leaves):
                operands[i] = leaf
            return value(*operands)

        return jax.vjp(floating, *(given[i] for i in moving))[1](jax.lax.with_sharding_constraint(seed, made.sharding))

    forward = jax.jit(value).lower(*spread).compile()
    made = forward(*spread)
    expected = value(*whole)
    backward = jax.jit(pulled).lower(*spread).compile()
    gradients = backward(*spread)
    wanted = jax.vjp(lambda *leaves: value(*merged(whole, moving, leaves)), *(whole[i] for i in moving))[1](seed)
    wrong = [n for n, (a, e) in enumerate(zip((made, *gradients), (expected, *wanted))) if not np.allclose(a, e, rtol=1e-12)]
    return {
        "wrong": wrong,
        "output": spec(made),
        "gradients": [spec(g) for g in gradients],
        "forward": collectives(forward),
        "backward": collectives(backward),
    }


def mapped(mesh: Any) -> dict[str, Any]:
    """Compare a call within jax.shard_map, and its gradients, with those of whole arrays."""
    linear = import_module("linear.jax").linear
    random = np.random.default_rng(2)
    x, w = jnp.asarray(random.standard_normal((8, 4))), jnp.asarray(random.standard_normal((3, 4)))
    spread = jax.shard_map(linear, mesh=mesh, in_specs=(P("a"), P()), out_specs=P("a"))

    def values(call: Any) -> list[Any]:
        return [call(x, w), *jax.jit(jax.grad(lambda x, w: (call(x, w) ** 2).sum(), (0, 1)))(x, w)]

    pairs = zip(values(spread), values(linear), strict=True)
    return {"wrong": [n for n, (a, b) in enumerate(pairs) if not np.allclose(a, b, rtol=1e-12)]}


def merged(arrays: list[Any], places: tuple[int, ...], values: Any) -> list[Any]:
    operands = list(arrays)
    for i, value in zip(places, values):
        operands[i] = value
    return operands


def main() -> None:
    # Eight devices wait for each other; where they do so for ever, it says where.
    faulthandler.dump_traceback_later(280, exit=True)
    jax.config.update("jax_enable_x64", True)
    sys.path.insert(0, sys.argv[1])
    assert len(jax.devices()) == 8
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Auto, AxisType.Auto))
    for call in calls():
        try:
            found = run(call, mesh)
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"name": call.name, **found}), flush=True)
    print(json.dumps({"name": "shard_map", **mapped(mesh)}), flush=True)


main()
