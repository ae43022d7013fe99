"""An editor without a screen: pygls's own client, which talks to `opc lsp` over stdin and stdout, and times each answer.

Times are those from the question to the answer, and those of the processor in the server, which do not depend on what else runs.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

TIMEOUT = 60


class Editor:
    """Open specs in a running server. Places in a text are its characters."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.client = LanguageClient("opc-tests", "1")
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.shown: dict[str, list[tuple[int | None, list[lsp.Diagnostic]]]] = {}
        self.last = 0
        self.messages: list[str] = []
        self.times: list[tuple[str, float, float]] = []

        def published(params: lsp.PublishDiagnosticsParams) -> None:
            self.shown.setdefault(params.uri, []).append((params.version, list(params.diagnostics)))

        self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(published)
        self.client.feature(lsp.WINDOW_SHOW_MESSAGE)(lambda params: self.messages.append(params.message))

    def run(self, answer: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(answer, TIMEOUT))

    def start(self) -> lsp.InitializeResult:
        self.run(self.client.start_io(sys.executable, "-m", "opc", "lsp"))
        result: lsp.InitializeResult = self.run(
            self.client.initialize_async(lsp.InitializeParams(capabilities=lsp.ClientCapabilities(), process_id=None))
        )
        self.client.initialized(lsp.InitializedParams())
        return result

    def stop(self) -> None:
        self.run(self.client.shutdown_async(None))
        self.client.exit(None)
        self.run(self.client.stop())
        self.loop.close()

    def worked(self) -> float:
        """Return the seconds of a processor that the server has taken, as Linux counts them."""
        process = self.client._server
        tasks = Path(f"/proc/{process.pid}/task").glob("*/schedstat") if process is not None else ()
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def open(self, path: Path, text: str | None = None) -> str:
        uri = path.absolute().as_uri()
        text = path.read_text() if text is None else text
        # No two texts have the same version, so that what is shown late of an earlier one is told apart.
        self.last += 1
        self.texts[uri], self.versions[uri] = text, self.last
        document = lsp.TextDocumentItem(uri, "yaml", self.last, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(document))
        return uri

    def type(self, uri: str, text: str) -> None:
        self.last += 1
        self.versions[uri] = self.last
        self.texts[uri] = text
        version = lsp.VersionedTextDocumentIdentifier(self.versions[uri], uri)
        whole = lsp.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(version, [whole]))

    def close(self, uri: str) -> None:
        self.client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri)))

    def diagnostics(self, uri: str, times: int = 1) -> list[lsp.Diagnostic]:
        """Return what is shown of the newest text, once that was told so many times."""

        async def told() -> list[lsp.Diagnostic]:
            start, before = time.perf_counter(), self.worked()
            while len(found := [d for v, d in self.shown.get(uri, []) if v == self.versions[uri]]) < times:
                await asyncio.sleep(0.002)
            if times == 1:
                self.times.append(("diagnostics", time.perf_counter() - start, self.worked() - before))
            return found[-1]

        result: list[lsp.Diagnostic] = self.run(told())
        return result

    def position(self, uri: str, at: int | str) -> lsp.Position:
        """Return the position of a character, or of a text in which a `|` marks the character; in UTF-16 units, as LSP has it."""
        text = self.texts[uri]
        if isinstance(at, str):
            bare = at.replace("|", "", 1)
            assert text.count(bare) >= 1, bare
            at = text.index(bare) + max(at.find("|"), 0)
        before = text[:at].split("\n")
        return lsp.Position(len(before) - 1, len(before[-1].encode("utf-16-le")) // 2)

    def offset(self, uri: str, position: lsp.Position) -> int:
        lines = self.texts[uri].split("\n")
        units = lines[position.line].encode("utf-16-le")[: 2 * position.character]
        return sum(len(line) + 1 for line in lines[: position.line]) + len(units.decode("utf-16-le"))

    def slice(self, uri: str, place: lsp.Range) -> str:
        return self.texts[uri][self.offset(uri, place.start) : self.offset(uri, place.end)]

    def edited(self, uri: str, edits: list[lsp.TextEdit]) -> str:
        text = self.texts[uri]
        for edit in sorted(edits, key=lambda e: self.offset(uri, e.range.start), reverse=True):
            text = text[: self.offset(uri, edit.range.start)] + edit.new_text + text[self.offset(uri, edit.range.end) :]
        return text

    def ask(self, what: str, uri: str, at: int | str | None = None, **more: Any) -> Any:
        """Ask for something at a place by the name of the client's method, such as `hover`."""
        kinds = {
            "hover": lsp.HoverParams, "definition": lsp.DefinitionParams, "references": lsp.ReferenceParams,
            "completion": lsp.CompletionParams, "prepare_rename": lsp.PrepareRenameParams, "rename": lsp.RenameParams,
            "semantic_tokens_full": lsp.SemanticTokensParams, "formatting": lsp.DocumentFormattingParams,
            "code_action": lsp.CodeActionParams,
        }  # fmt: skip
        if at is not None:
            more["position"] = self.position(uri, at)
        params = kinds[what](text_document=lsp.TextDocumentIdentifier(uri), **more)
        start, before = time.perf_counter(), self.worked()
        result = self.run(getattr(self.client, f"text_document_{what}_async")(params))
        self.times.append((what, time.perf_counter() - start, self.worked() - before))
        return result

    def hover(self, uri: str, at: int | str) -> str:
        found = self.ask("hover", uri, at)
        return found.contents.value if found else ""

    def complete(self, uri: str, at: int | str) -> list[str]:
        return [item.label for item in self.ask("completion", uri, at).items]


@contextmanager
def editor() -> Iterator[Editor]:
    """Yield an editor whose server runs."""
    made = Editor()
    made.start()
    try:
        yield made
    finally:
        made.stop()
