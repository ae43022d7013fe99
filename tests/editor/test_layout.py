"""The layout of specs: stable, with the same meaning and the same comments as a reader of YAML that is not opc's finds them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from opc.diagnostics import SpecError
from opc.editor import layout
from opc.editor.body_layout import laid_out as body_laid_out
from opc.editor.body_layout import same_body
from opc.editor.layout import laid_out
from opc.editor.yaml_layout import WIDTH
from tests.diagnostics.test_fuzz import IN_DOCS, RANDOM, SEEDS
from tests.faults.mutations import mutated

SPECS = sorted((Path(__file__).parents[2] / "specs").rglob("*.yaml"))


def data(text: str) -> Any:
    """Return the pairs of a spec as PyYAML reads them, every scalar a text; those at the top by name, bodies without blanks."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)

    def pairs(node: yaml.Node, body: bool = False) -> Any:
        if isinstance(node, yaml.MappingNode):
            return [(k.value, pairs(v, k.value in ("kernel", "body"))) for k, v in node.value]
        if isinstance(node, yaml.SequenceNode):
            return [pairs(item) for item in node.value]
        return re.sub(r"[ \t]+", "", node.value).rstrip("\n") if body else (node.tag, node.value)

    return sorted(pairs(root))


def words(text: str) -> Counter[str]:
    """Return the words of a text, in comments too, however they are joined."""
    return Counter(re.findall(r"\w+|#", text))


MESS = """# the head

doc: "One."   # why
kernel: |  # the body
    y =x [ 0 ]  # first
    # then
    z  = -  x[ i+1 ,j]**2 +(3 if a  else-1)
# of the op
op: a



inputs:
    x: T[N]
    # below x
attributes: {k: {type: float, doc: 'LONG, with a comma', default: 1e-5, check: k > 0}, m: int}
examples:
    -   x: [1,2,
            3]
        y: 3 # last
    # between
    - {x: [0]}
# the tail
"""
NEAT = """# the head

# of the op
op: a

doc: 'One.'  # why
inputs:
  x: T[N]
  # below x
attributes:
  k: {type: float, doc: 'LONG, with a comma', default: 1e-5, check: k > 0}
  m: int
kernel: |  # the body
  y = x[0]  # first
  # then
  z = -x[i+1, j]**2 + (3 if a else -1)
examples:
  - x: [1, 2, 3]
    y: 3  # last
  # between
  - {x: [0]}
# the tail
"""


IN_LIST = """require:  # one
  # two
  - N > 0  # three
  - M > 0
  # four
  # five
"""
IN_MAP = """inputs:
  x: 'T[N]'  # one
  y:
    type: T  # two
    doc: 'a # b'
    # three
"""
IN_ORDER = """op: a
types:
  T:
    - float32  # one
    - float64
  I: int64
"""


