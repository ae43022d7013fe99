"""The covering set: few ops that together have everything that the ops of a folder have, for frameworks too slow to run all.

What an op has is read off its compiled family and its kernels' loops: each kind of node, and of each node the flags that are
set, the kinds it names, whether optional parts are there and whether lists hold none, one or several; element types; ranks. So a
new construct, stage form or attribute is covered from the day an op of the folder has it. A greedy set cover chooses the ops.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from opc.build import files, locks, stamp
from opc.build.locks import FOLDER
from opc.diagnostics import Span, SpecError
from opc.emit.cuda.files import refused
from opc.emit.shapes.builder import CPP, builder_calls
from opc.ir.affine import Affine
from opc.ir.dtypes import Acc, DType, TypeVar
from opc.ir.expr import walk
from opc.ir.op import CodeLine, Example, Family, Group, Op, Operand
from opc.loops.nodes import Body, Loop, bodies, values_of
from opc.loops.values import Intrinsic
from opc.lower.build.stage import stage_schedule
from opc.lower.cuda.kernels import cuda_kernel
from opc.lower.cuda.stages import device_programs
from opc.lower.fuse import cpu_programs
from opc.pipeline import load_family
from opc.spec.files import content, numbers_at
from opc.spec.files import digest as digest_of

INTERFACE = ("attribute ", "op ", "operand ", "rank ", "type ")
"""What a backend's code depends on where it calls the compiled kernel: not what is computed, nor in what loops."""

OF_TORCH = "op native torch"
"""What is no such feature for others than torch: native code that runs on torch alone, and elsewhere the op's kernel."""

SIGNATURE = ("attribute ", "op no ", "op one ", "op several ", "op with ", "operand Operand.")
"""What it depends on where it wraps the code of another backend, which has types and checks: how the features begin."""

BODY = (*INTERFACE, "language ")
"""What it depends on where it is made from the body: not in what loops the kernel computes that."""

LOOPS = ("loops ",)
"""What it depends on where threads meet in memory: not what is computed, nor what calls it."""

MEMORY = (*LOOPS, "language ")
"""What it depends on which elements are accessed, and how: not what calls it."""

DEVICE = ("device ",)
"""What kernels on a device are made of: how loops are bound to threads, and what these do together."""

ON_GPU = ("device function report", "operand Operand.optional")
"""What calls of such kernels from a framework depend on: whether they tell of data, and operands that are not given."""

NAMED = ("kind", "fn")
"""Fields whose text is one of few words of the language; any other text is a name or a message."""

FUNCTION = "language Call.fn="
"""How what is left out begins: which functions a body calls. Each has tests of its own, by the table of functions, everywhere."""

COUNTED = ("axes", "plans", "terms", "passes", "places", "optional")
"""Fields of which it counts whether they hold one thing or several."""

