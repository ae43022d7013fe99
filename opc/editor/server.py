"""The language server: what an editor asks over the Language Server Protocol 3.17, answered from the modules beside this one.

The protocol is pygls's. A change of a text is checked beside the answers: first what is quick, all but the derivatives, and
these once nothing has been typed for a moment. Every other answer comes from the text as it is and what was last found.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.workspace import ServerTextPosition, ServerTextRange, TextDocument

from opc import __version__
from opc.diagnostics import Diagnostic, Severity, Span, SpecError
from opc.editor.checks import Checked, check, rule
from opc.editor.colours import LEGEND, tokens
from opc.editor.completion import complete
from opc.editor.fixes import fixes
from opc.editor.hover import hover
from opc.editor.layout import laid_out
from opc.editor.occurrences import Kind, Outline, outline
from opc.editor.renaming import CannotRename, renamable, renamed
from opc.records import dataclass
from opc.spec.loader import loads

QUIET = 0.3
"""Seconds without a change after which derivatives are checked."""
PATIENCE = 0.05
"""Seconds that an answer waits for the check of the newest text; without it, it is made of the last one."""

_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.NOTE: lsp.DiagnosticSeverity.Information,
}
_ITEMS = {
    "key": lsp.CompletionItemKind.Property,
    "value": lsp.CompletionItemKind.Value,
    Kind.INPUT.value: lsp.CompletionItemKind.Variable,
    Kind.OUTPUT.value: lsp.CompletionItemKind.Variable,
    Kind.TEMPORARY.value: lsp.CompletionItemKind.Variable,
    Kind.INDEX.value: lsp.CompletionItemKind.Variable,
    Kind.ATTRIBUTE.value: lsp.CompletionItemKind.Field,
    Kind.DIMENSION.value: lsp.CompletionItemKind.Constant,
    Kind.GROUP.value: lsp.CompletionItemKind.Constant,
    Kind.CONSTANT.value: lsp.CompletionItemKind.Constant,
    Kind.TYPE.value: lsp.CompletionItemKind.TypeParameter,
    Kind.DTYPE.value: lsp.CompletionItemKind.TypeParameter,
    Kind.FUNCTION.value: lsp.CompletionItemKind.Function,
    Kind.REDUCTION.value: lsp.CompletionItemKind.Function,
    Kind.FORM.value: lsp.CompletionItemKind.Function,
    Kind.WORD.value: lsp.CompletionItemKind.Keyword,
}


@dataclass(slots=True)
class _Open:
    """An open spec: the text that `names` and the work in `checking` are of, and what was last found in it."""

    text: str
    names: Outline
    checked: Checked = field(default_factory=lambda: Checked(()))
    checking: asyncio.Future[Checked] | None = None
    deriving: asyncio.Task[None] | None = None


class OpcServer(LanguageServer):
    """A language server for specs, with the open ones by their URI."""

    def __init__(self) -> None:
        super().__init__("opc", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self.open: dict[str, _Open] = {}
        # Two threads, so that what is quick does not wait for derivatives of an earlier text.
        self.worker = ThreadPoolExecutor(2, "check")

    # Places.

    def document(self, uri: str) -> TextDocument:
        """Return an open document."""
        return self.workspace.get_text_document(uri)

    def offset(self, uri: str, position: lsp.Position) -> int:
        """Return the character of a position."""
        return int(self.document(uri).offset_at_position(position))

    def range(self, uri: str, start: int, end: int) -> lsp.Range:
        """Return the range of some characters."""
        document = self.document(uri)
        first, last = (document.server_position_at_offset(at) for at in (start, end))
        return document.range_to_client_units(ServerTextRange(first, last))

    def range_of(self, uri: str, span: Span) -> lsp.Range:
        """Return the range of a place that a diagnostic names; the file's first character for none."""
        document = self.document(uri)
        ends = (span.line, span.column), (span.end_line, span.end_column)
        start, end = (ServerTextPosition(max(line - 1, 0), max(column - 1, 0)) for line, column in ends)
        return document.range_to_client_units(ServerTextRange(start, end))

    # Checks.

    def changed(self, uri: str) -> None:
        """Take note of a new text, and have it checked."""
        text = self.document(uri).source
        spec = self.open.get(uri)
        if spec is None:
            spec = self.open[uri] = _Open(text, outline(text))
        else:
            spec.text, spec.names = text, outline(text)
        if spec.deriving is not None:
            spec.deriving.cancel()
        if spec.checking is not None:  # of an earlier text, which need not begin any more
            spec.checking.cancel()
        read = partial(loads, text, _name(uri), whole=False)
        loop = asyncio.get_running_loop()
        spec.checking = loop.run_in_executor(self.worker, partial(check, read, derive=False))
        spec.deriving = loop.create_task(self._check(uri, spec, text))

    async def _check(self, uri: str, spec: _Open, text: str) -> None:
        assert spec.checking is not None
        found = await asyncio.shield(spec.checking)
        # What was derived of an earlier text is shown until this one's is there.
        spec.checked = Checked(found.diagnostics, found.spec, found.op, spec.checked.family)
        self.publish(uri, found)
        if found.op is None:
            return
        await asyncio.sleep(QUIET)
        read = partial(loads, text, _name(uri), whole=False)
        whole = await asyncio.get_running_loop().run_in_executor(self.worker, partial(check, read))
        spec.checked = whole
        self.publish(uri, whole)

    def publish(self, uri: str, checked: Checked) -> None:
        """Show what was found in a spec."""
        items = [
            lsp.Diagnostic(
                range=self.range_of(uri, d.span),
                severity=_SEVERITIES[d.severity],
                code=rule(d),
                source="opc",
                message=d.message + (f"\nhint: {d.hint}" if d.hint else ""),
                related_information=[
                    lsp.DiagnosticRelatedInformation(lsp.Location(uri, self.range_of(uri, n.span)), n.message)
                    for n in d.notes
                    if n.span.source is not None
                ],
            )
            for d in checked.diagnostics
        ]
        version = self.document(uri).version
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri=uri, diagnostics=items, version=version))

    async def latest(self, uri: str) -> _Open:
        """Return an open spec, with the check of its newest text where that is there in time."""
        if uri not in self.open:
            self.changed(uri)
        spec = self.open[uri]
        if spec.checking is not None and not spec.checking.done():
            await asyncio.wait({spec.checking}, timeout=PATIENCE)
        if spec.checking is not None and spec.checking.done() and spec.checked.spec is None:
            found = spec.checking.result()
            spec.checked = Checked(found.diagnostics, found.spec, found.op, spec.checked.family)
        return spec

    async def work(self, job: Any) -> Any:
        """Return what a job of the worker gives."""
        return await asyncio.get_running_loop().run_in_executor(self.worker, job)


