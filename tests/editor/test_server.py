"""`opc lsp` as an editor meets it: the project's own specs, asked about by a client of the protocol over stdin and stdout.

How long the answers took is printed at the end; docs/editor.md has the figures of a quiet machine.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from opc.editor import server
from opc.editor.checks import Checked
from opc.editor.colours import LEGEND
from opc.editor.layout import laid_out
from opc.editor.server import OpcServer
from opc.ir.functions import CALLABLE, FUNCTIONS
from opc.spec.model import AttributeModel, SpecModel
from tests.cli.conftest import BAD, Outcome, opc
from tests.editor import answers
from tests.editor.answers import QUESTIONS
from tests.editor.client import Editor, editor

__all__ = ["opc"]  # the fixture

SPECS = Path(__file__).parents[2] / "specs"


@pytest.fixture(scope="module")
def ed() -> Iterator[Editor]:
    with editor() as made:
        yield made
        took: dict[str, list[float]] = {}
        for what, seconds, _ in made.times:
            took.setdefault(what, []).append(1e3 * seconds)
        for what, times in took.items():
            print(f"{what}: {len(times)} answers, median {statistics.median(times):.0f} ms, longest {max(times):.0f} ms")


@pytest.fixture(scope="module")
def conv(ed: Editor) -> str:
    return ed.open(SPECS / "conv2d.yaml")


@pytest.fixture(scope="module")
def softmax(ed: Editor) -> str:
    return ed.open(SPECS / "softmax.yaml")


@pytest.mark.parametrize("name", ["relu", "grid_sample", "native/inverse"])
def test_good_specs_have_no_mistakes(ed: Editor, name: str) -> None:
    uri = ed.open(SPECS / f"{name}.yaml")
    assert ed.diagnostics(uri) == []
    assert ed.diagnostics(uri, times=2) == []
    ed.close(uri)


MISTAKES = {
    "body": BAD + "kernel: |\n  # \U0001f600\n  y = expp(x) + xx  # \U0001f600\n",
    "form": BAD.replace("version: 1", "version: no\nverson: 2") + "kernel: y = x\n",
    "yaml": BAD + "kernel: [\n",
    "derivative": BAD.replace("T[...]", "T[N]") + "kernel: |\n  y[i] = sum[k](x[k]) + x[i + 1]\n",
    "warning": BAD + "attributes: {a: float}\nkernel: y = x\n",
}


@pytest.mark.parametrize("name", MISTAKES)
def test_diagnostics_are_those_of_opc_check(
    ed: Editor,
    name: str,
    opc: Callable[..., Outcome],
    tmp_path: Path,
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(MISTAKES[name])
    uri = ed.open(path)
    shown = ed.diagnostics(uri, times=2 if name == "warning" else 1)
    printed = json.loads(opc("check", "bad.yaml", "--json").out)
    assert len(shown) == len(printed) > 0
    lines = MISTAKES[name].split("\n")
    for one, other in zip(shown, printed, strict=True):
        assert one.message == other["message"] + (f"\nhint: {other['hint']}" if other["hint"] else "")
        assert one.severity is not None
        assert one.severity.name.lower() == other["severity"]
        start = sum(len(line) + 1 for line in lines[: other["line"] - 1]) + other["column"] - 1
        end = sum(len(line) + 1 for line in lines[: other["end_line"] - 1]) + other["end_column"] - 1
        assert (ed.offset(uri, one.range.start), ed.offset(uri, one.range.end)) == (start, end)
    ed.close(uri)


def test_typing_shows_and_clears_mistakes(ed: Editor) -> None:
    uri = ed.open(SPECS / "silu.yaml")
    good = ed.texts[uri]
    assert ed.diagnostics(uri) == []
    ed.type(uri, good.replace("sigmoid(", "sigmod("))
    assert [(d.code, ed.slice(uri, d.range)) for d in ed.diagnostics(uri)] == [("kernel", "sigmod")]
    ed.type(uri, good)
    assert ed.diagnostics(uri) == []
    ed.close(uri)


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        ("w[|o, c, p", "```\n0 <= o < O\n```\nindex"),
        ("w[o, c, |p", "```\n0 <= p < KH\n```\nindex"),
        ("|w[o, c", "```\nw: T[O, I, KH, KW]\n```\ninput\n\nFilters, O // groups for each group of I channels."),
        ("present(|b)", "```\nb?: T[O]\n```\noptional input\n\nBias, 0 when absent."),
        (
            "|dilation[0] - padding",
            "```\ndilation: int[2] = [1, 1]\n```\nattribute, where dilation > 0\n\nSteps between filter taps.",
        ),
        ("[N, |C, H", "```\nC\n```\ndimension of x"),
        ("|OH: (", "```\nOH = (H - KH*dilation[0] + "),
        ("'|T[N, C, H", "```\nT: float16, bfloat16, float32, float64\n```\ntype variable"),
        ("* |pad(", "`pad(x[...], v)`: a read that may fall outside, and then is v."),
        ("|sum[c", "The sum over the axes in brackets"),
        ("out|puts:", SpecModel.model_fields["outputs"].description),
        ("{type: int, |default: 1", AttributeModel.model_fields["default"].description),
    ],
)
def test_hover(ed: Editor, conv: str, at: str, shown: str) -> None:
    ed.diagnostics(conv)
    assert ed.hover(conv, at).startswith(shown)


def test_hover_of_functions_tells_their_derivatives(ed: Editor) -> None:
    uri = ed.open(SPECS / "all.yaml", BAD + "kernel: |\n" + "".join(f"  t{i} = {f}(x)\n" for i, f in enumerate(CALLABLE)))
    for name in CALLABLE:
        shown = ed.hover(uri, f"|{name}(x)")
        assert shown.startswith(f"`{name}(x")
        derivative = FUNCTIONS[name].derivative
        assert derivative is None or derivative == ("0",) or all(f"`{text}`" in shown for text in derivative)
    ed.close(uri)


def test_hover_of_the_op_shows_its_gradient_as_opc_show(ed: Editor, opc: Callable[..., Outcome]) -> None:
    uri = ed.open(SPECS / "swiglu.yaml")
    ed.diagnostics(uri, times=2)
    printed = opc("show", SPECS / "swiglu.yaml", "--gradient").out
    gradient = printed[printed.index("gradient:\n") :].split("\n\n")[0].rstrip()
    assert "d_a[...] = " in gradient
    for at in ("op: |swiglu", "ker|nel:"):
        assert f"The gradient is derived:\n\n```yaml\n{gradient}\n```" in ed.hover(uri, at)
    ed.close(uri)


@pytest.mark.parametrize(
    ("at", "declared"),
    [
        ("present(b) e|lse", None),
        ("pad(|x[n", "  |x: {type"),
        ("|O // groups) * I", "'T[|O, I"),
        ("o // (|O // groups)", "'T[|O, I"),
        ("p*|dilation[0] - padding[0], j", "  |dilation: {type"),
        ("c, p, |q] *", "sum[c, p, |q]("),
        ("'|OH, ", None),
        ("N, O, |OH, OW", "  |OH: ("),
        ("|T[N, O, OH", "types: {|T:"),
    ],
)
def test_definition(ed: Editor, conv: str, at: str, declared: str | None) -> None:
    if at.replace("|", "") not in ed.texts[conv]:
        assert declared is None
        return
    found = ed.ask("definition", conv, at)
    assert (found.range.start if found else None) == (ed.position(conv, declared) if declared else None)


def test_references(ed: Editor, softmax: str) -> None:
    text = ed.texts[softmax]
    found = ed.ask("references", softmax, "inputs:\n  |x", context=lsp.ReferenceContext(include_declaration=True))
    assert {ed.slice(softmax, place.range) for place in found} == {"x"}
    assert len(found) >= 4 + text.count("{x:")


RENAMED = [
    ("softmax", "inputs:\n  |x", "value", "d_value[*A, n, *B] ="),
    ("softmax", "= |e[*A, n, *B] / ", "powers", "powers[*A, n, *B] = exp("),
    ("softmax", "sum[|k](e", "last", "y[*A, n, *B] = e[*A, n, *B] / sum[last](e[*A, last, *B])"),
    ("softmax", "T[*A, |N, *B]", "M", "x: T[*A, M, *B]"),
    ("softmax", "[*A, N, *|B]", "Rest", "y: T[*A, N, *Rest]"),
    ("conv2d", "|dilation: {", "spread", "spread[0]*(KH - 1)"),
    ("layer_norm", "  |epsilon: {", "tiny", "check: tiny"),
]


@pytest.mark.parametrize(("name", "at", "new", "shown"), RENAMED, ids=[f"{r[0]}-{r[2]}" for r in RENAMED])
def test_rename(ed: Editor, name: str, at: str, new: str, shown: str) -> None:
    """The spec with another name has no mistakes, the old name is gone, and renamed back it is the old text."""
    uri = ed.open(SPECS / f"{name}.yaml")
    old = ed.texts[uri]
    word = ed.slice(uri, ed.ask("prepare_rename", uri, at))
    (edits,) = ed.ask("rename", uri, at, new_name=new).changes.values()
    made = ed.edited(uri, edits)
    assert made.count(new) == old.count(new) + len(edits)
    assert shown in made
    ed.type(uri, made)
    assert ed.diagnostics(uri) == []
    start = ed.offset(uri, edits[0].range.start)
    (back,) = ed.ask("rename", uri, start, new_name=word).changes.values()
    assert ed.edited(uri, back) == old
    ed.close(uri)


def test_a_reduction_is_none_of_an_operand_of_its_name(ed: Editor) -> None:
    uri = ed.open(SPECS / "group_norm.yaml")
    (edits,) = ed.ask("rename", uri, "  |mean: {", new_name="middle").changes.values()
    made = ed.edited(uri, edits)
    assert "middle[n, g] = mean[j:P, *S](" in made
    ed.type(uri, made)
    assert ed.diagnostics(uri) == []
    ed.close(uri)


@pytest.mark.parametrize(
    ("at", "new", "why"),
    [
        ("pad(|x[n", "w", "'w' is the name of the input on line 11"),
        ("pad(|x[n", "OH", "'OH' is the name of the dimension on line 2"),
        ("pad(|x[n", "2x", "'2x' can't be a name: a name is an ASCII letter"),
        ("pad(|x[n", "d_x", "'d_x' can't be a name: names that begin with 'd_'"),
        ("pad(|x[n", "exp", "'exp' is a word of the language"),
        ("pad(|x[n", "conv2d", "the spec would have a mistake: 'conv2d' is the name of the op"),
        ("* |pad(x", "fill", "'pad' is no name of this spec, but a form"),
        ("|domain:", "x", "there is no name here"),
    ],
)
def test_names_that_are_refused(ed: Editor, conv: str, at: str, new: str, why: str) -> None:
    with pytest.raises(JsonRpcException) as caught:
        ed.ask("rename", conv, at, new_name=new)
    assert str(caught.value).startswith(why)


@pytest.mark.parametrize(
    ("typed", "some", "never"),
    [
        ("|", {"attributes", "shape", "broadcast", "gradient"}, {"op", "kernel", "x", "mode"}),
        ("attributes:\n  a: {|", {"type", "default", "check", "dim"}, {"op", "ties"}),
        ("attributes:\n  a: {type: int, |", {"default"}, {"op"}),
        ("attributes:\n  a:\n    |", {"type", "default"}, {"op"}),
        ("attributes: {a: {type: |", {"int", "float", "axis", "dtype"}, {"type", "float16"}),
        ("attributes: {a: {type: axis, dim: |", {"N"}, {"T", "x"}),
        ("gradient: |", {"auto", "none"}, {"body"}),
        ("gradient:\n  |", {"body", "saves", "ties", "scatter"}, {"mode", "op"}),
        ("gradient:\n  ties: |", {"first", "even"}, {"atomic"}),
        ("gradient: {saves: [|", {"y"}, {"x", "body"}),
        ("out_of_range: |", {"error", "clamp", "zero"}, {"x"}),
        ("inplace: {|", {"y"}, {"x"}),
        ("inplace: {y: |", {"x"}, {"y"}),
        ("native:\n  cpp:\n    |", {"code", "include", "packages"}, {"cpp"}),
        ("native:\n  |", {"cpp", "torch", "cuda"}, {"code"}),
        ("require: [|", {"N", "minimum"}, {"x"}),
        ("examples:\n  - {|", {"x", "y"}, {"op"}),
    ],
)
def test_completion_of_keys_and_values(ed: Editor, typed: str, some: set[str], never: set[str]) -> None:
    text = BAD.replace("T[...]", "T[N]") + "kernel: |\n  y = x\n" + typed.replace("|", "")
    uri = ed.open(SPECS / "typed.yaml", text)
    found = {*ed.complete(uri, len(text))}
    assert some <= found
    assert not never & found
    ed.close(uri)


def test_completion_in_types(ed: Editor) -> None:
    text = BAD.replace("types: {T: floating}", "types: {T: ").replace("\ninputs", "\ninputs")
    uri = ed.open(SPECS / "typed.yaml", text)
    found = ed.complete(uri, text.index("types: {T: ") + len("types: {T: "))
    assert {"floating", "float16", "bool"} <= {*found}
    ed.close(uri)


def test_completion_in_a_body(ed: Editor) -> None:
    head = BAD.replace("T[...]", "T[N]") + "attributes: {alpha: float}\nkernel: |\n  t[i] = alpha * x[i]\n"
    uri = ed.open(SPECS / "typed.yaml", head + "  y[j] = exp(t[|\n  u = x\n".replace("|", ""))
    found = {*ed.complete(uri, len(head) + len("  y[j] = exp(t["))}
    assert {"x", "alpha", "t", "j", "N", "if", "inf", "float32", *CALLABLE, "sum", "pad", "cast"} <= found
    assert not {"i", "u", "op", "type"} & found
    ed.close(uri)


def test_code_actions_mend_mistakes(ed: Editor) -> None:
    uri = ed.open(SPECS / "typed.yaml", BAD + "kernel: |\n  y = expp(x)\n")
    (mistake,) = ed.diagnostics(uri)
    (action,) = ed.ask("code_action", uri, range=mistake.range, context=lsp.CodeActionContext([mistake]))
    assert (action.title, action.kind) == ("Change to 'exp'", "quickfix")
    assert [d.message for d in action.diagnostics] == [mistake.message]
    (edits,) = action.edit.changes.values()
    ed.type(uri, ed.edited(uri, edits))
    assert ed.texts[uri].endswith("  y = exp(x)\n")
    assert ed.diagnostics(uri) == []
    assert not ed.ask("code_action", uri, range=mistake.range, context=lsp.CodeActionContext([]))
    ed.close(uri)


def test_semantic_colours(ed: Editor) -> None:
    text = (
        BAD.replace("doc: x.", "doc: \U0001f600")
        + "attributes: {a: float}\nkernel: |\n  # \U0001f600 note\n  y = max[...](exp(x)) if a >= 1.5e-3 else x\n"
    )
    uri = ed.open(SPECS / "typed.yaml", text)
    data = ed.ask("semantic_tokens_full", uri).data
    line = column = 0
    found = []
    for i in range(0, len(data), 5):
        rows, columns, width, kind, _ = data[i : i + 5]
        line, column = line + rows, columns + (0 if rows else column)
        start = ed.offset(uri, lsp.Position(line, column))
        found.append((text[start : ed.offset(uri, lsp.Position(line, column + width))], LEGEND.token_types[kind]))
    assert found == [
        ("# \U0001f600 note", "comment"), ("y", "variable"), ("=", "operator"), ("max", "macro"), ("exp", "function"),
        ("x", "parameter"), ("if", "keyword"), ("a", "property"), (">=", "operator"), ("1.5e-3", "number"), ("else", "keyword"),
        ("x", "parameter"),
    ]  # fmt: skip
    ed.close(uri)


def test_formatting(ed: Editor) -> None:
    text = "doc: x\nop:   a\n"
    uri = ed.open(SPECS / "typed.yaml", text)
    edits = ed.ask("formatting", uri, options=lsp.FormattingOptions(2, True))
    assert ed.edited(uri, edits) == laid_out(text) == "op: a\ndoc: x\n"
    ed.type(uri, "op: [\n")
    assert not ed.ask("formatting", uri, options=lsp.FormattingOptions(2, True))
    assert ed.messages[-1].startswith("not valid YAML")
    ed.close(uri)


@pytest.mark.parametrize("name", ["softmax", "conv2d", "gelu"])
def test_lines_that_end_as_on_windows(ed: Editor, name: str) -> None:
    """Every answer is the one of the same text with plain ends, and an edit leaves no other ends than the text has."""
    text = (SPECS / f"{name}.yaml").read_text()
    messy = text.replace("version: 1", "version:   1")
    plain, windows = ed.open(SPECS / "typed.yaml", text), ed.open(SPECS / "windows.yaml", text.replace("\n", "\r\n"))
    asked = [ed.ask("semantic_tokens_full", uri).data for uri in (plain, windows)]
    assert asked[0] == asked[1]
    assert ed.diagnostics(windows) == []
    for what in ("definition", "hover", "prepare_rename"):
        one, other = (ed.ask(what, uri, "|x: ") for uri in (plain, windows))
        assert one is not None
        assert one == other or (one.range, what) == (other.range, "definition"), what
    options = lsp.FormattingOptions(2, True)
    assert not ed.ask("formatting", windows, options=options)
    ed.type(windows, messy.replace("\n", "\r\n"))
    assert ed.edited(windows, ed.ask("formatting", windows, options=options)) == text.replace("\n", "\r\n")
    edits = ed.ask("rename", windows, "|x: ", new_name="renamed").changes[windows]
    assert ed.edited(windows, edits).count("\n") == ed.edited(windows, edits).count("\r\n") == text.count("\n")
    ed.close(plain)
    ed.close(windows)


@pytest.mark.parametrize("broken", ["attributes: {a: {", "  : :", "inputs: {x: 'T[", "\t", "- a", "kernel: |\n  y[i = x("])
def test_half_typed_yaml_is_answered(ed: Editor, broken: str) -> None:
    good = BAD + "kernel: |\n  y = exp(x)\n"
    uri = ed.open(SPECS / "typed.yaml", good)
    ed.diagnostics(uri)
    ed.type(uri, f"{good}{broken}\n")
    assert ed.diagnostics(uri)
    assert ed.hover(uri, "|exp(x)").startswith("`exp(x)`")
    assert ed.complete(uri, "exp(|x)")
    assert ed.ask("semantic_tokens_full", uri).data
    assert ed.ask("definition", uri, "exp(|x)").range.start == ed.position(uri, "{|x: 'T[...]'}")
    ed.close(uri)


def test_the_extra_that_brings_the_protocol(
    opc: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opc.cli.console.find_spec", lambda name: None if name == "pygls" else object())
    done = opc("lsp")
    assert done.code == 1
    assert "opc lsp needs the package pygls: run `" in done.err
    assert "opc-compiler[lsp]" in done.err


def test_texts_that_nobody_waits_for_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who types, or undoes, faster than a text is checked waits for the newest one alone."""
    checked: list[str] = []

    def slow(read: Callable[[], object], derive: bool = True) -> Checked:
        checked.append("")
        time.sleep(0.05)
        return Checked(())

    texts = iter(range(50))
    monkeypatch.setattr(server, "check", slow)
    monkeypatch.setattr(OpcServer, "document", lambda self, uri: SimpleNamespace(source=f"op: a{next(texts)}", version=1))
    monkeypatch.setattr(OpcServer, "publish", lambda self, uri, found: None)

    async def typed() -> None:
        made = OpcServer()
        for _ in range(50):
            made.changed("file:///a.yaml")
            await asyncio.sleep(0)
        assert made.open["file:///a.yaml"].text == "op: a49"
        assert (await made.latest("file:///a.yaml")).checked is not None
        checking = made.open["file:///a.yaml"].checking
        assert checking is not None
        assert await checking == Checked(())

    asyncio.run(typed())
    # What had begun, one in each thread, and the newest.
    assert len(checked) <= 3


