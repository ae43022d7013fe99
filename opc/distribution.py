"""The name that opc has on package indexes, and the lines that install what is missing.

The command and the module are `opc`; the distribution of that name is another project's.
"""

from __future__ import annotations

NAME = "opc-compiler"


def install(*packages: str) -> str:
    """Return the line that installs distributions."""
    return f"pip install {' '.join(packages)}"


def install_extra(extra: str) -> str:
    """Return the line that installs opc with an extra of its pyproject.toml, whose versions opc is tested with."""
    # In quotes: shells such as zsh read brackets as a pattern.
    return install(f'"{NAME}[{extra}]"')