OPAQUE = (Span, TypeVar, Example, CodeLine)
"""What says nothing of an op's form."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """An op of a covering set: its spec, and the features that it was chosen for.

    The ops of an `interface` alone have all features of `INTERFACE`; backends that wrap the kernel run these. Those of a
    `signature`, some of these, have all features of `SIGNATURE`; backends that wrap another run these. Those of `loops` have all
    features of `LOOPS`; the thread sanitizer runs these. Those of a `body` have all features of `BODY`, for backends made of
    bodies, and those of `memory` all of `MEMORY`, for the other sanitizers.
    """

    name: str
    spec: Path
    adds: tuple[str, ...]
    interface: bool
    signature: bool
    loops: bool
    body: bool
    memory: bool


@dataclass(frozen=True, slots=True)
class Covering:
    """The covering set, and the specs of a few ops, by name, that have all features of `DEVICE`.

    Kernels on a device run what has these: ops outside the covering set too, as they need no framework and are small. Those of
    `expressions` have all of `expressions()`, as far as they can be of those of `device`, whose kernels are compiled anyway.
    Those of `on_gpu`, some of `device`, have all features of `ON_GPU`, for frameworks that call such kernels.
    `others` are the ops that are not chosen.
    """

    chosen: tuple[Chosen, ...]
    device: Mapping[str, Path]
    expressions: Mapping[str, Path]
    on_gpu: Mapping[str, Path]
    others: Mapping[str, Path]


def features(family: Family) -> frozenset[str]:
    """Return what an op has: a word for each construct, form of its loops, element type, rank, and kind of operand."""
    found = {f"op {text}" for text in _own(family)}
    for op in family.ops:
        _add((op.body, op.require), "language", found)
        _add((op.inputs, op.outputs), "operand", found)
        # What their conditions compute is seen on NumPy, of every op.
        attributes: set[str] = set()
        _add(op.attributes, "attribute", attributes)
        found |= {text for text in attributes if text.startswith("attribute Attribute")}
        if not (op is family.forward and family.native_for("cpp") is not None):
            for variant in cpu_programs(op):
                _add(variant.program, "loops", found)
                stages = (stage_schedule(variant.case.op, s) for s in variant.program.stages)
                steps = (t for schedule in (variant.program.schedule, *stages) for t in schedule.steps)
                found |= {f"loops schedule {t.name}" for t in steps}
    found |= {f"type {'input' if o in family.forward.inputs else 'output'} {d.value}" for o, d in _dtypes(family.forward)}
    found |= {f"rank {_rank(o)}" for o in (*family.forward.inputs, *family.forward.outputs)}
    if not refused(family):
        found |= {f"device {text}" for op in family.ops for text in _on_device(op)}
    return frozenset(text for text in found if not text.startswith(FUNCTION))


def _own(family: Family) -> Iterator[str]:
    """Yield what a family and its op say of themselves beside bodies and operands."""
    forward = family.forward
    yield from (f"with {name}" for name in ("backward", "backward_backward", "jvp", "backward_jvp") if getattr(family, name))
    yield from (f"with {name}" for name in ("broadcast", "inplace", "derivation", "stands_for") if getattr(forward, name))
    yield from (f"ties={forward.ties.value}", f"scatter={forward.scatter.value}")
    yield from ("explicit backward",) if family.explicit_backward else ()
    yield from ("surrogate gradient",) if family.surrogates else ()
    yield from (f"native {native.target}" for native in family.native)
    yield from (f"names for {name.backend}" for name in family.names)
    yield f"{_several(forward.inputs)} input"
    yield f"{_several(forward.outputs)} output"
    yield f"{_several(forward.types)} type variable"


def _on_device(op: Op) -> Iterator[str]:
    """Yield what an op's kernels on a device hold: steps of their schedules, kinds of statements, and the runtime's functions."""
    for variant in device_programs(op):
        for stage in variant.program.stages:
            kernel = cuda_kernel(variant.case.op, stage)
            for t in kernel.schedule.steps:
                # Names of indices say nothing of a form.
                named = t.name in ("scan", "scatter")
                yield f"schedule {t.name}{' atomic' if 'atomic' in t.args else ''}" if named else f"schedule {t}"
            yield from _statements(kernel.body)


def _statements(body: Body) -> Iterator[str]:
    for s in body:
        yield f"{type(s).__name__} {s.how.value}" if isinstance(s, Loop) else type(s).__name__
        for part in bodies(s):
            yield from _statements(part)
    for value in values_of(body):
        yield from (f"function {e.name}" for e in walk(value) if isinstance(e, Intrinsic))


def expressions(family: Family) -> frozenset[str]:
    """Return what plugins of an op hold whose host computes with sizes as expressions: TensorRT's, which run the op itself.

    These are the calls that its shape rules become, kinds of attributes and what they are used for, operands that may be left
    out, how many inputs and outputs, and element types. An op without kernels on a device, or without any type of theirs for an
    operand, has no such plugin, and nothing of this.
    """
    op = family.forward
    carried = [(o, d) for o, d in _dtypes(op) if d.row.tensorrt is not None]
    typed = {o.name for o, _ in carried} | {o.name for o in op.outputs if isinstance(o.type, Acc)}
    if refused(family) or not typed >= {o.name for o in (*op.inputs, *op.outputs)}:
        return frozenset()
    found = {f"{'input' if o in op.inputs else 'output'} {d.value}" for o, d in carried}
    found |= {f"{_several(op.inputs)} input", f"{_several(op.outputs)} output", f"{_several(op.types)} type variable"}
    found |= {"optional input" for o in op.inputs if o.optional} | {"type of sums" for o in op.outputs if isinstance(o.type, Acc)}
    for call in builder_calls(op, CPP):
        found |= {f"size {name}" for name in re.findall(r"\bs\.(\w+)\(", call)}
        found |= {
            f"size of {'a list' if of_list else 'a number'}" for of_list in re.findall(r"number\(attributes\.\w+(\[?)", call)
        }
    for a in op.attributes:
        listed = "" if a.length is None else " list"
        found.add(f"attribute {a.kind.value}{listed}")
        found |= {f"attribute with {name}" for name in ("binds", "values", "default") if getattr(a, name) not in (None, ())}
    return frozenset(found)


def _several(items: Collection[Any]) -> str:
    return ("no", "one", "several")[min(2, len(items))]


def _add(node: Any, layer: str, found: set[str]) -> None:
    """Add the features of a node and of all in it. What loops compute is what bodies say, so there only their own nodes count."""
    if isinstance(node, tuple):
        for part in node:
            _add(part, layer, found)
    elif is_dataclass(node) and not isinstance(node, (type, *OPAQUE)):
        kind = type(node)
        if layer == "loops" and kind.__module__.startswith("opc.ir"):
            return
        found.add(f"{layer} {kind.__name__}")
        # A polynomial's terms are numbers and symbols: which symbols there are is all that counts.
        if isinstance(node, Affine):
            for monomial, _ in node.terms:
                _add(monomial, layer, found)
            return
        for name, optional in _fields(kind):
            value = getattr(node, name)
            said = _said(name, value, optional)
            if said:
                found.add(f"{layer} {kind.__name__}.{said}")
            if isinstance(value, tuple) or is_dataclass(value):
                _add(value, layer, found)


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, bool], ...]:
    """Return the fields of a class of nodes that count, and whether each may be left out."""
    return tuple((f.name, "None" in str(f.type)) for f in fields(kind) if f.compare)


def _said(name: str, value: Any, optional: bool) -> str:
    """Return what the value of a field says: a flag, a kind, that it is there, how many there are; nothing by default."""
    if isinstance(value, bool):
        return name if value else ""
    if isinstance(value, Enum) and not isinstance(value, DType):
        return f"{name}={value.value}"
    if isinstance(value, str) and name in NAMED:
        return f"{name}={value}"
    if isinstance(value, tuple):
        return f"{name}: {_several(value)}" if name in COUNTED or not value else ""
    return f"{name} given" if optional and value is not None else ""


def _dtypes(op: Op) -> Iterator[tuple[Operand, DType]]:
    for operand in (*op.inputs, *op.outputs):
        kind = getattr(operand.type, "of", operand.type)
        yield from ((operand, d) for d in (kind.dtypes if isinstance(kind, TypeVar) else (kind,)) if isinstance(d, DType))


def _rank(operand: Operand) -> str:
    """Return the axes of an operand: `*` for a group, `n` for a single one."""
    return "".join("*" if isinstance(d, Group) else "n" for d in operand.dims) or "scalar"


def cover(found: Mapping[str, frozenset[str]], cost: Mapping[str, float]) -> dict[str, tuple[str, ...]]:
    """Return the names whose features together are all features, each with those that it was chosen for.

    Greedy: the name that adds most for its cost comes next; what those behind it make superfluous is left out in the end.
    """
    chosen: list[str] = []
    left = frozenset[str]().union(*found.values())
    while left:
        best = max(sorted(found), key=lambda name: len(found[name] & left) / cost[name])
        chosen.append(best)
        left -= found[best]
    for name in [*chosen]:
        if found[name] <= frozenset[str]().union(*(found[other] for other in chosen if other != name)):
            chosen.remove(name)
    adds: dict[str, tuple[str, ...]] = {}
    seen = frozenset[str]()
    for name in chosen:
        adds[name] = tuple(sorted(found[name] - seen))
        seen |= found[name]
    return adds


def covering_set(specs: Sequence[Path], out: Path) -> Covering:
    """Return the covering set of specs. A spec with mistakes is left out: the proof reports them.

    What was read off a spec is kept below `out`, for as long as neither the spec nor opc changes.
    """
    known = out / FOLDER / "features.json"
    try:
        kept = json.loads(known.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        kept = {}
    own = digest(stamp.own_files())
    now: dict[str, Any] = {}
    families: dict[str, Path] = {}
    for spec in specs:
        text = content(spec)
        key = hashlib.sha256(f"{digest_of(text, numbers_at(spec, text))} {own}".encode()).hexdigest()
        try:
            now[key] = entry = kept.get(key) or _entry(load_family(spec))
        except SpecError:
            continue
        families[entry["name"]] = spec
    if now.keys() - kept.keys():
        with locks.hold(known.parent):
            files.write(known, json.dumps(now), known.parent)
    found = {e["name"]: frozenset(e["features"]) for e in now.values()}
    cost = {e["name"]: float(e["cost"]) for e in now.values()}
    chosen = cover(found, cost)

    def covering(names: Iterable[str], kinds: tuple[str, ...]) -> Collection[str]:
        some = {name: frozenset(f for f in found[name] if f.startswith(kinds) and f != OF_TORCH) for name in names}
        return cover(some, cost)

    interface, loops = covering(chosen, INTERFACE), covering(chosen, LOOPS)
    signature, body, memory = covering(interface, SIGNATURE), covering(chosen, BODY), covering(chosen, MEMORY)
    parts = interface, signature, loops, body, memory
    flagged = tuple(Chosen(name, families[name], adds, *(name in part for part in parts)) for name, adds in chosen.items())
    device = covering(found, DEVICE)
    plugins = {e["name"]: frozenset(e["expressions"]) for e in now.values()}
    # A kernel takes longer to compile than all else of a plugin.
    by_expressions = cover(plugins, {name: cost[name] * (0.5 if name in device else 1.0) for name in plugins})
    sets = (device, by_expressions, covering(device, ON_GPU), sorted(found.keys() - chosen.keys()))
    return Covering(flagged, *({name: families[name] for name in names} for names in sets))


def _entry(family: Family) -> dict[str, Any]:
    # How long the proof of an op takes goes with its calls, which all ops have, and with what its kernels and bodies hold.
    cost = 20.0 + sum(_size(op) for op in family.ops)
    found, plugin = sorted(features(family)), sorted(expressions(family))
    return {"name": family.name, "features": found, "expressions": plugin, "cost": cost}


def digest(paths: Iterable[str]) -> str:
    """Return a hash of files' contents and of where they lie."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(f"{path}\0{hashlib.sha256(Path(path).read_bytes()).hexdigest()}\0".encode())
    return total.hexdigest()


def _size(op: Op) -> int:
    return sum(1 for statement in op.body for _ in walk(statement.value)) + len(op.inputs)


__all__ = [
    "BODY",
    "DEVICE",
    "INTERFACE",
    "LOOPS",
    "MEMORY",
    "OF_TORCH",
    "ON_GPU",
    "SIGNATURE",
    "Chosen",
    "cover",
    "covering_set",
    "expressions",
    "features",
]