def _name(uri: str) -> str:
    from pygls.uris import to_fs_path

    return Path(to_fs_path(uri) or uri).name


def make_server() -> OpcServer:
    """Return a server that has not started."""
    # An answer waits no longer than this for a check in another thread.
    sys.setswitchinterval(0.001)
    server = OpcServer()
    _register_texts(server)
    _register_names(server)
    _register_edits(server)
    return server


def _register_texts(server: OpcServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def opened(ls: OpcServer, params: lsp.DidOpenTextDocumentParams) -> None:
        ls.changed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(ls: OpcServer, params: lsp.DidChangeTextDocumentParams) -> None:
        ls.changed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(ls: OpcServer, params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        spec = ls.open.pop(uri, None)
        if spec is not None and spec.deriving is not None:
            spec.deriving.cancel()
        ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri=uri, diagnostics=[]))


def _register_names(server: OpcServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def on_hover(ls: OpcServer, params: lsp.HoverParams) -> lsp.Hover | None:
        uri = params.text_document.uri
        spec = await ls.latest(uri)
        found = hover(spec.text, ls.offset(uri, params.position), spec.names, spec.checked)
        if found is None:
            return None
        about, start, end = found
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, about), ls.range(uri, start, end))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    async def on_definition(ls: OpcServer, params: lsp.DefinitionParams) -> lsp.Location | None:
        uri = params.text_document.uri
        names = (await ls.latest(uri)).names
        found = names.at(ls.offset(uri, params.position))
        place = names.declaration(found) if found else None
        return lsp.Location(uri, ls.range(uri, place.start, place.end)) if place else None

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    async def on_references(ls: OpcServer, params: lsp.ReferenceParams) -> list[lsp.Location]:
        uri = params.text_document.uri
        names = (await ls.latest(uri)).names
        found = names.at(ls.offset(uri, params.position))
        places = [o for o in names.same(found) if params.context.include_declaration or not o.declares] if found else []
        return [lsp.Location(uri, ls.range(uri, o.start, o.end)) for o in places]

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["[", "(", " ", "{"]))
    async def on_completion(ls: OpcServer, params: lsp.CompletionParams) -> lsp.CompletionList:
        uri = params.text_document.uri
        spec = await ls.latest(uri)
        found = complete(spec.text, ls.offset(uri, params.position))
        items = [
            lsp.CompletionItem(
                label=p.text,
                kind=_ITEMS[p.what],
                detail=p.what,
                documentation=lsp.MarkupContent(lsp.MarkupKind.Markdown, p.about) if p.about else None,
                insert_text=f"{p.text}: " if p.what == "key" else None,
            )
            for p in found
        ]
        return lsp.CompletionList(is_incomplete=False, items=items)

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, LEGEND)
    async def on_tokens(ls: OpcServer, params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        uri = params.text_document.uri
        spec = await ls.latest(uri)
        data: list[int] = []
        line = column = 0
        for start, end, kind in tokens(spec.text, spec.names):
            place = ls.range(uri, start, end)
            here, width = place.start, place.end.character - place.start.character
            data += [here.line - line, here.character - (column if here.line == line else 0), width, kind, 0]
            line, column = here.line, here.character
        return lsp.SemanticTokens(data)


def _register_edits(server: OpcServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    async def on_prepare(ls: OpcServer, params: lsp.PrepareRenameParams) -> lsp.Range | None:
        uri = params.text_document.uri
        spec = await ls.latest(uri)
        try:
            found = renamable(spec.names, ls.offset(uri, params.position))
        except CannotRename:
            return None
        return ls.range(uri, found.start, found.end)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    async def on_rename(ls: OpcServer, params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        uri = params.text_document.uri
        spec = await ls.latest(uri)
        try:
            at = ls.offset(uri, params.position)
            places = await ls.work(partial(renamed, spec.text, spec.names, at, params.new_name, spec.checked.is_good))
        except CannotRename as error:
            raise JsonRpcInvalidParams(str(error)) from None
        edits = [lsp.TextEdit(ls.range(uri, o.start, o.end), params.new_name) for o in places]
        return lsp.WorkspaceEdit(changes={uri: edits})

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix]))
    async def on_code_action(ls: OpcServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        checked = (await ls.latest(uri)).checked
        touched = [(d, ls.range_of(uri, d.span)) for d in checked.diagnostics if d.span.source is not None]
        touched = [(d, r) for d, r in touched if _overlap(r, params.range)]
        found: list[lsp.CodeAction] = []
        for diagnostic, _ in touched:
            for fix in await ls.work(partial(fixes, diagnostic, checked)):
                edit = lsp.TextEdit(ls.range(uri, fix.start, fix.end), fix.new)
                found.append(
                    lsp.CodeAction(
                        title=fix.title,
                        kind=lsp.CodeActionKind.QuickFix,
                        diagnostics=_shown(params.context.diagnostics, diagnostic),
                        edit=lsp.WorkspaceEdit(changes={uri: [edit]}),
                    )
                )
        return found

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    async def on_formatting(ls: OpcServer, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        uri = params.text_document.uri
        spec = await ls.latest(uri)
        try:
            made = await ls.work(partial(laid_out, spec.text, _name(uri)))
        except SpecError as error:
            message = error.diagnostics[0].message
            ls.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, message))
            return []
        return [] if made == spec.text else [lsp.TextEdit(ls.range(uri, 0, len(spec.text)), made)]


def _overlap(one: lsp.Range, other: lsp.Range) -> bool:
    def key(p: lsp.Position) -> tuple[int, int]:
        return p.line, p.character

    return key(one.start) <= key(other.end) and key(other.start) <= key(one.end)


def _shown(diagnostics: Sequence[lsp.Diagnostic], diagnostic: Diagnostic) -> list[lsp.Diagnostic]:
    return [d for d in diagnostics if d.message.split("\nhint: ")[0] == diagnostic.message]
