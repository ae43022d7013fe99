"""What the brute-force evaluator reads of a spec: its text, and what a call's arguments say of it.

It shares nothing with opc: the text is read by PyYAML, its body by Python's `ast`.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import yaml

from tests.fuzz.scalars import BITS, CLASSES, FLOATS
from tests.fuzz.translate import Dim, Frame, Translator, group_name

Tensor = dict[tuple[int, ...], Any]
"""The values of an operand by position."""


class RefusedError(Exception):
    """The call breaks a rule of the spec: its shapes, its `require` or a `check`."""


class Spec:
    """A spec as its text says it."""

    def __init__(self, text: str) -> None:
        data: dict[str, Any] = yaml.safe_load(text)
        self.types: dict[str, list[str]] = {}
        for name, entry in (data.get("types") or {}).items():
            self.types[name] = entry if isinstance(entry, list) else [entry]
        self.inputs: dict[str, tuple[str, tuple[Dim, ...]]] = {}
        self.optional: set[str] = set()
        for key, entry in data["inputs"].items():
            name = str(key).removesuffix("?")
            self.inputs[name] = operand(entry)
            if name != key:
                self.optional.add(name)
        self.outputs = {str(n): operand(entry) for n, entry in data["outputs"].items()}
        self.attributes: dict[str, dict[str, Any]] = {
            n: {"type": a} if isinstance(a, str) else a for n, a in (data.get("attributes") or {}).items()
        }
        self.shape = {n: parse(str(e)) for n, e in (data.get("shape") or {}).items()}
        self.require = [parse(str(e)) for e in data.get("require") or []]
        self.broadcast = bool(data.get("broadcast", False))
        self.out_of_range = str(data.get("out_of_range", "error"))
        self.body = ast.parse(re.sub(r"(\w)\[\s*\]", r"\1[()]", data["kernel"])).body

    def dims(self) -> set[str]:
        """Return the names of the sizes: those of the inputs and those derived."""
        return {d.id for _, dims in self.inputs.values() for d in dims if isinstance(d, ast.Name)} | self.shape.keys()

    def kinds(self) -> set[str]:
        """Return the element types of the operands as they are written."""
        return {kind for kind, _ in (*self.inputs.values(), *self.outputs.values())}

    def statements(self) -> list[ast.Assign]:
        """Return the statements of the body, without those of sizes that data tells: a call gives these."""
        sizes = {n for n, a in self.attributes.items() if a["type"] == "size"}
        statements = (s for s in self.body if isinstance(s, ast.Assign))
        return [s for s in statements if not (isinstance(t := s.targets[0], ast.Name) and t.id in sizes)]


def parse(text: str) -> ast.expr:
    return ast.parse(f"({text.strip()}\n)", mode="eval").body


def operand(entry: Any) -> tuple[str, tuple[Dim, ...]]:
    """Return the element type of `T[M, N]` as it is written, and its dimensions."""
    tree = parse(str(entry["type"] if isinstance(entry, dict) else entry).replace("[]", "[()]"))
    assert isinstance(tree, ast.Subscript)
    dims = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
    return ast.unparse(tree.value), tuple(dims)


UNREAD = re.compile(r"^(ranks|counts):|type: size\b", re.MULTILINE)
"""What is not read: specs of several ranks and counts, and sizes that data tells."""


def is_read(text: str) -> bool:
    """Whether brute force reads such specs; names that Python's grammar has for itself are no names of its own."""
    data = yaml.safe_load(text)
    names = {str(n).removesuffix("?") for part in ("inputs", "outputs", "attributes", "shape") for n in data.get(part) or {}}
    return not UNREAD.search(text) and not any(map(keyword.iskeyword, names))


@lru_cache(maxsize=64)
def read_spec(text: str) -> Spec:
    return Spec(text)


def assigned(spec: Spec) -> dict[str, ast.Assign]:
    """Return the statement that assigns each name."""
    found = {}
    for statement in spec.statements():
        target = statement.targets[0]
        own = target.value if isinstance(target, ast.Subscript) else target
        assert isinstance(own, ast.Name)
        found[own.id] = statement
    return found


