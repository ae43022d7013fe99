"""The JSON Schema of a spec file, by which editors complete and check while one types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from opc.ir.dtypes import DTYPES
from opc.spec.model import SpecModel

FILE_NAME = "opc.schema.json"
"""What the schema is called beside the specs; their first line names it."""
EDITOR_LINE = f"# yaml-language-server: $schema={FILE_NAME}"
"""The first line of a spec, which tells editors where its schema is."""


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a spec file."""
    body = _tidy(SpecModel.model_json_schema(mode="validation"))
    body["$defs"]["AttributeModel"]["allOf"] = [*_default_rules(), *_owner_rules()]
    bodies = [{"required": ["kernel"]}, {"required": ["native"]}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **body, "anyOf": bodies, "title": "opc op spec"}


def _default_rules() -> Iterator[dict[str, Any]]:
    """Yield what the default of each type of attribute is."""
    number, whole = {"type": "number"}, {"type": "integer"}
    scalars = {"int": whole, "axis": whole, "float": number, "bool": {"type": "boolean"}, "str": {"type": "string"}}
    for kind, value in {**scalars, "dtype": {"enum": [d.value for d in DTYPES]}}.items():
        yield _where(rf"^\s*{kind}\s*$", {"properties": {"default": value}})
    for kind in ("int", "float", "bool"):
        elements = {"type": "array", "items": scalars[kind], "minItems": 0, "maxItems": 64}
        yield _where(rf"^\s*{kind}\[\s*[^*\s]", {"properties": {"default": elements}})
        # Of a list with an element for each axis of a group, a number stands for that in all of them.
        yield _where(rf"^\s*{kind}\[\s*\*", {"properties": {"default": {"anyOf": [elements, scalars[kind]]}}})
    axes = {"type": "array", "items": whole, "minItems": 0, "maxItems": 64}
    yield _where(r"^\s*(axes|permutation)\s*$", {"properties": {"default": axes}})


def _owner_rules() -> Iterator[dict[str, Any]]:
    """Yield which type of attribute has `dim`, `binds`, `group`, `of`, `values` and `keeps`, and which must have them."""
    owners = (("axis", "dim"), ("dtype", "binds"), ("(axes|permutation)", "group"), ("permutation", "of"))
    for kind, key in owners:
        yield _where(rf"^\s*{kind}\s*$", {"required": [key]}) | {"else": {"properties": {key: {"not": {}}}}}
    for kind, key in (("str", "values"), ("bool", "keeps")):
        yield _where(rf"^\s*{kind}\s*$", {}) | {"else": {"properties": {key: {"not": {}}}}}


def _where(pattern: str, rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule for the attributes whose type has a form."""
    return {"if": {"properties": {"type": {"pattern": pattern}}, "required": ["type"]}, "then": rule}


def _tidy(node: Any) -> Any:
    """Leave out what helps no editor: titles that repeat names, defaults of nothing, and "or nothing" in a choice."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: _tidy(value)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str)) and not (key == "default" and value in (None, "", False))
    }
    choices = [c for c in kept.get("anyOf", ()) if c != {"type": "null"}]
    if len(choices) == 1:
        kept = {**{k: v for k, v in kept.items() if k != "anyOf"}, **choices[0]}
    elif choices:
        kept["anyOf"] = choices
    if "patternProperties" in kept:
        kept["additionalProperties"] = False
    return kept


def schema_text() -> str:
    """Return the schema as the text of a file, the same for every run."""
    return json.dumps(schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
