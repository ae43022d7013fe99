"""Text that knows where it came from, and the rules for text that ends up in generated code."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache

from opc.diagnostics import NO_SPAN, Source, Span
from opc.macros import MACROS
from opc.names import CLASSES, KEYWORDS, LANGUAGE, RESERVED, spelled
from opc.records import dataclass


@lru_cache(maxsize=4)
def _line_starts(text: str) -> list[int]:
    return [0, *(m.end() for m in re.finditer("\n", text))]


def span_at(source: Source, start: int, end: int) -> Span:
    """Return the span of the characters `start` to `end` (exclusive) of a source's text."""
    text = source.text
    start = min(max(start, 0), len(text))
    end = min(max(end, start), len(text))

    starts = _line_starts(text)

    def place(index: int) -> tuple[int, int]:
        line = bisect_right(starts, index)
        return line, index - starts[line - 1] + 1

    # A span that ends with a line ends before its break.
    if end > start and text[end - 1] == "\n":
        end -= 1
    line, column = place(start)
    end_line, end_column = place(end)
    return Span(source, line, column, end_line, end_column)


@dataclass(frozen=True, slots=True)
class SourceText:
    """A string out of a source file, and for each of its characters the position in the file's text.

    The string of a block or quoted scalar differs from what stands in the file (indentation, escapes, folding); diagnostics about
    it must point into the file. `positions` has one entry a character, and `begin` is where the first one stands or would stand.
    A text that came from no file has no source.
    """

    value: str
    source: Source | None
    positions: tuple[int, ...]
    begin: int = 0

    @staticmethod
    def of(value: str, name: str) -> SourceText:
        """Return `value` as the whole text of a source called `name`."""
        return SourceText(value, Source(name, value), tuple(range(len(value))))

    def span(self, start: int, end: int) -> Span:
        """Return the place in the file of the characters `start` to `end` (exclusive) of this string."""
        if self.source is None:
            return NO_SPAN
        if not self.positions:
            return span_at(self.source, self.begin, self.begin)
        last = len(self.positions) - 1
        first = self.positions[min(max(start, 0), last)]
        if start > last:
            return span_at(self.source, first + 1, first + 1)
        return span_at(self.source, first, self.positions[min(max(end - 1, start), last)] + 1)

    def cut(self, start: int, end: int) -> SourceText:
        """Return the characters `start` to `end` (exclusive)."""
        begin = self.positions[start] if start < len(self.positions) else self.begin
        return SourceText(self.value[start:end], self.source, self.positions[start:end], begin)

    def replace(self, start: int, end: int, new: str) -> SourceText:
        """Return the text with `start` to `end` (exclusive, not empty) replaced; the new characters take the old ones' places."""
        old = self.positions[start:end]
        positions = tuple(old[min(i, len(old) - 1)] for i in range(len(new)))
        return SourceText(
            self.value[:start] + new + self.value[end:],
            self.source,
            self.positions[:start] + positions + self.positions[end:],
            self.begin,
        )


STRING = r"""'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*\""""
"""A regular expression of what is a text inside of a body, with its quotes."""

_ESCAPE_LENGTH = {"x": 4, "u": 6, "U": 10}


def align(value: str, source: Source, start: int, end: int, style: str) -> SourceText:
    """Return the scalar `value` as a text with positions, given where it stands in the file.

    Folding, indentation and line endings only change white space, so the other characters stand in the file in the same order;
    quoted styles add escapes. `style` is PyYAML's: empty for plain, else one of ' " | >; `start` is at the quote or block header.
    """
    text = source.text
    at = start
    if style in ("|", ">"):
        newline = text.find("\n", start, end)
        at = end if newline < 0 else newline + 1
    elif style in ("'", '"'):
        at = start + 1
    begin = at
    positions: list[int] = []
    for character in value:
        if character.isspace() and not (style == '"' and text[at : at + 1] == "\\"):
            positions.append(min(at, end))
            if text[at : at + 1] == character:
                at += 1
            continue
        while at < end and text[at].isspace():
            at += 1
        if style == '"':
            # An escaped line break joins lines and stands for nothing.
            while text[at : at + 1] == "\\" and text[at + 1 : at + 2] in ("\n", "\r"):
                at += 1
                while at < end and text[at].isspace():
                    at += 1
        positions.append(min(at, end))
        if style == '"' and text[at : at + 1] == "\\":
            at += _ESCAPE_LENGTH.get(text[at + 1 : at + 2], 2)
        elif style == "'" and character == "'":
            at += 2
        else:
            at += 1
    return SourceText(value, source, tuple(positions), begin)


