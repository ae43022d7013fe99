"""Good specs with mistakes put in: in their text, in their YAML, in the tokens of their bodies. Every one by a seed and a number.

What draws is a `random.Random`, or one of hypothesis' that shrinks what it finds (tests/diagnostics/test_fuzz.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|\s+|.", re.DOTALL)
TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9.]+(?:e-?[0-9]+)?|\*\*|//|[=<>!]=|\.\.\.|\s+|.", re.DOTALL)

# What mistakes are made of: the language's own pieces, YAML's, and what is neither.
_PIECES = """ \n|\n  |: |- |&a|*a|!!str|...|*A|x|y|N|T|acc(T)|sum[k]|max|pad(|cast(|present(x)| if | else |==|//|**|0|1e-5|.inf
|nan|true|99999999999999999999|0x|no|null|d_x|import os|lambda: 0|kernel:|inputs:|x[|k[9]|{{ }}|${x}|__import__|/*"""
PIECES = [*_PIECES.split("|"), *"|[](){},:'\"#*>-?%~\t\x00\ufeff\u2028\\é", '"""', " " * 40]

# Tokens of bodies that other specs may not have.
_LISTED = """+ - * / // % ** == != < > <= >= = ( ) [ ] , . ... : if else and or not in True False pi 0 1 2 -1 1e300 1e-300 nan inf
9223372036854775807 x y d_x T N *A *B sum mean max min prod any all argmax cumsum pad where cast exp log sqrt rsqrt tanh abs
sign floor round isnan stop_gradient present flip clamp logsumexp first last float32 int8 bool bfloat16 complex64"""
_TOKENS = _LISTED.split()

_ROUNDS = (1, 1, 1, 2, 3)
"""How many changes: mostly one, since of many the first hides the others."""

Values = list[tuple[str | int, ...]]
_ODD: list[Any] = [
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**40, 1.5, float("inf"), float("nan"), "", " ", "x", "T[...]", "\n"),
    *([], {}, [[]], [None], {"a": None}, {"": ""}, "floating", "int[2]", "é", "\u202e", "a" * 300, ["a", "a"], "x = ", "1" * 400),
    *({"type": "int"}, {"type": "float", "default": "x"}, "T[N, N]", "T[*A, *A]", "T[2*N]", "T[-1]", "T[0]", "acc(T)", "U[N]"),
]


@cache
def seeds() -> tuple[str, ...]:
    """Return the specs of the project: those of `specs`, native ones too, and those that documentation shows."""
    files = [path.read_text() for folder in ("specs", "specs/native") for path in sorted((ROOT / folder).glob("*.yaml"))]
    blocks = [
        text
        for page in sorted((ROOT / "docs").glob("*.md"))
        for text in re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    ]
    return (*files, *(text for text in blocks if re.search(r"^op: (?!wrong)", text, re.MULTILINE)))


@cache
def _vocabulary() -> tuple[str, ...]:
    """Return the tokens of all bodies, and some that none has."""
    found = {token for text in seeds() for body in _bodies(text) for token in TOKEN.findall(text[slice(*body)]) if token.strip()}
    return tuple(sorted(found | {*_TOKENS}))


def mutated(random: Random, texts: tuple[str, ...], rounds: tuple[int, ...] = (1, 2, 3, 4)) -> str:
    """Return one of the texts with a few pieces cut out, put in, copied or replaced."""
    text = random.choice(texts)
    for _ in range(random.choice(rounds)):
        start = random.randint(0, len(text))
        end = min(len(text), start + random.randint(0, 12))
        match random.randint(0, 3):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:start] + random.choice(PIECES) + text[start:]
            case 2:
                text = text[:start] + random.choice(PIECES) + text[end:]
            case _:
                at = random.randint(0, len(text))
                text = text[:at] + text[start:end] + text[at:]
    return text


def reworded(random: Random, texts: tuple[str, ...]) -> str:
    """Return one of the texts with a few of its words and signs replaced by others, often a spec of another op."""
    words = WORD.findall(random.choice(texts))
    places = [i for i, word in enumerate(words) if not word.isspace()]
    for _ in range(random.randint(1, 3)):
        at = random.choice(places)
        alike = [words[i] for i in places if words[i].isidentifier() == words[at].isidentifier()]
        words[at] = random.choice([*alike, "0", "1", "-1", "N", "//", "%", "..."])
    return "".join(words)


def damaged(random: Random) -> bytes:
    """Return a spec's bytes with some of them changed, cut off or repeated, which may be no UTF-8."""
    data = bytearray(random.choice(seeds()).encode())
    for _ in range(random.choice(_ROUNDS)):
        at = random.randrange(len(data))
        match random.randint(0, 4):
            case 0:
                data[at] ^= 1 << random.randrange(8)
            case 1:
                data[at] = random.randrange(256)
            case 2:
                data[at:at] = bytes(random.randrange(256) for _ in range(random.randint(1, 4)))
            case 3:
                del data[at : at + random.randint(1, 60)]
            case _:
                data[at:at] = data[max(0, at - random.randint(1, 300)) : at] * random.choice((1, 1, 2, 40))
        data = data or bytearray(b"\n")
    return bytes(data)


def restructured(random: Random) -> bytes:
    """Return a spec whose YAML has values of other kinds, missing, moved, copied or renamed keys, in one of YAML's styles."""
    data = yaml.safe_load(random.choice(seeds()))
    for _ in range(random.choice(_ROUNDS)):
        places = _places(data)
        parent, key = _at(data, random.choice(places))
        match random.randint(0, 6):
            case 0:
                del parent[key]
            case 1:
                parent[key] = random.choice(_ODD)
            case 2:
                parent[key] = yaml.safe_load(yaml.safe_dump(_value(data, random.choice(places))))
            case 3:
                _add(parent, random.choice([*_words(), "a b", "x?", "", "é", "1"]), random.choice(_ODD))
            case 4 if isinstance(parent, dict):
                parent[random.choice(_words())] = parent.pop(key)
            case 5:
                parent[key] = [parent[key]] if random.random() < 0.5 else {str(key): parent[key]}
            case _:
                other, theirs = _at(data, random.choice(places))
                parent[key], other[theirs] = other[theirs], parent[key]
        if not isinstance(data, dict) or not data:
            break
    style, flow = random.choice((None, None, "'", '"', "|", ">")), random.choice((False, False, None, True))
    try:
        text = yaml.safe_dump(
            data,
            default_style=style,
            default_flow_style=flow,
            sort_keys=random.random() < 0.5,
            width=random.choice((20, 80, 1000)),
        )
    except (yaml.YAMLError, RecursionError):  # a value that was put into itself
        text = repr(random.choice(_ODD))
    return text.encode("utf-8", "surrogatepass")


def retokened(random: Random) -> bytes:
    """Return a spec with tokens of its bodies and declarations left out, put in, swapped or taken from other specs."""
    text = random.choice(seeds())
    for _ in range(random.choice(_ROUNDS)):
        start, end = random.choice(_bodies(text) or [(0, len(text))])
        tokens = TOKEN.findall(text[start:end])
        real = [i for i, token in enumerate(tokens) if token.strip()] or [0]
        if not tokens:
            break
        at, other = random.choice(real), random.choice(real)
        match random.randint(0, 6):
            case 0:
                tokens[at] = ""
            case 1:
                tokens[at] = random.choice(_vocabulary())
            case 2:
                tokens.insert(at, random.choice(_vocabulary()) + random.choice(("", " ")))
            case 3:
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 4:
                tokens[at] = "".join(tokens[min(at, other) : min(at, other) + random.randint(1, 12)])
            case 5:
                tokens[at] = random.choice(
                    ("({0})", "-{0}", "{0}[{0}]", "{0}({0})", "sum[k]({0})", "{0} * {0}", "{0} if {0} > 0 else 1")
                ).format(tokens[at])
            case _:
                lent = random.choice(seeds())
                pieces = TOKEN.findall(lent[slice(*random.choice(_bodies(lent) or [(0, len(lent))]))])
                begin = random.randrange(len(pieces) or 1)
                tokens[at] = "".join(pieces[begin : begin + random.randint(1, 15)]).replace("\n", " ")
        text = text[:start] + "".join(tokens) + text[end:]
    return text.encode()


def swapped(random: Random) -> bytes:
    """Return a spec with tokens of its bodies replaced by others of their class, which mostly leaves the spec of another op."""
    text = random.choice(seeds())
    for _ in range(random.choice(_ROUNDS)):
        start, end = random.choice(_bodies(text) or [(0, len(text))])
        tokens = TOKEN.findall(text[start:end])
        real = [i for i, token in enumerate(tokens) if token.strip()]
        if not real:
            break
        at = random.choice(real)
        kin = [token for token in (*(tokens[i] for i in real), *_TOKENS) if _class(token) == _class(tokens[at])]
        tokens[at] = random.choice(kin)
        text = text[:start] + "".join(tokens) + text[end:]
    return text.encode()


def _class(token: str) -> str:
    """Return what a token is like: a name of a kind, a number, an operator, or itself."""
    if token[0].isalpha():
        return "size" if token[0].isupper() else "name" if len(token) < 3 else "word"
    return "number" if token[0].isdigit() else "operator" if token[0] in "+-*/%<>=!" and token != "=" else token


KINDS: dict[str, Callable[[Random], bytes]] = {
    "text": lambda random: mutated(random, seeds(), _ROUNDS).encode("utf-8", "surrogatepass"),
    "words": lambda random: reworded(random, seeds()).encode(),
    "bytes": damaged,
    "structure": restructured,
    "tokens": retokened,
    "swaps": swapped,
}
"""The kinds of mutations, each a function from what draws to the bytes of a file."""


def mutant(seed: str, number: int) -> tuple[str, bytes]:
    """Return the kind and the bytes of a mutated spec. Kinds come in turns; those of bodies twice as often."""
    random = Random(f"{seed}/{number}")
    turns = (*KINDS, "tokens", "swaps")
    kind = turns[number % len(turns)]
    return kind, KINDS[kind](random)


def _bodies(text: str) -> list[tuple[int, int]]:
    """Return where in a spec the texts stand that have a language of their own: bodies, declarations, conditions."""
    found = [m.span(1) for m in re.finditer(r"^ *(?:kernel|body): *\|\n((?:(?: .*)?\n)+)", text, re.MULTILINE)]
    found += [m.span(1) for m in re.finditer(r"^kernel: *([^|\n].*)$", text, re.MULTILINE)]
    found += [
        m.span(1) for m in re.finditer(r"^(?:types|inputs|outputs|require|shape|attributes):(.*\n(?: .*\n)*)", text, re.MULTILINE)
    ]
    return found


@cache
def _words() -> tuple[str, ...]:
    keys = {str(place[-1]) for text in seeds() for place in _places(yaml.safe_load(text))}
    return tuple(sorted(keys))


def _places(data: Any, path: tuple[str | int, ...] = (), around: tuple[int, ...] = ()) -> Values:
    """Return the paths of all values; what a change has put into itself is gone into once."""
    if id(data) in around:
        return []
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [place for key, value in inner for place in ((*path, key), *_places(value, (*path, key), (*around, id(data))))]


def _value(data: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def _at(data: Any, path: tuple[str | int, ...]) -> tuple[Any, Any]:
    return _value(data, path[:-1]), path[-1]


def _add(parent: Any, key: str, value: Any) -> None:
    if isinstance(parent, dict):
        parent[key] = value
    else:
        parent.append(value)
