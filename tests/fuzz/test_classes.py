"""Specs in which something was wrong once (`classes.py`, `forms.py`) are held to the proof that random ones are held to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import cycle, islice, product
from pathlib import Path
from random import Random

import numpy as np
import pytest

from opc.ir.op import Family, Group, Op
from opc.pipeline import compile_text
from opc.testing.cases.arguments import TensorArg, random_values
from opc.testing.cases.calls import Case, Maker
from opc.testing.cases.sizes import Sizes, broadcast_variants, dims_of, groups_of, split
from opc.testing.oracle.evaluation import evaluate
from tests.amounts import MANY
from tests.backends.onnx.test_checks import load
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz import judge
from tests.fuzz.broadcast import BROADCAST
from tests.fuzz.calls import parents, special
from tests.fuzz.classes import CONDITIONS, EXTREMES, HEAD, PRODUCTS, SUMS, TURNED
from tests.fuzz.conditionals import CONDITIONALS
from tests.fuzz.forms import FORMS
from tests.fuzz.kernels import Libraries, compile_together
from tests.fuzz.proof import (
    answers,
    expected,
    functions,
    reference,
    wrong_answer,
    wrong_gradients,
    wrong_in_table,
    wrong_kernel,
    wrong_twins,
)
from tests.fuzz.shadowed import SHADOWED
from tests.fuzz.windows import WINDOWS
from tests.rotation import asked

CALLS = 8


OUTSIDE = """\
y[n] = x[n] * 2
  s[k, l] = sum[m](x[ids[m]]) * w[k] + x[at] * v[l]
  t[m:M] = x[ids[m]] * 2
  p = argmax[m](t[m])
  r[k] = sum[m](cast(int64, t[m] > 0)) + ids[p]"""
"""An index outside its axis, read for some outputs only."""


def family(name: str, head: str, body: str) -> Family:
    return compile_text(f"{HEAD.format(name=name)}{head}kernel: |\n  {body}\n", name)


def compiled(one: Family) -> Family:
    """Return what is compiled of an op: it and its gradient, and with OPC_FUZZ what is derived from these."""
    return one if MANY else replace(one, backward_backward=None, jvp=None, backward_jvp=None)


def report(families: list[Family], wrong: Callable[[Family], Iterator[str]]) -> None:
    assert [f"{f.name}: {mistake}" for f in families for mistake in wrong(f)] == []


@pytest.mark.rotating
@pytest.mark.parametrize("specs", [CONDITIONS, PRODUCTS, SUMS, TURNED], ids=["conditions", "products", "sums", "turned"])
def test_specs(specs: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    families = [family(name, *text) for name, text in specs.items()]
    first = [compiled(one) for one in families]
    library = compile_together(first, tmp_path, "-O0")
    report(first, lambda f: wrong_in_table(f, KernelLibrary(f, library), CALLS))
    report(families, wrong_gradients)


def sizes_of(op: Op) -> Iterator[Sizes]:
    """Yield sizes of which one is nothing, or two are, and others."""
    dims, groups = dims_of(op), groups_of(op)
    rows = list(product((0, 3, 1), repeat=len(dims)))
    for turn, row in enumerate(islice(cycle(rows), max(len(rows), 9))):  # so many that there are all groups and operands left out
        yield Sizes(dict(zip(dims, row, strict=True)), split(groups, ((2,), (0,), (3, 0), (), (2, 3))[turn % 5], turn % 4), {})


def sizes_of_groups(op: Op) -> Iterator[Sizes]:
    """Yield sizes of which no group has an axis, where there are groups, so that operands are single elements, or has many."""
    for size in (3, 9):
        found = Sizes(dict.fromkeys(dims_of(op), size), dict.fromkeys(groups_of(op), ()), {})
        if found.groups:
            yield found
    for shape in ((65,), (5, 33)):  # rows along a group are longer than others
        found = Sizes(dict.fromkeys(dims_of(op), 3), split(groups_of(op), shape, 0), {})
        if found.groups:
            yield found


def shared_sizes(op: Op) -> Iterator[Sizes]:
    """Yield sizes of operands that broadcast: some smaller than what they share, or all but one."""
    yield from islice(broadcast_variants(op), 0, None, 4)
    owners = dict.fromkeys(d.of for o in op.inputs for d in o.dims if isinstance(d, Group) and d.of is not None)
    for owner in owners:
        yield Sizes(dict.fromkeys(dims_of(op), 2), {"...": (3, 2)}, {other: (1,) for other in owners if other != owner})


def drawn(place: int) -> Callable[[int], bool]:
    """Return which calls of an op are made without OPC_FUZZ, by its place in the family: of the first those that begin the cycles
    of sizes, groups, attributes and absent operands, and a third of the others; of each other op about a quarter.

    11 has no factor in common with the cycles, so that each op of a family has other calls.
    """
    return lambda turn: MANY or (place == 0 and turn < 9) or (7 * turn + 3 * place) % 11 < (3 if place else 4)


WITHOUT = {1: slice(-1), 3: slice(1, None), 5: slice(None, None, 2), 7: slice(None)}
"""Which optional operands some of eight calls lack: all but the last, all but the first, every other one, all."""


EVERY = {**EXTREMES, **FORMS, **BROADCAST, **CONDITIONALS, **SHADOWED, **WINDOWS}


@cache
def one_of(name: str) -> Family:
    return compiled(family(name, *EVERY[name]))


@pytest.fixture(scope="module")
def libraries(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Libraries:
    return Libraries(asked(request, "name"), one_of, tmp_path_factory.mktemp("every"))


def calls_of(op: Op, maker: Maker) -> Iterator[tuple[Op, Case]]:
    """Yield calls of all those sizes, of each attribute's values in turn, some without some of the optional operands."""
    optional = [o.name for o in op.inputs if o.optional]
    for turn, sizes in enumerate((*sizes_of(op), *sizes_of_groups(op), *shared_sizes(op))):
        attributes = {n: v[turn % len(v)] for n, v in maker.good.items() if v}
        absent = frozenset(optional[WITHOUT.get(turn % 8, slice(0))])
        label = f"{op.name} {sizes.dims} {sizes.groups} {sizes.own} {attributes} without {sorted(absent)}"
        fill = special(0.2) if turn % 3 == 2 else random_values  # infinities and numbers that are none among them
        case = maker.make(label, sizes, attributes=attributes, absent=absent, fill=fill)
        if case is not None:
            yield op, case