def _behind(names: Iterable[str], statements: Mapping[str, ast.Assign]) -> set[str]:
    """Return the names that are assigned and that the values of some, and theirs, read."""
    found: set[str] = set()
    waiting = [n for n in names if n in statements]
    while waiting:
        read = {n.id for n in ast.walk(statements[waiting.pop()].value) if isinstance(n, ast.Name)}
        waiting += sorted((read & statements.keys()) - found)
        found |= read & statements.keys()
    return found


def recurrent(spec: Spec) -> frozenset[str]:
    """Return the names whose values are made from themselves."""
    statements = assigned(spec)
    return frozenset(n for n in statements if n in _behind([n], statements))


def needed(spec: Spec) -> list[ast.Assign]:
    """Return the statements that outputs are computed from."""
    statements = assigned(spec)
    wanted = set(spec.outputs) | _behind(spec.outputs, statements)
    return [s for n, s in statements.items() if n in wanted]


class Listing:
    """Where an attribute of type `axes` puts the axes of a call's operands; nothing of a spec without one."""

    def __init__(self, spec: Spec, arrays: Mapping[str, Any], attributes: Mapping[str, Any]) -> None:
        self.dims = {n: [group_name(d) for d in dims] for n, (_, dims) in (*spec.inputs.items(), *spec.outputs.items())}
        name = next((n for n, a in spec.attributes.items() if a["type"] == "axes"), None)
        self.groups: set[str] = set()
        self.thin: list[str] = []
        self.listed: list[int] = []
        self.slots: set[str] = set()
        placing = {str(a["dim"]): n for n, a in spec.attributes.items() if a["type"] == "axis"}
        if len(placing) > 1:
            self._place(placing, spec, arrays, attributes)
        self.permuted = ""
        for n, a in spec.attributes.items():
            if a["type"] == "permutation":
                self._permute(n, str(a["of"]), arrays, attributes.get(n, a.get("default")))
        if name is None:
            return
        own = str(spec.attributes[name]["group"])
        with_own = [n for n in spec.inputs if own in self.dims[n] and len(self.dims[n]) == 2]
        self.groups = set(self.dims[with_own[0]])
        rank = next(arrays[n].ndim for n in with_own if n in arrays and set(self.dims[n]) == self.groups)
        given = [int(a) for a in attributes.get(name, spec.attributes[name].get("default"))]
        if any(not -rank <= a < rank for a in given) or len({a % rank for a in given}) < len(given):
            raise RefusedError(f"{name} = {given} of {rank} axes")
        self.own, self.rank = own, rank
        self.listed = sorted(a % rank for a in given) or list(range(rank))
        for n, a in spec.attributes.items():
            if a.get("keeps") and attributes.get(n, a.get("default")):
                self.thin = [g for g in self.groups if g != own]

    def _place(self, placing: Mapping[str, str], spec: Spec, arrays: Mapping[str, Any], attributes: Mapping[str, Any]) -> None:
        """Find the axes that attributes place among those of one group, in the order of the operands' dimensions."""
        self.names = {n: [ast.unparse(d) for d in dims] for n, (_, dims) in (*spec.inputs.items(), *spec.outputs.items())}
        self.slots = set(placing)
        home = next(n for n in spec.inputs if self._is_whole(n) and self.slots <= set(self.names[n]))
        self.rank = next(arrays[n].ndim for n in spec.inputs if n in arrays and self._is_whole(n))
        for dim in self.names[home]:
            if dim in placing:
                value = int(attributes.get(placing[dim], spec.attributes[placing[dim]].get("default")))
                if not -self.rank <= value < self.rank or value % self.rank in self.listed:
                    raise RefusedError(f"{placing[dim]} = {value} of {self.rank} axes")
                self.listed.append(value % self.rank)

    def _permute(self, name: str, of: str, arrays: Mapping[str, Any], given: Any) -> None:
        """Find the order in which a body sees the axes of the operand that a permutation is of."""
        self.permuted, self.rank = of, arrays[of].ndim
        given = [int(a) for a in given]
        self.listed = [a % self.rank for a in given] if given and self.rank else list(range(self.rank))[::-1]
        if any(not -self.rank <= a < self.rank for a in given) or sorted(self.listed) != list(range(self.rank)):
            raise RefusedError(f"{name} = {given} of {self.rank} axes")

    def _is_whole(self, name: str) -> bool:
        """Whether an operand has a group and at each place beside it one of the dimensions that attributes place."""
        own = [d for d, group in zip(self.names[name], self.dims[name], strict=True) if not group]
        return len(own) == len(self.slots) == len(self.dims[name]) - 1 and set(own) == self.slots

    def order(self, name: str) -> list[int] | None:
        """Return for each axis that a body sees of an operand which one of the caller's it is; None where these are the same."""
        if self.permuted:
            return self.listed if name == self.permuted else None
        if self.slots and self._is_whole(name):
            others = [a for a in range(self.rank) if a not in self.listed]
            return others + self.listed if self.dims[name][0] else self.listed + others
        if not self.groups or set(self.dims[name]) != self.groups:
            return None
        others = [a for a in range(self.rank) if a not in self.listed]
        return self.listed + others if self.dims[name][0] == self.own else others + self.listed

    def declared(self, name: str, array: Any) -> Any:
        """Return an input as a body sees it."""
        order = self.order(name)
        if order is not None and array.ndim != self.rank:
            raise RefusedError(f"{name} has {array.ndim} axes, not {self.rank}")
        if order is not None:
            return array.transpose(order)
        if self.dims[name] != self.thin or not self.thin:
            return array
        if array.ndim != self.rank or any(array.shape[a] != 1 for a in self.listed):
            raise RefusedError(f"{name} has shape {array.shape}")
        return array.squeeze(tuple(self.listed))

    def seen(self, name: str, shape: tuple[int, ...], found: Tensor) -> tuple[tuple[int, ...], Tensor]:
        """Return an output's shape and values as a caller sees them."""
        order = self.order(name)
        if order is not None:

            def back(key: tuple[int, ...]) -> tuple[int, ...]:
                return tuple(key[order.index(a)] for a in range(len(order)))

            return back(shape), {back(key): value for key, value in found.items()}
        if self.dims[name] != self.thin or not self.thin:
            return shape, found

        def filled(key: tuple[int, ...], filler: int) -> tuple[int, ...]:
            rest = iter(key)
            return tuple(filler if a in self.listed else next(rest) for a in range(self.rank))

        return filled(shape, 1), {filled(key, 0): value for key, value in found.items()}