def test_a_mess_becomes_neat() -> None:
    mess, neat = (text.replace("LONG", "a long text about what the attribute is good for") for text in (MESS, NEAT))
    assert laid_out(mess) == neat
    assert laid_out(mess.replace("\n", "\r\n")) == neat.replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{op: a, doc: 'b', kernel: 'y = x'}", "op: a\ndoc: 'b'\nkernel: 'y = x'\n"),
        ("---\nop: a\ndoc: b\n...\n", "op: a\ndoc: b\n"),
        ("op: a\nother: 1\ndomain: b\n", "op: a\ndomain: b\nother: 1\n"),
        ("op: a\ndoc: >\n    a b\n    c\n\n    d\n      e\n", "op: a\ndoc: >\n  a b\n  c\n\n  d\n    e\n"),
        ('op: a\ndoc: "a\\tb"\n', 'op: a\ndoc: "a\\tb"\n'),
        ("op: a\ndoc: one\n  two\n", "op: a\ndoc: one two\n"),
        ("op: a\nkernel: |\n  y = x[i\n  z  =  x\n", "op: a\nkernel: |\n  y = x[i\n  z  =  x\n"),
        ("require: [\n  N > 0, # one\n  M > 0\n]\n", "require:\n  - N > 0  # one\n  - M > 0\n"),
        ("require: [ # one\n  # two\n  N > 0 # three\n  , M > 0\n  # four\n] # five\n", IN_LIST),
        ("inputs: {x: 'T[N]',  # one\n  y: {type: T, # two\n      doc: 'a # b'}, # three\n}\n", IN_MAP),
        (
            "examples:\n  - {x: 1,  # one\n     y: 2}\n  - {x: 3}  # two\n",
            "examples:\n  - x: 1  # one\n    y: 2\n  - {x: 3}  # two\n",
        ),
        ("types: {\n  T: [float32,  # one\n      float64],\n  I: int64}\nop: a\n", IN_ORDER),
        ("{op: a, # one\n domain: b}\n", "op: a  # one\ndomain: b\n"),
        ("examples: [{x: 1,\n  y: 2}]\n", "examples: [{x: 1, y: 2}]\n"),
        ("native:\n  cpp:\n    code: |\n      int  a ; \n", "native:\n  cpp:\n    code: |\n      int  a ; \n"),
    ],
)
def test_what_is_laid_out(before: str, after: str) -> None:
    assert laid_out(before) == after
    assert laid_out(after) == after


def test_comments_move_with_the_key_below_them() -> None:
    """What stands above a blank line at the head is the file's, and so is all there where there is none."""
    rest = "domain: d\nversion: 1\n"
    head, own, first = "# The file.\n", "# About the kernel.\n", "kernel: y = x\n"
    assert (
        laid_out(f"{head}\n{own}{first}# About the op.\nop: a\n{rest}") == f"{head}\n# About the op.\nop: a\n{rest}{own}{first}"
    )
    assert laid_out(f"{head}{first}op: a\n{rest}") == f"{head}op: a\n{rest}{first}"
    assert laid_out(f"{head}\n{first}op: a\n{rest}") == f"{head}\nop: a\n{rest}{first}"


def test_long_lines_are_broken_where_it_means_nothing() -> None:
    numbers = ", ".join(str(i * 1.5) for i in range(80))
    text = f"op: a\ndoc: {'word ' * 60}end\nexamples:\n  - {{x: [{numbers}], y: [[1.0], [{numbers}]]}}\n"
    made = laid_out(text)
    assert max(map(len, made.split("\n"))) <= WIDTH
    assert made.startswith("op: a\ndoc: >-\n  word word ")
    assert "\n    y:\n      - [1.0]\n      - [0.0, 1.5, " in made
    assert data(made) == data(text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y=x[i,j]", "y = x[i, j]"),
        ("y = sum[k : N,p](a*b)", "y = sum[k:N, p](a*b)"),
        ("y = a+ b -c* d", "y = a + b - c * d"),
        ("y = - a ** - 2 if not  b else(a)", "y = -a ** -2 if not b else (a)"),
        ("y[* A,...] = x[ ... ,* A]", "y[*A, ...] = x[..., *A]"),
        ("y = x[] if a<=b  and c!='a  b' else 1e-5# c", "y = x[] if a <= b and c != 'a  b' else 1e-5  # c"),
        ("y = x (3)", "y = x(3)"),
        ("y = (a +\n     b)  ", "y = (a +\n     b)"),
        ("y = 2*(i+1)//3%4", "y = 2*(i+1)//3%4"),
        ("y = a ? b  ", "y = a ? b"),
    ],
)
def test_blanks_of_a_body(before: str, after: str) -> None:
    assert body_laid_out(before) == after
    assert body_laid_out(after) == after
    assert same_body(before, after)


def test_bodies_that_differ_are_told_apart() -> None:
    assert not same_body("y = 1", "y = 1.0")
    assert not same_body("y = a - b", "y = a + b")
    assert not same_body("y = x  # a", "y = x  # b")
    assert not same_body("y = x[", "y = z[")