@pytest.mark.parametrize("name", ["onnx/blackman_window", "softmax"])
def test_the_figures_can_be_measured_on_every_kind_of_spec(name: str) -> None:
    with editor() as timed:
        answers.ask(timed, SPECS / f"{name}.yaml")
        assert {what for what, _, _ in timed.times} >= QUESTIONS.keys()


def test_the_page_has_the_figures_of_every_question() -> None:
    page = (SPECS.parent / "docs" / "editor.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \| \d+ ms, (\d+) ms \| \d+ ms, \d+ ms \|$", page, re.MULTILINE)
    assert [title for title, _, _ in rows] == list(QUESTIONS.values())
    assert all(int(answers) > 40 and int(longest) < 100 for _, answers, longest in rows)


def test_the_server_ends_with_its_editor() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "opc", "lsp"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )
    assert done.stdout == b""
    assert b"Traceback" not in done.stderr


def test_it_ends_in_order() -> None:
    """Who shuts it down and lets it exit gets the status 0, and nothing on stderr."""
    initialize = {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}}
    messages = [initialize, {"method": "initialized", "params": {}}, {"id": 2, "method": "shutdown"}, {"method": "exit"}]
    texts = [json.dumps({"jsonrpc": "2.0", **m}) for m in messages]
    sent = "".join(f"Content-Length: {len(text)}\r\n\r\n{text}" for text in texts)
    done = subprocess.run([sys.executable, "-m", "opc", "lsp"], input=sent.encode(), capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.decode()) == (0, "")
    assert b'"id":2' in done.stdout.replace(b" ", b"")
