"""What of a generated file is not text: its code with comments left out and what strings hold left out of them.

Two packages that differ in the words of a spec alone have the same skeletons, whatever the words are, unless a word got out of
the comment or the string that it was put into.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from html.parser import HTMLParser
from pathlib import PurePosixPath

import markdown
import yaml

_CPP = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<raw>\b(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
    |(?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<space>\s+)|(?P<word>\w+)|(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_TRIGRAPHS = {"=": "#", "/": "\\", "'": "^", "(": "[", ")": "]", "!": "|", "<": "{", ">": "}", "-": "~"}


def cpp(text: str) -> list[str]:
    """Return the tokens of C or C++. Trigraphs count, which C compilers read, and so do lines that go on after a backslash."""
    text = re.sub(r"\?\?([=/'()!<>-])", lambda m: _TRIGRAPHS[m[1]], text)
    text = re.sub(r"\\[ \t]*\r?\n", "", text)
    tokens: list[str] = []
    for line in _logical_lines(text):
        # Of a directive the end counts, which it shares with its line; layout, braces and how a long string is cut do not.
        found = [m["word"] or m["other"] or '"' for m in _CPP.finditer(line) if not (m["comment"] or m["space"])]
        tokens += [*found, "\n"] if found[:1] == ["#"] else found
    kept = ["a hash" if _HASH.fullmatch(token) else token for token in tokens if token not in "{}"]
    return [token for i, token in enumerate(kept) if token != '"' or kept[i - 1 : i] != ['"']]


_HASH = re.compile(r"0x[0-9a-f]{16}u")


def _logical_lines(text: str) -> list[str]:
    """Return directives a line each, with what stands between them in one."""
    whole = "".join("\n" * m[0].count("\n") + " " if m["comment"] else m[0] for m in _CPP.finditer(text))
    found: list[str] = [""]
    for line in whole.split("\n"):
        if line.lstrip().startswith("#"):
            found += [line, ""]
        else:
            found[-1] += f"\n{line}"
    return found


class _Texts(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("text" if isinstance(node.value, str | bytes) else node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.JoinedStr:
        self.generic_visit(node)
        return node


def python(text: str) -> str:
    """Return the syntax tree of Python with every string replaced by the same."""
    return ast.dump(_Texts().visit(ast.parse(text)))


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(f"<{tag} {sorted(name for name, _ in attrs)}")

    def handle_endtag(self, tag: str) -> None:
        self.found.append(f"</{tag}")

    def handle_comment(self, data: str) -> None:
        self.found.append("<!--")

    def handle_pi(self, data: str) -> None:
        self.found.append("<?")


def html(text: str) -> list[str]:
    """Return the tags of HTML with the names of their attributes."""
    tags = _Tags()
    tags.feed(text)
    return tags.found


def _shape(value: object) -> object:
    match value:
        case dict():
            return {str(key): _shape(v) for key, v in value.items()}
        case list():
            return [_shape(v) for v in value]
        case _:
            return type(value).__name__


def lines(text: str) -> list[str]:
    """Return the lines of a file whose comments begin with #, without these and without what stands in quotes."""
    kept = []
    for line in text.split("\n"):
        lexer = shlex.shlex(line.replace("\\\n", ""), punctuation_chars=True)
        lexer.quotes, lexer.commenters, lexer.whitespace_split = '"', "#", True
        kept.append(" ".join('"' if '"' in token else token for token in lexer))
    return [line for line in kept if line]


def skeleton(path: str, text: str) -> object:
    """Return the skeleton of a file of any kind that opc generates.

    Raises:
        ValueError: when the file is not what its name says, or of a kind that is not known here.
    """
    place = PurePosixPath(path)
    match place.suffix:
        case ".py" | ".pyi":
            return python(text)
        case ".c" | ".cpp" | ".h" | ".hpp" | ".cu" | ".map":  # a linker's script has C's comments
            return cpp(text)
        case ".json":
            return _shape(json.loads(text))
        case ".toml":
            return _shape(tomllib.loads(text))
        case ".yml" | ".yaml":
            return _shape(yaml.safe_load(text))
        case ".html" | ".svg":
            return html(text)
        case ".md":
            made = markdown.markdown(text, extensions=["tables", "admonition", "pymdownx.superfences", "pymdownx.details"])
            # What colours code has as many as the code has words.
            return [tag for tag in html(made) if tag not in ("<span ['class']", "</span")]
        case ".sh":
            tokens = shlex.split(text, comments=True, posix=False)
            return ['"' if token[:1] in ("'", '"') else token for token in tokens]
        case ".txt" | "" | ".css" | ".js" | ".typed":
            return lines(text)
        case _:
            raise ValueError(f"no skeleton for {path}")