@pytest.mark.rotating
@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_the_specs_are_laid_out(path: Path) -> None:
    assert laid_out(path.read_text()) == path.read_text()


@pytest.mark.parametrize("margin", range(4))
@pytest.mark.parametrize("block", ["|", "|-", ">", "|  # head"])
@pytest.mark.parametrize("between", ["", "\n"])
def test_comments_behind_a_block_of_text(margin: int, block: str, between: str) -> None:
    comments = f"{between}{' ' * margin}# one\n{between}{' ' * margin}# two\n"
    for indent, head in (("", "doc: {}\n"), ("  ", "gradient:\n  body: {}\n")):
        text = f"{head.format(block)}{indent}    y = x\n{comments}reference: x\n"
        made = laid_out(text)
        assert made == laid_out(text.replace(comments, f"{between}# one\n{between}# two\n"))
        assert words(made) == words(text)
        assert laid_out(text.replace("reference: x\n", "")) == made.replace("reference: x\n", "")


DRESSED = {
    "Windows": (lambda text: text.replace("\n", "\r\n"), lambda text: text.replace("\n", "\r\n")),
    "old ends": (lambda text: text.replace("\n", "\r"), lambda text: text),
    "byte order mark": (lambda text: f"\ufeff{text}", lambda text: text),
    "begin": (lambda text: f"---\n{text}", lambda text: text),
    "comment and begin": (lambda text: f"# above\n---\n{text}", lambda text: f"# above\n\n{text}"),
    "begin with a comment": (
        lambda text: f"# above\n--- # here\n# below\n{text}",
        lambda text: f"# above\n# here\n# below\n{text}",
    ),
    "end": (lambda text: f"{text}...\n", lambda text: text),
    "end with comments": (lambda text: f"{text}... # here\n# below\n", lambda text: f"{text}# here\n# below\n"),
    "mark, begin, Windows": (
        lambda text: f"\ufeff# a\n---\n{text}".replace("\n", "\r\n"),
        lambda text: f"# a\n\n{text}".replace("\n", "\r\n"),
    ),
}
"""What editors and other formatters put around a spec, and what is left of it."""


@pytest.mark.parametrize("kind", DRESSED)
def test_what_is_around_a_spec(kind: str) -> None:
    dress, left = DRESSED[kind]
    for path in SPECS[::12]:
        text = path.read_text().partition("\n")[2] if "comment" in kind or "," in kind else path.read_text()
        assert laid_out(dress(text)) == left(text), path


@pytest.mark.parametrize("text", IN_DOCS, ids=lambda t: t.split("\n")[0][4:])
def test_specs_of_the_docs_keep_their_meaning(text: str) -> None:
    made = laid_out(text)
    assert data(made) == data(text)


@settings(max_examples=30, deadline=None)
@given(text=RANDOM.map(lambda random: mutated(random, SEEDS)))
def test_layout_keeps_meaning_or_refuses(text: str) -> None:
    try:
        made = laid_out(text)
    except SpecError:
        return
    assert laid_out(made) == made
    assert data(made) == data(text)
    assert words(made) == words(text) or any(mark in text for mark in "\\\"'%-.")


def test_a_change_of_meaning_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a fault of the writer would do: nothing that says something else is returned."""
    real = layout.written
    for old, new, why in (("'int[2]'", "'int[3]'", "its meaning would change"), ("  # more\n", "", "would be lost")):
        monkeypatch.setattr(layout, "written", lambda text, old=old, new=new: real(text).replace(old, new))
        with pytest.raises(SpecError, match=why):
            laid_out("attributes:\n  # more\n  k: 'int[2]'\n")


def test_a_comment_inside_of_an_entry_is_refused_where_it_stands() -> None:
    with pytest.raises(SpecError) as caught:
        laid_out("op: a\ninputs: {x:\n  # about x\n  T}\n")
    (found,) = caught.value.diagnostics
    assert found.render().startswith("<text>:3:1: error: the file is left as it is: this comment would be lost\n")
