"""What the emulation's headers declare, as a table: `python declarations.py LIBRARY [--write]`.

`LIBRARY.yaml` lists, header by header, each public name with its signature and the first SDK that has it (`since`, or "unknown"
where nobody could look). Without `--write` the command says how headers and table differ and fails where they do; with it the
table is written anew: entries that stay keep their `since`, new ones get "unknown".

Left out are the namespaces and folders called `detail`, `emulation` or `vendored`, private members, and what stands under the
comment `For the emulation's own use`.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

API = Path(__file__).resolve().parent
INCLUDE = API.parent / "include"
OWN_USE = "For the emulation's own use"
HIDDEN = {"detail", "emulation", "vendored"}
TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|::|->|\.\.\.|[A-Za-z_]\w*|[0-9][\w.]*|\s+|.", re.S)
# Say how the emulation compiles, or how a body is written, and nothing about the interface.
DROPPED = {"inline", "constexpr", "POPLAR_EMULATION_FUNCTION"}


@dataclass(frozen=True)
class Entry:
    """A declared name with its signature and the first SDK that has it."""

    name: str
    signature: str
    since: str = "unknown"


def declarations(library: str) -> dict[str, list[Entry]]:
    """Return what each public header of a library declares, in order."""
    headers = [h for h in sorted((INCLUDE / library).rglob("*.hpp")) if not HIDDEN & set(h.relative_to(INCLUDE).parts)]
    names = [str(h.relative_to(INCLUDE)) for h in headers]
    source = "".join(f"#include <{name}>\n" for name in names)
    defined = ["-DPOPLAR_EMULATION_LIBRARIES", "-DONNX_NAMESPACE=onnx"]
    flags = ["-std=c++14", "-E", "-C", *defined, f"-I{INCLUDE}", *bindings(), "-x", "c++", "-"]
    compiler = shlex.split(os.environ.get("CXX", "")) or ["g++"]
    done = subprocess.run([*compiler, *flags], input=source, capture_output=True, text=True, check=True)
    texts: dict[str, list[str]] = {name: [] for name in names}
    current = ""
    for line in done.stdout.splitlines():
        if marker := re.match(r'# \d+ "([^"]*)"', line):
            path = marker[1]
            current = path[len(str(INCLUDE)) + 1 :] if path.startswith(f"{INCLUDE}/") else ""
        elif current in texts:
            texts[current].append(line)
    return {name: list(entries(tokens("\n".join(lines)), [])) for name, lines in texts.items()}


def bindings() -> list[str]:
    """Return where the headers of Python and pybind11 are, which one header of PopART includes."""
    import pybind11

    return [f"-I{sysconfig.get_path('include')}", f"-I{pybind11.get_include()}"]


def tokens(text: str) -> list[str]:
    """Return the tokens of a text; of the comments only those that hide what follows."""
    text = re.sub(r"^[ \t]*#.*$", "", text, flags=re.M)  # pragmas
    return [t for t in TOKEN.findall(text) if not t.isspace() and (not t.startswith(("//", "/*")) or OWN_USE in t)]


def closing(text: list[str], start: int) -> int:
    """Return the place of the brace, parenthesis or angle bracket that closes the one at `start`."""
    pairs = {"{": "}", "(": ")", "<": ">", "[": "]"}
    opener, closer = text[start], pairs[text[start]]
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == opener) - (text[i] == closer)
        if depth == 0:
            return i
    raise ValueError(f"{opener} isn't closed")


def statements(text: list[str]) -> Iterator[tuple[list[str], list[str], bool]]:
    """Yield (head, body, hidden) of each statement: what stands before a brace or semicolon, and what is in the braces."""
    head: list[str] = []
    hidden = False
    i = 0
    while i < len(text):
        token = text[i]
        if OWN_USE in token:
            hidden = True
        elif token == ";":
            if head:
                yield head, [], hidden
            head, hidden = [], False
        elif token == ":" and head in (["public"], ["private"], ["protected"]):
            yield [*head, ":"], [], hidden
            head = []
        elif token == "__attribute__":
            i = closing(text, i + 1)
        elif token == "(":
            end = closing(text, i)
            head += text[i : end + 1]
            i = end
        elif token == "{":
            end = closing(text, i)
            initialised = head and (head[-1] == "=" or (":" in head and "(" in head and re.match(r"\w", head[-1])))
            value = "(" not in head and not any(t in head for t in ("namespace", "class", "struct", "enum", "union"))
            if initialised or value:
                head += text[i : end + 1]
            else:
                yield head, text[i + 1 : end], hidden
                head, hidden = [], False
            i = end
        else:
            head.append(token)
        i += 1


def entries(text: list[str], scope: list[str], access: str = "public") -> Iterator[Entry]:
    """Yield what is declared in a namespace or class."""
    for head, body, hidden in statements(text):
        if head[-1] == ":":
            access = head[0]
        elif hidden or access == "private" or head[0] in ("friend", "static_assert", "extern") or head == ["using", "namespace"]:
            continue
        elif head[0] == "namespace":
            if head[1] not in HIDDEN:
                inner = [t for t in head[1:] if re.match(r"\w", t)]
                yield from entries(body, [*scope, inner[0]])
        else:
            yield from declared(head, body, scope)


def declared(head: list[str], body: list[str], scope: list[str]) -> Iterator[Entry]:
    """Yield the entries of one declaration and of what is inside of it."""
    head = without_attributes([t for t in head if t not in DROPPED])
    rest = after_template(head)
    if rest and rest[0] in ("class", "struct", "union"):
        if not body and rest[-1] == rest[1] and len(rest) == 2:
            return  # A forward declaration.
        colon = rest.index(":") if ":" in rest else len(rest)
        name = joined([t for t in rest[1:colon] if t != "final"])
        yield Entry("::".join([*scope, name]), joined(head))
        yield from entries(body, [*scope, name], "private" if rest[0] == "class" else "public")
    elif rest and rest[0] == "enum":
        plain = [t for t in rest[1:] if t != "class"]
        yield Entry("::".join([*scope, plain[0]]), joined(head))
        for enumerator in declarators(body):
            if enumerator:
                yield Entry("::".join([*scope, plain[0], enumerator[0]]), enumerator[0])
    elif rest and "(" in rest and rest[0] not in ("using", "typedef"):
        function = without_initialisers(head)
        paren = parameters(after_template(function))
        before = after_template(function)[:paren]
        name = function_name(before)
        defined = before[-2:-1] == ["::"] or ("operator" in before and before[before.index("operator") - 1] == "::")
        if not defined and not name.startswith("~") and head[-2:] != ["=", "delete"]:
            yield Entry("::".join([*scope, name]), joined(function))
    elif rest and rest[0] in ("using", "typedef"):
        name = rest[1] if rest[0] == "using" else rest[-1]
        yield Entry("::".join([*scope, name]), joined(head))
    elif rest:
        first, *others = declarators(rest)
        for variable in (first, *([*first[:-1], other[0]] for other in others)):
            yield Entry("::".join([*scope, variable[-1]]), joined(variable))


def declarators(statement: list[str]) -> list[list[str]]:
    """Return the variables of a declaration, without what they are initialised with; the first stands behind the type."""
    out: list[list[str]] = [[]]
    depth, value = 0, False
    for token in statement:
        depth += (token in "<({") - (token in ">)}")
        if depth == 0 and token == ",":
            out.append([])
            value = False
        elif token in ("=", "{"):
            value = True
        elif not value:
            out[-1].append(token)
    return out


def without_attributes(head: list[str]) -> list[str]:
    """Return a declaration without `[[...]]`."""
    out: list[str] = []
    i = 0
    while i < len(head):
        if head[i : i + 2] == ["[", "["]:
            i = closing(head, i)
        else:
            out.append(head[i])
        i += 1
    return out


def after_template(head: list[str]) -> list[str]:
    """Return a declaration without its template parameters."""
    while head[:2] == ["template", "<"]:
        head = head[closing(head, 1) + 1 :]
    return head


def parameters(head: list[str]) -> int:
    """Return the place of the parenthesis that a function's parameters begin with."""
    if "operator" in head:
        at = head.index("operator") + 1
        return head.index("(", at + 1 if head[at] == "(" else at)
    return head.index("(")


