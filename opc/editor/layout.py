"""The layout of a spec file: `laid_out` returns its text as `opc fmt` writes it."""

from __future__ import annotations

from collections import Counter

from ruamel.yaml.error import YAMLError

from opc.diagnostics import Diagnostic, Source, SpecError
from opc.editor.body_layout import same_body
from opc.editor.flow import unfolded
from opc.editor.lines import Lines, in_order, outdented, tidied, tree, unmarked
from opc.editor.yaml_layout import BODIES, written
from opc.spec.text import span_at
from opc.spec.yaml_tree import MappingNode, Node, Scalar, SequenceNode, scalar_value


def laid_out(text: str, name: str = "<text>") -> str:
    """Return a spec's text laid out; its meaning and comments are the same. `name` is what diagnostics call the text.

    What was made is read by opc's own reader, and refused where it says anything else than the text. Lines end as the first one
    does, with "\\r\\n" or "\\n"; a byte order mark goes.

    Raises:
        SpecError: when the text is no YAML of a spec, or can't be laid out without a change of its meaning or comments.
    """
    first = text.partition("\n")[0]
    made = _laid_out(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), name)
    return made.replace("\n", "\r\n") if first.endswith("\r") and "\n" in text else made


def _laid_out(text: str, name: str) -> str:
    before = tree(text, name)
    try:
        made = _once(text)
        if made == text:
            return made
        # Where lines were broken there may be more to break: nothing is returned that a second run would change.
        for _ in range(2):
            earlier, made = made, _once(made)
        after = tree(made)
        lost = Counter(t for _, t in Lines.of(text).comments()) - Counter(t for _, t in Lines.of(made).comments())
    except (YAMLError, SpecError, RecursionError) as error:
        raise _refusal(text, name, 0, f"ruamel.yaml can't write what it holds: {str(error).splitlines()[0]}") from None
    if lost:
        line = next(i for i, comment in Lines.of(text).comments() if comment in lost)
        hint = "put it on a line of its own, outside of [ ] and { }"
        raise _refusal(text, name, line, "this comment would be lost", hint)
    if made != earlier or not _same(before, after, ()):
        raise _refusal(text, name, 0, "its meaning would change")
    return made


def _once(text: str) -> str:
    source = unfolded(outdented(unmarked(text)))
    return in_order(tidied(written(source), source))


def _refusal(text: str, name: str, line: int, why: str, hint: str | None = None) -> SpecError:
    start = sum(len(row) + 1 for row in text.split("\n")[:line])
    return SpecError([Diagnostic(f"the file is left as it is: {why}", span_at(Source(name, text), start, start), hint)])


def _same(one: Node, other: Node, path: tuple[str, ...]) -> bool:
    """Return whether two trees say the same: their values, in order but for the keys at the top, and what their bodies mean."""
    match one, other:
        case Scalar(), Scalar():
            a, b = scalar_value(one), scalar_value(other)
            bodies = path in BODIES and isinstance(a, str) and isinstance(b, str)
            # Numbers are compared as they are spelled, and 1 is not true.
            return same_body(str(a), str(b)) if bodies else (type(a) is type(b) and one.text.value == other.text.value)
        case SequenceNode(), SequenceNode():
            return len(one.items) == len(other.items) and all(_same(a, b, (*path, "-")) for a, b in zip(one.items, other.items))
        case MappingNode(), MappingNode():
            pairs = [sorted(n.entries, key=lambda e: e[0].text.value) if not path else n.entries for n in (one, other)]
            return len(pairs[0]) == len(pairs[1]) and all(
                a.text.value == b.text.value and _same(x, y, (*path, a.text.value)) for (a, x), (b, y) in zip(*pairs)
            )
        case _:
            return False
