"""How long answers take: `python -m tests.editor.answers` asks about all specs and prints the table of docs/editor.md.

Times are those of the processor in the server, and those that the client sees from its question to the answer.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from lsprotocol import types as lsp

from opc.editor.occurrences import Kind, outline
from tests.editor.client import Editor, editor

SPECS = sorted((Path(__file__).parents[2] / "specs").rglob("*.yaml"))
PER_SPEC = 8
"""How many places of a spec are asked about."""
QUESTIONS = {
    "diagnostics": "diagnostics of a spec and its body",
    "hover": "hover",
    "completion": "completion",
    "definition": "definition",
    "references": "references",
    "semantic_tokens_full": "colours",
    "rename": "rename, checked",
    "code_action": "quick fixes, tried",
    "formatting": "formatting",
}


def ask(ed: Editor, path: Path) -> None:
    """Ask everything about a spec, then make a mistake in its body, and ask how to mend it."""
    uri = ed.open(path)
    ed.diagnostics(uri, times=2)
    text = ed.texts[uri]
    names = outline(text)
    places = [o for o in names.occurrences if o.kind is not Kind.UNKNOWN]
    for o in places[:: max(len(places) // PER_SPEC, 1)]:
        ed.hover(uri, o.start)
        ed.complete(uri, o.start)
        ed.ask("definition", uri, o.start)
        ed.ask("references", uri, o.start, context=lsp.ReferenceContext(include_declaration=True))
    ed.ask("semantic_tokens_full", uri)
    first = next(o for o in places if o.kind in (Kind.INPUT, Kind.OUTPUT))  # some ops have no input
    ed.ask("rename", uri, first.start, new_name="renamed_input")
    ed.ask("formatting", uri, options=lsp.FormattingOptions(2, True))
    called = next((o for o in places if o.kind in (Kind.FUNCTION, Kind.REDUCTION)), None)
    if called is not None and "kernel" in names.bodies:
        ed.type(uri, text[: called.end] + called.name[-1] + text[called.end :])
        for mistake in ed.diagnostics(uri)[:1]:
            ed.ask("code_action", uri, range=mistake.range, context=lsp.CodeActionContext([mistake]))
    ed.close(uri)


def table(times: list[tuple[str, float, float]]) -> str:
    """Return the table: of each question the answers, and of their times the median and the longest."""
    rows = ["| question | answers | processor: median, longest | from question to answer: median, longest |", "|---|---|---|---|"]
    for what, title in QUESTIONS.items():
        waited, worked = ([1e3 * row[i] for row in times if row[0] == what] for i in (1, 2))
        shown = (f"{statistics.median(took):.0f} ms, {max(took):.0f} ms" for took in (worked, waited))
        rows.append(f"| {title} | {len(waited)} | {' | '.join(shown)} |")
    return "\n".join(rows)


def main() -> None:
    """Print the table."""
    with editor() as ed:
        ask(ed, SPECS[0])
        ed.times.clear()
        for path in SPECS:
            ask(ed, path)
        print(table(ed.times))


if __name__ == "__main__":
    main()