class Call:
    """One call of a spec: the sizes, groups and types its arguments determine."""

    def __init__(
        self, spec: Spec, inputs: Mapping[str, Any], attributes: Mapping[str, Any], listing: Listing, types: Mapping[str, str]
    ) -> None:
        self.spec, self.listing = spec, listing
        self.inputs = {n: np.asarray(a) for n, a in inputs.items() if a is not None}
        self.attributes = {n: attributes.get(n, a.get("default")) for n, a in spec.attributes.items()}
        self.types: dict[str, str] = {}
        for n, a in spec.attributes.items():
            if a["type"] == "dtype" and a.get("binds"):
                self.types[a["binds"]] = str(self.attributes[n])
        for n, array in self.inputs.items():
            if spec.inputs[n][0] in spec.types:
                self.types[spec.inputs[n][0]] = str(array.dtype)
        self.types.update(types)
        # The integers among what a variable may stand for, by what it does.
        self.listed: dict[str, set[str]] = {}
        for n, dtype in self.types.items():
            named = {d for entry in spec.types.get(n, ()) for d in CLASSES.get(entry, (entry,))}
            self.listed.setdefault(dtype, set()).update(named & BITS.keys())
        self.dims: dict[str, int] = {}
        self.groups: dict[str, tuple[int, ...]] = {}
        self.own: dict[str, tuple[int, ...]] = {}
        self._placed = {str(a["dim"]): n for n, a in spec.attributes.items() if a["type"] == "axis" and not listing.slots}
        # Those with the dimension that an axis attribute places tell of the groups; so does an operand with one group.
        for n in sorted(self.inputs, key=self._unclear):
            self._bind(n)
        if spec.broadcast:
            self.groups["..."] = np.broadcast_shapes(*self.own.values())
        plain = Translator(self, Frame({}, {}))
        for name, rule in spec.shape.items():
            size = plain.number(rule)
            if size < 0 or self.dims.setdefault(name, size) != size:
                raise RefusedError(f"{name} is {self.dims[name]}, not {size}")
        checks = [parse(str(a["check"])) for a in spec.attributes.values() if "check" in a]
        for condition in spec.require + checks:
            lists = [
                n for n in ast.walk(condition) if isinstance(n, ast.Name) and isinstance(self.attributes.get(n.id), list | tuple)
            ]
            if not lists and not plain.number(condition):
                raise RefusedError(ast.unparse(condition))

    def _unclear(self, name: str) -> bool:
        """Whether an input alone does not tell how many axes each of its groups has."""
        dims = self.spec.inputs[name][1]
        placed = any(ast.unparse(d) in self._placed for d in dims) or self.listing.order(name) is not None
        placed = placed or self._split(dims) is not None
        return sum(bool(group_name(d)) for d in dims) > 1 and not placed

    def _split(self, dims: tuple[Dim, ...]) -> tuple[str, int] | None:
        """Return the attribute that places a new axis between two groups of an input, and how many entries stand before it."""
        own = [ast.unparse(d) for d in dims]
        for dim, attribute in self._placed.items():
            for _, whole in self.spec.outputs.values():
                texts = [ast.unparse(d) for d in whole]
                if dim in texts and [t for t in texts if t != dim] == own:
                    return attribute, texts.index(dim)
        return None

    def _bind(self, name: str) -> None:
        """Take the sizes of an input's axes for its dimensions and groups."""
        dims, shape = self.spec.inputs[name][1], list(self.inputs[name].shape)
        names = [g for d in dims if (g := group_name(d))]
        lengths = [len(self.groups[g]) if g in self.groups else -1 for g in names]
        placed = [d for d in dims if ast.unparse(d) in self._placed]
        if self.listing.order(name) is not None and not self.listing.slots and not self.listing.permuted:
            count = len(self.listing.listed)
            lengths = [count if g == self.listing.own else len(shape) - count for g in names]
        elif -1 in lengths and len(names) == 2 and placed:
            # An axis attribute says where between the two groups its dimension stands.
            before = self.attributes[self._placed[ast.unparse(placed[0])]] % len(shape)
            before -= sum(not group_name(d) for d in dims[: dims.index(placed[0])])
            lengths = [before, len(shape) - (len(dims) - 2) - before]
        elif -1 in lengths and len(names) == 2 and (split := self._split(dims)) is not None:
            before = self.attributes[split[0]] % (len(shape) + 1)
            before -= sum(not group_name(d) for d in dims[: split[1]])
            lengths = [before, len(shape) - (len(dims) - 2) - before]
        elif lengths.count(-1) == 1 and not self.spec.broadcast:
            rest = len(shape) - (len(dims) - len(names)) - sum(n for n in lengths if n >= 0)
            lengths = [rest if n < 0 else n for n in lengths]
        elif self.spec.broadcast or -1 in lengths:
            lengths = [len(shape) - (len(dims) - 1)]
        for d in dims:
            group = group_name(d)
            if group:
                length = lengths.pop(0)
                found, shape = tuple(shape[:length]), shape[length:]
                self.own[name] = found
                if not self.spec.broadcast and self.groups.setdefault(group, found) != found:
                    raise RefusedError(f"{name} has {found} along {group}")
            else:
                size, shape = shape[0], shape[1:]
                known = d.value if isinstance(d, ast.Constant) else self.dims.setdefault(ast.unparse(d), size)
                if known != size:
                    raise RefusedError(f"{name} has {size} along {ast.unparse(d)}")

    def dtype(self, kind: str) -> str:
        """Return the dtype that a declared type stands for in this call."""
        if kind.startswith("acc("):
            of = self.dtype(kind[4:-1])
            return "float64" if of == "float64" else "float32" if of in FLOATS else "int64"
        return self.types.get(kind, kind)