@pytest.mark.rotating
@pytest.mark.parametrize("name", EVERY)
def test_every_target(name: str, libraries: Libraries, tmp_path: Path) -> None:
    """Kernels, references and ONNX functions have a value where the oracle has one, and it where brute force has one."""
    (head, body), one = EVERY[name], one_of(name)
    text = f"{HEAD.format(name=name)}{head}kernel: |\n  {body}\n"
    kernel = KernelLibrary(one, libraries.of(name))
    refer, session, above = reference(one), load(one, tmp_path), parents(one)
    found = []
    for place, op in enumerate(one.ops):
        maker = Maker(op, above.get(id(op)), 2_000)
        made = drawn(place)
        calls = (call for turn, call in enumerate(calls_of(op, maker)) if made(turn))
        for _, case, want in answers(calls):
            found += [f"kernel of {case.name}: {m}" for m in wrong_kernel(kernel, op, case, want)]
            if op is one.forward:
                found += [f"oracle of {case.name}: {m}" for m in judge.wrong_values(text, one, case)]
            if want is not None:
                found += [f"numpy of {case.name}: {m}" for m in wrong_answer(refer, op, case, want)]
                found += [f"onnx of {case.name}: {m}" for m in wrong_answer(functions(session), op, case, want, signed=False)]
        if op is one.forward and name not in EXTREMES:  # what is absent may be what tells a gradient's sizes
            every, optional = [*sizes_of(op)], [o.name for o in op.inputs if o.optional]
            some = every if optional else [*every[:6], *every[6 :: -(-len(every) // 6)]]
            bare = [maker.make("bare", sizes, absent=frozenset(optional)) for sizes in some]
            found += [f"gradient of {case.name}: {m}" for case in bare if case for m in judge.wrong_gradients(text, one, case)]
            found += [f"twins of {name}: {m}" for turn in range(3) for m in wrong_twins(text, one, Random(f"{name}/{turn}"))]
    assert not found, "\n".join(found[:5])


def test_an_index_outside_is_refused_where_it_is_asked_for(tmp_path: Path) -> None:
    head = "inputs: {x: 'T[N]', ids: 'int64[M]', at: 'int64[]', w: 'T[K]', v: 'T[L]'}\n"
    one = family("outside", f"{head}outputs: {{y: 'T[N]', s: 'T[K, L]', r: 'int64[K]'}}\n", OUTSIDE)
    kernel = KernelLibrary(one, compile_together([one], tmp_path, "-O0"))
    maker = Maker(one.forward)
    for count, length in product((0, 2), repeat=2):
        case = maker.make("outside", Sizes({"N": 3, "M": 2, "K": count, "L": length}, {}, {}))
        assert case is not None
        given = {"ids": TensorArg(np.array([1, 99])), "at": TensorArg(np.array(99))}
        case = replace(case, inputs={**case.inputs, **given})
        want = expected(one.forward, case)
        assert (want is None) == (count > 0)
        assert list(wrong_kernel(kernel, one.forward, case, want)) == []
        if want is not None:
            assert list(wrong_answer(reference(one), one.forward, case, want)) == []
        else:
            with pytest.raises(IndexError, match="an index of x is 99"):
                reference(one)(one.forward, case, ["y", "s", "r"])


@pytest.mark.parametrize("name", ["masked_products"])
def test_a_factor_that_is_zero_is_multiplied_with_infinities(name: str, libraries: Libraries, tmp_path: Path) -> None:
    """What stands under a condition is a term in `y` and `t`, which does not count where it fails, and a factor in `z`."""
    (head, body), one = FORMS[name], one_of(name)
    case = Maker(one.forward).make("infinities", Sizes({"I": 2, "K": 2, "J": 2}, {}, {}))
    assert case is not None
    a, b = np.ones((2, 2)), np.array([[np.inf, np.inf], [2.0, 2.0]])
    mask, keep = np.array([[False, True], [True, True]]), np.array([[True, False], [True, True]])
    given = {n: TensorArg(x) for n, x in {"a": a, "b": b, "mask": mask, "keep": keep}.items()}
    case = replace(case, inputs=given)
    want = expected(one.forward, case)
    assert want is not None
    found = {n: np.where(x.bounds.nan, np.nan, x.value).tolist() for n, x in want.items()}
    assert str(found["y"]) == "[[2.0, 2.0], [inf, inf]]"
    assert str(found["z"]) == "[[nan, 2.0], [inf, 2.0]]"
    text = f"{HEAD.format(name=name)}{head}kernel: |\n  {body}\n"
    assert list(judge.wrong_values(text, one, case)) == []
    assert list(wrong_kernel(KernelLibrary(one, libraries.of(name)), one.forward, case, want)) == []
    assert list(wrong_answer(reference(one), one.forward, case, want)) == []
    assert list(wrong_answer(functions(load(one, tmp_path)), one.forward, case, want)) == []


def test_a_type_that_no_operand_tells(tmp_path: Path) -> None:
    """Without tangents nothing tells T; `t_u` has a type of its own, and is computed from what has T."""
    one = compile_text(
        "op: untold\ndomain: opc.test\nversion: 1\ndoc: A test.\n"
        "types: {T: [float32, float64], U: [float32, float64]}\nattributes: {to: {type: dtype, binds: U}}\n"
        "inputs: {h: 'bool[N]', s: 'T[]', x: 'T[N]'}\noutputs: {y: 'T[N]', u: 'U[N]'}\n"
        "kernel: |\n  y[n] = sum[k:n + 1](x[k] if h[k] else 0) + s[()]\n  u[n] = cast(U, y[n])\n",
        "untold",
    )
    assert one.jvp is not None
    kernel = KernelLibrary(one, compile_together([one], tmp_path, "-O0"))
    given = dict.fromkeys((o.name for o in one.jvp.inputs), None) | {"h": np.array([True, False])}
    got = kernel.call(one.jvp, given, {"to": "float64"}, ["t_u"])
    assert got["t_u"].dtype == np.float64
    assert got["t_u"].tolist() == [0, 0]
    want = evaluate(one.jvp, given, {"to": "float64"})
    assert list(want) == ["t_u"]
    assert want["t_u"].value.tolist() == [0, 0]
