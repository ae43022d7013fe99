"""Expands the stars in one text of a spec of several ranks or counts, token by token.

`*S` becomes the axes of a group, `*x` all operands of a pack, and `*(S*stride - 1)` the expression once for each: in it, the
group is the index along that axis (in a shape, the size), a pack the operand or dimension of that copy, and a list with an
element for each is that element. The new characters stand where those stood that they come from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field
from itertools import pairwise
from typing import TypeAlias

from opc.diagnostics import Diagnostics
from opc.names import JOINED, OF_GROUP, OF_PACK, REDUCTIONS
from opc.records import dataclass
from opc.spec.copies import Copies, Token, tokens
from opc.spec.text import SourceText

_NESTED = ("minimum", "maximum")

Named: TypeAlias = Callable[[str], Sequence[str]]
"""What a group stands for: the indices along its axes, or their sizes."""


@dataclass(frozen=True, slots=True)
class Expander:
    """Writes one text out."""

    text: SourceText
    copies: Copies
    named: Named | None
    found: Diagnostics
    of: str = ""
    """The operand whose type this is, where there is one of it."""
    outputs: Collection[str] = ()
    """The outputs that a body assigns."""
    tokens: list[Token] = field(init=False)
    partner: dict[int, int] = field(init=False)
    """The bracket that closes each one that opens."""
    opener: list[int] = field(init=False)
    """The bracket that each token stands in, -1 for none."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", tokens(self.text.value))
        partner: dict[int, int] = {}
        opener: list[int] = []
        open_now: list[int] = []
        for i, token in enumerate(self.tokens):
            if token.text in (")", "]", "}") and open_now:
                partner[open_now.pop()] = i
            opener.append(open_now[-1] if open_now else -1)
            if token.text in ("(", "[", "{"):
                open_now.append(i)
        object.__setattr__(self, "partner", partner)
        object.__setattr__(self, "opener", opener)

    def run(self, low: int, high: int, axis: int | None) -> Iterator[SourceText]:
        """Yield tokens `low` to `high` (exclusive) written out, with what stands between them; in an expression of one axis, for
        this one."""
        at, i = self.tokens[low].start, low
        while i < high:
            after, new = self._step(i, axis)
            if new is not None:
                yield self.text.cut(at, self.tokens[i].start)
                yield from new
                at = self.tokens[after - 1].end
            i = after
        yield self.text.cut(at, self.tokens[high - 1].end)

    def whole(self, axis: int | None) -> Iterator[SourceText]:
        """Yield the whole text written out."""
        if not self.tokens:
            yield self.text
            return
        yield self.text.cut(0, self.tokens[0].start)
        yield from self.run(0, len(self.tokens), axis)
        yield self.text.cut(self.tokens[-1].end, len(self.text.value))

    def statements(self) -> list[range]:
        """Return the tokens of each statement of a body; a comment on a line of its own is one too."""
        begins = [i for i, opener in enumerate(self.opener) if opener < 0 and (i == 0 or self._breaks(i))]
        return [range(low, high) for low, high in pairwise([*begins, len(self.tokens)])]

    def refuse_assigned_groups(self) -> None:
        """Record statements that assign a group as if it were a temporary."""
        for s in self.statements():
            if self.text_of(s.start) in self.copies.groups:
                self._refuse(s.start, f"'{self.text_of(s.start)}' is a group of axes", "take another name")

    def _breaks(self, i: int) -> bool:
        """Whether a token stands on another line than the one before it ends on."""
        return "\n" in self.text.value[self.tokens[i - 1].end : self.tokens[i].start]

    def body(self) -> Iterator[SourceText]:
        """Yield a body written out, each of its statements once or once for each copy."""
        at = 0
        for statement in self.statements():
            start, end = self.tokens[statement.start].start, self.tokens[statement.stop - 1].end
            yield self.text.cut(at, start)
            at = end
            if not self.copies.is_several(self.text_of(statement.start)):
                yield from self.run(statement.start, statement.stop, None)
                continue
            made = [list(self.run(statement.start, statement.stop, a)) for a in range(self.copies.number)]
            yield from self._separated(statement.start, made, "\n")
        yield self.text.cut(at, len(self.text.value))

    def _step(self, i: int, axis: int | None) -> tuple[int, list[SourceText] | None]:
        """Return the token behind those that are written next, and what is written for them; None for what they are."""
        name = self.text_of(i)
        if self.is_star(i) and self._is_of_others(i):
            return i + 1, None
        if self.is_star(i):
            return self._star(i, axis)
        if (
            name in ("size", "rank")
            and self.text_of(i + 1) == "("
            and self.text_of(i + 2) in {*self.copies.groups, *self.copies.ranks}
        ):
            call = self._of_any_group(i, axis)
            if call is not None:
                return call
        if name in (*OF_GROUP, *OF_PACK) and self.text_of(i + 1) == "(":
            call = (self._of_group if name in OF_GROUP else self._of_pack)(i, axis)
            if call is not None:
                return call
        if name == "unravel" and self.text_of(i + 1) == "(" and axis is not None and self.named is not None:
            call = self._unravelled(i, axis)
            if call is not None:
                return call
        folds = (name in JOINED or name in _NESTED) and self.text_of(i + 1) == "(" and self.is_star(i + 2)
        if folds and not self._is_of_others(i + 2):
            close = self.partner.get(i + 1, -1)
            inside = self._inside(i + 2)
            if inside is not None and inside[2] == close:
                return close + 1, self._folded(i, name, inside, axis)
        pads = name == "pad" and i + 1 in self.partner and self.is_star(i + 2) and self._inside(i + 2) is not None
        if pads and not self._is_of_others(i + 2):
            return self.partner[i + 1] + 1, self._padded(i, axis)
        if name in self.copies.lists and axis is not None and self.text_of(i + 1) != "[":
            return i + 1, [self._put(i, i + 1, f"{name}[{axis}]")]
        if name in self.copies.groups and self.named is not None:
            if axis is not None:
                return i + 1, [self._put(i, i + 1, self._named(i, name)[axis])]
            self._refuse(i, f"'{name}' is a group of axes", f"write *{name}, or *(...) for what each axis has of it")
        if self.copies.is_several(name):
            if axis is not None:
                return i + 1, [self._put(i, i + 1, f"{name}{axis}")]
            of_each = f"each {self.copies.of} has a '{name}' of its own"
            message = f"there are several '{name}'" if name in self.copies.packs else of_each
            self._refuse(i, message, self._hint_of_several(i))
        if axis is not None and name in self.copies.others and self._is_beside(i):
            self._refuse(i, f"there are as many of '{name}' as another list of numbers says", self._hint_of_other(name))
        return i + 1, None

    def _star(self, i: int, axis: int | None) -> tuple[int, list[SourceText] | None]:
        """Write out `*S`, a list `*stride`, or `*(expression)`."""
        name = self.text_of(i + 1)
        if axis is not None and (name == "(" or name in self.copies.lists or name in self.copies.packs):
            self._refuse_nested(i)
            return i + 1, None
        if name in self.copies.lists:
            return i + 2, self._listed(i, [f"{name}[{a}]" for a in range(self.copies.number)])
        if name in self.copies.packs:
            if self.text_of(i + 2) == "[":
                self._refuse(i, f"'*{name}' are whole operands", f"write *({name}[...])")
            return i + 2, self._listed(i, self.copies.each(name))
        if name in self.copies.groups and self.named is not None:
            return i + 2, self._listed(i, self._named(i, name))
        inside = self._inside(i) if name == "(" else None
        if inside is None:
            return i + 1, None
        if not any(self._differs(k) for k in range(inside[0], inside[1])):
            of, hint = self.copies.of, "a group" if self.copies.groups else "one of several"
            self._refuse(i, f"nothing in this differs from {of} to {of}", f"name {hint} in it, or a list of one")
        return inside[2], self._separated(i, self._copies(inside), ", ")

    def _listed(self, i: int, names: Sequence[str]) -> list[SourceText]:
        """Return names with commas between them, each in the place of the star and what stands behind it."""
        return self._separated(i, [[self._put(i, i + 2, name)] for name in names], ", ")

    def _is_of_others(self, star: int) -> bool:
        """Whether a star spreads what another list of numbers tells: it is written out for that one."""
        if self.text_of(star + 1) != "(":
            return False
        inside = self._inside(star)
        within = [k for k in range(inside[0], inside[1]) if self._star_of(k) == star] if inside is not None else []
        return not any(self._differs(k) for k in within) and any(self.text_of(k) in self.copies.others for k in within)

    def _star_of(self, i: int) -> int | None:
        """Return the star that spreads a token: its own, or that of the nearest brackets around it; None without one."""
        if self.is_star(i - 1):
            return i - 1
        inside = self.opener[i]
        while inside >= 0:
            if self.is_star(inside - 1):
                return inside - 1
            inside = self.opener[inside]
        return None

    def _is_beside(self, i: int) -> bool:
        """Whether what another list of numbers tells is named where one axis or operand is meant."""
        star, counted = (
            self._star_of(i),
            self.text_of(i - 1) == "(" and self.text_of(i - 2) in ("rank", "count", "size", "unravel"),
        )
        return not counted and (star is None or not (self._is_of_others(star) or star == i - 1))

    def _hint_of_other(self, name: str) -> str:
        own = self.copies.groups[:1]
        if own and name in self.copies.ranks:
            return f"write size({name}, axis({own[0]})) for the size of its axis of the same number"
        return "give what is made of it a statement ahead, t = ..., and write t here"

    def _of_any_group(self, i: int, axis: int | None) -> tuple[int, list[SourceText] | None] | None:
        """Write out `size(S, k)`, the size of axis k of a group, and `rank(S)` of any; None for another call.

        Where another list of numbers tells k, that is left as it is.
        """
        group, close = self.text_of(i + 2), self.partner.get(i + 1, -1)
        rank = self.copies.ranks.get(group, self.copies.number)
        if self.text_of(i) == "rank":
            return (close + 1, [self._put(i, close + 1, str(rank))]) if close == i + 3 else None
        if self.text_of(i + 3) != "," or close < i + 5:
            return None
        place = "".join(part.value for part in self.run(i + 4, close, axis)).strip()
        if not place.isdecimal():
            apart = any(self.text_of(k) in self.copies.others for k in range(i + 4, close))
            return (close + 1, None) if apart else None
        return close + 1, [self._put(i, close + 1, f"{group}{place}" if int(place) < rank else "0")]

    def _named(self, i: int, group: str) -> Sequence[str]:
        """Return what a group stands for on each axis, with the extents where a reduction or statement runs over them."""
        assert self.named is not None
        opener = self.opener[i]
        if opener <= 0 or self.text_of(opener) != "[" or not (self._is_reduction(opener) or self._is_target(opener)):
            return self.named(group)
        return [f"{index}:{size}" for index, size in zip(self.copies.indices(group), self.copies.sizes(group))]

    def _is_reduction(self, opener: int) -> bool:
        close = self.partner.get(opener, -2)
        return self.text_of(opener - 1) in (*REDUCTIONS, "argsort") and self.text_of(close + 1) == "("

    def _is_target(self, opener: int) -> bool:
        """Whether a bracket has the indices that a statement of a body assigns."""
        return (
            (opener == 1 or self._breaks(opener - 1))
            and self.opener[opener] < 0
            and self.text_of(self.partner.get(opener, -2) + 1) == "="
        )

    def _of_group(self, i: int, axis: int | None) -> tuple[int, list[SourceText]] | None:
        """Write out `size(*S)`, `position(*S)`, `rank(S)`, and of one axis `size(S)` and `axis(S)`; None for another call."""
        call, close = self.text_of(i), self.partner.get(i + 1, -1)
        starred = self.text_of(i + 2) == "*"
        group = self.text_of(i + 3 if starred else i + 2)
        if group not in self.copies.groups or close != (i + 4 if starred else i + 3):
            return None
        if self.named is None and call not in ("rank", "axis"):  # elsewhere an operand has no such sizes
            return None
        sizes, indices = self.copies.sizes(group), self.copies.indices(group)
        if call == "rank" and not starred:
            return close + 1, [self._put(i, close + 1, str(self.copies.number))]
        if axis is not None and not starred and call in ("size", "axis"):
            return close + 1, [self._put(i, close + 1, sizes[axis] if call == "size" else str(axis))]
        if call == "size" and starred:
            return close + 1, [self._put(i, close + 1, f"({' * '.join(sizes)})")]
        if call == "position" and starred:
            position = indices[0]
            for index, size in zip(indices[1:], sizes[1:]):
                position = f"({position})*{size} + {index}"
            return close + 1, [self._put(i, close + 1, f"({position})")]
        return None

    def _of_pack(self, i: int, axis: int | None) -> tuple[int, list[SourceText]] | None:
        """Write out `count(x)`, and in one copy `number(x)` and `before(N)`, the sum of N in the copies ahead; None for another
        call."""
        call, name, close = self.text_of(i), self.text_of(i + 2), self.partner.get(i + 1, -1)
        listed = name in self.copies.lists
        if close != i + 3 or not (name in self.copies.packs or listed):
            return None
        if call == "count":
            return close + 1, [self._put(i, close + 1, str(self.copies.number))]
        if axis is None:
            self._refuse(i, f"{call}({name}) is another one for each", "write it inside *(...), or in what is made of each")
            return close + 1, []
        if call == "number":
            return close + 1, [self._put(i, close + 1, str(axis))]
        ahead = [f"{name}[{a}]" if listed else f"{name}{a}" for a in range(axis)]
        return close + 1, [self._put(i, close + 1, f"({' + '.join(ahead)})" if ahead else "0")]

    def _unravelled(self, i: int, axis: int) -> tuple[int, list[SourceText]] | None:
        """Write out `unravel(S, p)` for one axis: the index along it of the point that `position(*S)` numbers p."""
        group, close = self.text_of(i + 2), self.partner.get(i + 1)
        if group not in self.copies.groups or self.text_of(i + 3) != "," or close is None or close < i + 5:
            return None
        sizes = self.copies.sizes(group)
        behind = f" // ({' * '.join(sizes[axis + 1 :])})" if sizes[axis + 1 :] else ""
        inner = list(self.run(i + 4, close, axis))
        return close + 1, [self._put(i, i + 1, "(("), *inner, self._put(i + 2, i + 3, f"){behind} % {sizes[axis]})")]

    def _folded(self, i: int, name: str, inside: tuple[int, int, int], axis: int | None) -> list[SourceText] | None:
        """Write out `all(*(...))` and its like: one expression of those of all axes."""
        if axis is not None:
            self._refuse_nested(i + 2)
            return None
        copies = [[self._put(i, i + 1, "("), *copy, self._put(i, i + 1, ")")] for copy in self._copies(inside)]
        if name in JOINED:
            return [self._put(i, i + 1, "("), *self._separated(i, copies, JOINED[name]), self._put(i, i + 1, ")")]
        made = copies[0]
        for copy in copies[1:]:
            made = [self._put(i, i + 1, f"{name}("), *made, self._put(i, i + 1, ", "), *copy, self._put(i, i + 1, ")")]
        return made

    def _padded(self, i: int, axis: int | None) -> list[SourceText] | None:
        """Write out `pad(*(x[...]), v)`: the first of the reads that is inside, or v; without v one of them is."""
        if axis is not None:
            self._refuse_nested(i + 2)
            return None
        inside, close = self._inside(i + 2), self.partner[i + 1]
        assert inside is not None
        *made, last = self._copies(inside)
        if self.text_of(inside[2]) == ",":
            made, last = [*made, last], list(self.run(inside[2] + 1, close, None))
        for copy in reversed(made):
            last = [self._put(i, i + 1, "pad("), *copy, self._put(i, i + 1, ", "), *last, self._put(i, i + 1, ")")]
        return last

    def _copies(self, inside: tuple[int, int, int]) -> list[list[SourceText]]:
        return [list(self.run(inside[0], inside[1], a)) for a in range(self.copies.number)]

    def _separated(self, i: int, copies: list[list[SourceText]], between: str) -> list[SourceText]:
        sign = self._put(i, i + 1, between)
        return [part for k, copy in enumerate(copies) for part in ([sign] if k else []) + copy]

    def _inside(self, star: int) -> tuple[int, int, int] | None:
        """Return the tokens of what a star stands for in each axis, from and to, and the one behind it all."""
        if self.text_of(star + 1) == "(":
            close = self.partner.get(star + 1)
            return None if close is None or close == star + 2 else (star + 2, close, close + 1)
        if self.text_of(star + 1) in (*self.copies.groups, *self.copies.lists, *self.copies.packs):
            return star + 1, star + 2, star + 2
        return None

    def is_bare(self, i: int) -> bool:
        """Whether a token names a group, or a whole list, beside all stars and what stands behind them."""
        counted = self.text_of(i - 1) == "(" and self.text_of(i - 2) in ("rank", "count")
        if not self._differs(i) or self.is_star(i - 1) or counted:
            return False
        inside = self.opener[i]
        while inside >= 0:
            if self.is_star(inside - 1):
                return False
            inside = self.opener[inside]
        return True

    def _differs(self, i: int) -> bool:
        """Whether a token is something else in each copy: a group, what there are several of, or a list, no element of it."""
        name = self.text_of(i)
        if name in self.copies.lists:
            return self.text_of(i + 1) not in ("[", "(")
        return name in self.copies.groups or self.copies.is_several(name)

    def is_star(self, i: int) -> bool:
        """Whether a token is a star that spreads what stands behind it."""
        return self.text_of(i) == "*" and (i == 0 or self.text_of(i - 1) in ("(", "[", ",", "=")) and i + 1 < len(self.tokens)

    def text_of(self, i: int) -> str:
        """Return a token's text, nothing where there is no such token."""
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def _put(self, low: int, high: int, new: str) -> SourceText:
        """Return a text that stands where tokens `low` to `high` (exclusive) do, and each of its words too."""
        old = self.text.positions[self.tokens[low].start : self.tokens[high - 1].end]
        begins = {m.start() for m in re.finditer(r"\w+|\W", new)}
        return SourceText(new, self.text.source, tuple(old[0] if i in begins else old[-1] for i in range(len(new))), old[0])

    def _refuse_nested(self, i: int) -> None:
        self._refuse(i, f"this is written once for each {self.copies.of} already", "leave out the star")

    def _refuse(self, i: int, message: str, hint: str | None) -> None:
        self.found.error(message, self.text.span(self.tokens[i].start, self.tokens[i].end), hint)

    def _hint_of_several(self, i: int) -> str:
        """Return what to write where one of several is named: an output may be meant that there is one of for each."""
        at = next((s.start for s in self.statements() if i in s), 0) if self.outputs else 0
        one = self.of or self.text_of(at)
        written = "write *(...), and name it there"
        is_one = (self.of or one in self.outputs) and self.copies.packs and not self.copies.is_several(one)
        return f"{self.copies.for_each(one)}; else {written}" if is_one else written
