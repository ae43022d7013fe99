"""`opc lsp`."""

from __future__ import annotations

from opc.cli.console import OK, need


def lsp() -> int:
    """Answer an editor over stdin and stdout by the Language Server Protocol."""
    need("opc lsp", "lsp", "pygls", "ruamel.yaml")
    from opc.editor.server import make_server

    make_server().start_io()
    return OK