def without_initialisers(head: list[str]) -> list[str]:
    """Return a function without the initialisers of its members, and without `= default`."""
    start = len(head) - len(after_template(head))
    end = closing(head, start + parameters(head[start:])) + 1
    while end < len(head) and head[end] not in (":", "{"):
        end += 1
    return head[: end - 2] if head[end - 2 : end] == ["=", "default"] else head[:end]


def function_name(head: list[str]) -> str:
    """Return the name of a function, of what stands before its parameters."""
    if "operator" in head:
        return joined(head[head.index("operator") :])
    return "~" + head[-1] if head[-2:-1] == ["~"] else head[-1]


def joined(parts: list[str]) -> str:
    """Write tokens with the spaces that people write."""
    text = re.sub(r"\boperator((?: [^\w\s(\[])+)", lambda m: "operator" + m[1].replace(" ", ""), " ".join(parts))
    text = text.replace("& &", "&&").replace("{ }", "{}").replace("( & ", "(&").replace('operator ""', 'operator""')
    text = re.sub(r" ?(::|\(|\)|<|>|,|\.\.\.|\[|\]|~) ?", r"\1", text)
    text = re.sub(r",", ", ", text)
    text = re.sub(r">(?=\w)", "> ", text)
    text = re.sub(r"\)(?=\w)", ") ", text)
    text = re.sub(r" (&&?|\*) (?=\w|\)|,|\.|=)", r" \1", text)
    text = re.sub(r"([>\w]) ?([&*]+)(?=[,)>])", r"\1 \2", text)
    return re.sub(r" +", " ", text).strip()


