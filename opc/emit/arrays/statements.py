"""Statements of an array program that only optional outputs need: they are under the condition that one of these is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opc.emit.arrays.reductions import ReducingEmitter
from opc.emit.python.text import WIDTH, quoted
from opc.ir.op import Op


class StatementEmitter(ReducingEmitter):
    """Puts statements under conditions; those that follow one another under the same one stand in one block."""

    def __init__(self, op: Op, taken: Sequence[str]) -> None:
        super().__init__(op, taken)
        self.block, self.block_start = ("", 0), 0

    def asked_for(self, target: str) -> str:
        """Return the condition under which a statement is needed; empty where it always is."""
        needed = self.needs[target]
        optional = [o.name for o in self.op.outputs if o.optional]
        if not needed <= set(optional) or needed == {o.name for o in self.op.outputs}:
            return ""
        return " or ".join(f"{quoted(n)} in wanted" for n in optional if n in needed)

    def put(self, lines: Iterable[str], condition: str, result: str | None = None) -> None:
        """Write the lines of a statement under a condition, without which its `result`, where one is named, is None."""
        if condition == "":
            self.lines += lines
            return
        if self.block != (condition, len(self.lines)):
            self.block_start = len(self.lines)
            self.line(f"if {condition}:")
        if result is not None:
            self.lines.insert(self.block_start, f"{result} = None")
            self.block_start += 1
        self.lines += [f"    {line}" for line in lines]
        self.block = (condition, len(self.lines))

    def returned(self, values: Sequence[str]) -> str:
        """Return the return statement of a function: always of a tuple."""
        one = f"return ({values[0]},)" if len(values) == 1 else f"return {', '.join(values)}"
        return one if len(one) + 4 <= WIDTH else "\n".join(["return (", *(f"        {v}," for v in values), "    )"])
