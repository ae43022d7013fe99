"""`opc backends`: what is registered, what can be used, and how to get the rest."""

from __future__ import annotations

import json

from opc.cli_console import OK, say, show_diagnostics


def backends(as_json: bool) -> int:
    """List the registered backends with their frameworks' versions, or the line that installs them."""
    from opc.backends import registry

    usable, broken = registry.load_all()
    rows = [(b.name, b.title, b.probe()) for b in usable]
    if as_json:
        data = [
            {
                "name": name,
                "title": title,
                "available": probe.available,
                "version": probe.version,
                "reason": probe.reason,
                "install": probe.install,
            }
            for name, title, probe in rows
        ]
        data += [{"name": b.name, "title": b.name, "available": False, "reason": b.diagnostic.message} for b in broken]
        say(json.dumps(data, indent=2))
        return OK
    width = max((len(name) for name, _, _ in rows), default=0)
    titles = max((len(title) for _, title, _ in rows), default=0)
    for name, title, probe in rows:
        state = probe.version or "available" if probe.available else f"not available: {probe.reason}"
        say(f"{name:<{width}}  {title:<{titles}}  {state}")
        if not probe.available and probe.install:
            say(f"{'':<{width}}  install it: {probe.install}")
    show_diagnostics(b.diagnostic for b in broken)
    return OK