def table(library: str) -> dict[str, list[Entry]]:
    """Return the table of a library as it is written down."""
    written = yaml.load((API / f"{library}.yaml").read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return {header: [Entry(**entry) for entry in listed or []] for header, listed in written["headers"].items()}


def differences(library: str) -> list[str]:
    """Return how the headers of a library and its table differ, a line each."""
    actual, written = declarations(library), table(library)
    lines = []
    for header in sorted(actual.keys() | written.keys()):
        has = {(e.name, e.signature) for e in actual.get(header, [])}
        says = {(e.name, e.signature) for e in written.get(header, [])}
        lines += [f"{header}: not in the table: {signature}" for _, signature in sorted(has - says)]
        lines += [f"{header}: not declared: {signature}" for _, signature in sorted(says - has)]
    return lines


def write(library: str) -> None:
    """Write the table of a library anew."""
    path = API / f"{library}.yaml"
    old = {(e.name, e.signature): e.since for listed in table(library).values() for e in listed} if path.exists() else {}
    by_name = {name: since for (name, _), since in old.items()}
    lines = [
        f"# Written by `python declarations.py {library} --write`; `since` is entered by hand.",
        f"library: {library}",
        "headers:",
    ]
    for header, listed in declarations(library).items():
        lines.append(f"  {header}:" if listed else f"  {header}: []")
        for name, signature in dict.fromkeys((e.name, e.signature) for e in listed):
            since = old.get((name, signature), by_name.get(name, "unknown"))
            lines.append(f"    - {{name: {quoted(name)}, signature: {quoted(signature)}, since: {quoted(since)}}}")
    path.write_text("\n".join(lines) + "\n")


def quoted(text: str) -> str:
    """Write text as YAML's double-quoted scalar."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main() -> int:
    """Compare or write what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description="Holds the headers of the emulation and the tables of their API together.")
    parser.add_argument("library")
    parser.add_argument("--write", action="store_true", help="write the table anew")
    options = parser.parse_args()
    if options.write:
        write(options.library)
    lines = differences(options.library)
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
