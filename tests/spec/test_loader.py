"""The loader: what YAML gives, and what it is taken for."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from opc.diagnostics import SpecError
from opc.pipeline import forward_op
from opc.spec.loader import load, loads
from opc.spec.model import SpecModel
from opc.spec.schema import EDITOR_LINE, FILE_NAME, schema, schema_text
from opc.spec.template import new_spec

ROOT = Path(__file__).parents[2]
SPECS = sorted((ROOT / "specs").glob("*.yaml"))
HEAD = "op: foo\ndomain: tests\nversion: 1\ndoc: d\n"
REST = "inputs: {x: 'float32[...]'}\noutputs: {y: 'float32[...]'}\nkernel: y = x\n"


def test_places_of_keys_and_values() -> None:
    spec = loads(HEAD + REST, "a.yaml")
    assert (spec.key_span("inputs").line, spec.key_span("inputs").column) == (5, 1)
    assert (spec.key_span("inputs", "x").line, spec.key_span("inputs", "x").column) == (5, 10)
    assert spec.text("kernel").span(4, 5).column == 13
    assert spec.span("attributes", "none").line == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5), ("1E5", 1e5), ("-2.5e+3", -2500.0), (".5", 0.5), ("3", 3), ("0x1f", 31), ("0o17", 15),
        (".inf", math.inf), ("-.inf", -math.inf), ("+12", 12), ("true", True), ("False", False), ("'1e-5'", "1e-5"), ("~", None),
        ("y", "y"), ("n", "n"), ("1.2.3", "1.2.3"), ("2020-01-01", "2020-01-01"), ("0", 0), ("1" + "0" * 5000, math.inf),
    ],
)  # fmt: skip
def test_scalars(text: str, value: object) -> None:
    spec = loads(f"{HEAD}{REST}examples: [{{x: {text}}}]\n", "a.yaml")
    got = spec.model.examples[0]["x"]
    assert got == value
    assert type(got) is type(value)


def test_nan() -> None:
    assert math.isnan(loads(f"{HEAD}{REST}examples: [{{x: .nan}}]\n", "a").model.examples[0]["x"])


def test_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + (HEAD + REST).replace("\n", "\r\n").encode())
    assert load(path).model.op == "foo"


def test_missing_file_and_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(SpecError, match="can't read"):
            load(path)


def test_model_is_frozen() -> None:
    model = loads(HEAD + REST, "a").model
    with pytest.raises(ValidationError):
        model.op = "bar"


def test_hash_is_of_the_text() -> None:
    assert loads(HEAD + REST, "a").hash == loads(HEAD + REST, "b").hash
    assert loads(HEAD + REST, "a").hash != loads(HEAD + REST + "\n", "a").hash


def test_a_million_aliases_are_refused_at_once() -> None:
    bomb = "a: &a [x]\n" + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]\n" for i in range(20))
    with pytest.raises(SpecError, match="aliases"):
        loads(bomb, "bomb.yaml")


def test_schema_in_the_repository_is_fresh() -> None:
    assert (ROOT / "specs" / FILE_NAME).read_text() == schema_text()


def test_schema_knows_every_key() -> None:
    data = json.loads(schema_text())
    assert set(data["properties"]) == set(SpecModel.model_fields)
    assert data["additionalProperties"] is False
    assert set(data["required"]) == {"op", "domain", "version", "doc", "inputs", "outputs"}
    assert data["anyOf"] == [{"required": ["kernel"]}, {"required": ["native"]}]
    assert schema() == data


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_spec_begins_with_the_editor_line(path: Path) -> None:
    assert path.read_text().split("\n")[0] == EDITOR_LINE


def test_template_compiles() -> None:
    from opc.analysis.elaborate.typing import elaborate
    from opc.diagnostics import Diagnostics

    found = Diagnostics()
    op = elaborate(loads(new_spec("my_op"), "my_op.yaml"), found)
    assert op.name == "my_op"
    assert not found.items
    with pytest.raises(SpecError, match="can't name an op"):
        new_spec("../x")


@pytest.mark.parametrize("value", ['it\'s "an" int', "\\' int", 'a\\" x[] \\\\', "lambda '"])
def test_a_text_in_a_body_stays_as_it_is(value: str) -> None:
    """Escaped quotes do not end it, so no word in it is taken for a name that targets spell otherwise, or for code."""
    spec = loads(
        "op: f\ndomain: t\nversion: 1\ndoc: D.\ntypes: {T: floating}\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\n"
        f"attributes: {{mode: {{type: str, values: [a, {json.dumps(value)}], default: a}}}}\n"
        f"kernel: |\n  y[n] = x[n] if mode == {value!r} else -x[n]\n",
        "f.yaml",
    )
    assert f"mode == {value!r}" in spec.model.kernel
    assert forward_op(spec).attribute("mode").values == ("a", value)


@pytest.mark.parametrize("escape", ["\\0", "\\ud800", "\\uDFFF"])
def test_characters_that_no_text_can_hold_are_refused(escape: str) -> None:
    with pytest.raises(SpecError, match=r"f\.yaml:1:6: error: a text can't hold the character #x"):
        loads(f'doc: "a{escape}b"\nop: f\n', "f.yaml")


def test_no_more_is_read_than_a_spec_may_have(tmp_path: Path) -> None:
    """Also of a device, which has no end."""
    with pytest.raises(SpecError, match="/dev/zero:1:1: error: the file is larger than 1024 KiB"):
        load("/dev/zero")
    with pytest.raises(SpecError, match="can't read"):
        load("a\0b")
