"""What docs/language.md says of keys and of sums under conditions is so."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from opc.lower.fuse import cpu_programs
from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.pipeline import compile_text
from opc.spec.model import (
    AttributeModel,
    GradientModel,
    InputModel,
    NativeCodeModel,
    NativeModel,
    OutputModel,
    ReferenceModel,
    SpecModel,
)
from opc.spec.schema import schema

DOCS = Path(__file__).parents[2] / "docs"
LANGUAGE = (DOCS / "language.md").read_text()
NATIVE = (DOCS / "native.md").read_text()
MODELS = [SpecModel, AttributeModel, GradientModel, InputModel, OutputModel, ReferenceModel, NativeModel, NativeCodeModel]
HEAD = "op: foo\ndomain: tests\nversion: 1\ndoc: A test.\ntypes: {T: [float32]}\n"


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_every_key_stands_in_the_docs(model: type[BaseModel]) -> None:
    page = NATIVE if model in (NativeModel, NativeCodeModel) else LANGUAGE
    keys = set(model.model_fields) - {"mode"}
    named = {key for code in re.findall(r"`([^`\n]+)`", page) for key in re.findall(r"[a-z_]+", code)}
    assert keys <= named, f"{sorted(keys - named)} stand in no page"


def test_every_model_of_the_schema_is_looked_at() -> None:
    assert set(schema()["$defs"]) <= {m.__name__ for m in MODELS}


def test_the_tables_of_keys_are_complete() -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \|", LANGUAGE, re.MULTILINE)
    assert set(SpecModel.model_fields) | set(AttributeModel.model_fields) - {"type"} <= set(rows)


def test_the_page_reads_in_half_an_hour() -> None:
    """At 250 words a minute, code apart: what a writer of specs needs rarely has a page of its own."""
    words = re.sub(r"```.*?```", "", LANGUAGE, flags=re.DOTALL).split()
    assert len(words) <= 7_500


CONDITIONS = LANGUAGE.split("| the term of")[1].split("\n\n")[0].splitlines()[2:]
SUM_ROWS = [(re.findall(r"`([^`]+)`", row.split("|")[1]), row.split("|")[2], row.split("|")[3]) for row in CONDITIONS]


def test_the_table_of_conditions_is_read() -> None:
    assert len(SUM_ROWS) == 8
    assert sum(len(terms) for terms, _, _ in SUM_ROWS) >= 10


RUNS = LANGUAGE.split("| `y[k]` | runs as")[1].split("\n\n")[0].splitlines()[2:]
RUN_ROWS = [(term, row.split("|")[2], row.split("|")[3]) for row in RUNS for term in re.findall(r"`([^`]+)`", row.split("|")[1])]


def test_the_table_of_runs_is_read() -> None:
    assert len(RUN_ROWS) == 3


@pytest.mark.parametrize(("value", "form", "time"), RUN_ROWS, ids=[row[0] for row in RUN_ROWS])
def test_how_runs_are_gone_through(value: str, form: str, time: str) -> None:
    text = (
        f"{HEAD}inputs: {{w: 'T[N]', begins: 'int64[N]', ends: 'int64[N]'}}\nrequire: [N > 0]\noutputs: {{y: 'T[K]'}}\n"
        "attributes: {count: {type: int, check: count > 0}}\nshape: {K: count}\n"
    )
    if "[k]" in value:
        text = (
            text.replace("'int64[N]'", "'int64[K]'").replace("shape: {K: count}\n", "").replace("count: {type", "unused: {type")
        )
        text = text.replace("check: count", "check: unused")
    op = compile_text(f"{text}kernel: |\n  y[k] = {value}\n", "foo").forward
    loops = "".join(format_variant(v, loops=True) for v in cpu_programs(op))
    assert ("schedule: scatter(run of k)" in loops) == ("scatter" in form), loops
    assert "clip_to(" in loops
    assert ("0 .. N:" in loops) == ("scatter" in form), loops
    assert "K" not in time


@pytest.mark.parametrize(("terms", "form", "time"), SUM_ROWS, ids=[row[0][0] for row in SUM_ROWS])
def test_which_conditions_become_scatters(terms: list[str], form: str, time: str) -> None:
    two = any(term.startswith("y[") for term in terms)
    target = "y[k, j]" if two else "y[k]"
    for term in [t for t in terms if " " in t and not t.startswith("y[")]:
        value = term if re.match(r"[a-z]+\[n\]\(", term) else f"sum[n]({term})"
        of = "bool" if value.startswith("any") else "T"
        c = "'c?'" if "present(c)" in term else "c"
        text = (
            f"{HEAD}inputs: {{w: 'T[N]', {c}: 'int64[N]', d: 'int64[N]'}}\n"
            "attributes: {count: {type: int, check: count > 0}}\n"
            f"shape: {{K: count, J: count}}\noutputs: {{y: '{of}[{'K, J' if two else 'K'}]'}}\nkernel: |\n  {target} = {value}\n"
        )
        loops = "".join(format_variant(v, loops=True) for v in lower(compile_text(text, "foo").forward))
        scatters = "schedule: scatter(k" in loops
        assert scatters == ("scatter" in form), loops
        assert ("vector for k in" in loops) == (not scatters), loops
        # The terms one by one, or in rows of them.
        assert "for n in 0 .. N:" in loops or "for start in 0 .. N by" in loops
        assert ("K" in time) == (not scatters)
