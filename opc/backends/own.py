"""Names that generated code has beside those of an op, spelled so that neither hides the other."""

from __future__ import annotations

from opc.ir.op import Op


class Own(dict[str, str]):
    """By name, how generated code spells it beside an op's operands and attributes.

    No name of a spec begins with `opc`.
    """

    def __init__(self, op: Op) -> None:
        """Take the names of an op's inputs and attributes."""
        super().__init__()
        self._taken = {*(x.name for x in op.inputs), *(a.name for a in op.attributes)}

    def __missing__(self, name: str) -> str:
        """Return the name, or another where the op has it."""
        return f"opc_{name}" if name in self._taken else name


__all__ = ["Own"]