RESERVED_PREFIXES = ("d_", "t_", "opc", "OPC_")
"""How no name of a spec may begin: gradients, tangents and the runtime's own names do."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_OP_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_DOMAIN = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
_MAX_NAME = 64


def name_problem(name: str, derived: bool = False) -> str | None:
    """Return why `name` can't name an operand, attribute, dimension, type or index in every target language, or None.

    In a `derived` body, a gradient, names may begin as those do that opc derives.
    """
    if len(name) > _MAX_NAME:
        return f"a name has at most {_MAX_NAME} characters"
    if not _NAME.fullmatch(name):
        return "a name is an ASCII letter followed by letters, digits and single underscores"
    own = spelled(name)
    if "__" in own:
        return "a name has no double underscore: C++ and Python keep those for themselves"
    if own in LANGUAGE:
        return f"'{own}' is a word of the language"
    if own in KEYWORDS and own == name:
        return f"'{own}' is a word of Python, which only what a spec declares can be called"
    for prefix in RESERVED_PREFIXES:
        if name.startswith(prefix) and not (derived and prefix in ("d_", "t_")):
            return f"names that begin with '{prefix}' are kept for what opc derives"
    return None


def op_name_problem(name: str) -> str | None:
    """Return why `name`, spelled as the targets spell it, can't name an op, or None. It is also that of a Python package."""
    if not _OP_NAME.fullmatch(spelled(name)):
        return "an op's name is snake_case: lower-case ASCII letters, digits and single underscores, such as leaky_relu"
    for suffix in ("_backward", "_jvp", "_infer"):
        if name.endswith(suffix):
            return f"names that end in '{suffix}' are kept for the ops opc derives"
    return name_problem(name)


# Domains of ONNX and namespaces of PyTorch that hold ops of their own.
_TAKEN_DOMAINS = (
    "ai.onnx",
    "com.microsoft",
    "aten",
    "prim",
    "prims",
    "quantized",
    "torch",
    "onnx",
    "c10d",
    "inductor",
    "profiler",
)


def domain_problem(name: str) -> str | None:
    """Return why `name` can't be a domain, or None."""
    if any(name == taken or name.startswith(f"{taken}.") for taken in _TAKEN_DOMAINS):
        return "it holds the ops of ONNX or PyTorch itself"
    if len(name) > _MAX_NAME or not _DOMAIN.fullmatch(name) or "__" in name:
        return "a domain is lower-case names joined by dots, such as opc.nn"
    for part in name.split("."):
        if part in RESERVED - MACROS or part in LANGUAGE:
            return f"'{part}' is a word of C++, Python or generated code, where domains are namespaces"
        if part.endswith("_"):
            return "no part of a domain ends with an underscore"
    return None


_TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*")
_QUALIFIED = re.compile(r"([A-Za-z][A-Za-z0-9_.]*::)?[A-Za-z][A-Za-z0-9_]*")


def onnx_name_problem(name: str) -> str | None:
    """Return why `name` can't be an op type in ONNX, or None. It also names the classes of generated Python."""
    if len(name) > _MAX_NAME or not _TYPE_NAME.fullmatch(name) or name.islower():
        return "an op type is ASCII letters and digits with a capital among them, such as LeakyRelu"
    if name in CLASSES:
        return "generated Python or ONNX Runtime uses the name for something else"
    return None


def backend_name_problem(name: str) -> str | None:
    """Return why `name` can't be what a backend calls an op, or None."""
    if len(name) > 2 * _MAX_NAME or not _QUALIFIED.fullmatch(name):
        return "it is a name, or a domain and a name as in rknn_cst::cstLeakyRelu"
    return None


_HEADER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*")
_LIBRARY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")

PATTERNS = {
    "op": _OP_NAME.pattern,
    "domain": _DOMAIN.pattern,
    "onnx_name": f"(?=.*[A-Z]){_TYPE_NAME.pattern}",
    "backend_name": _QUALIFIED.pattern,
    "header": _HEADER.pattern,
    "library": _LIBRARY.pattern,
}
"""Regular expressions of what some values of a spec look like as a whole, for its schema."""


def header_problem(name: str) -> str | None:
    """Return why `name` can't be what an #include names, or None."""
    if not _HEADER.fullmatch(name):
        return "a header is named relative to an include folder, such as Eigen/LU"
    return None


def library_problem(name: str) -> str | None:
    """Return why `name` can't be that of a library to link or a package that brings one, or None."""
    if not _LIBRARY.fullmatch(name):
        return "it is a name without path, option or version, such as openblas"
    return None
