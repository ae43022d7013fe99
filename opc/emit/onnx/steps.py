"""Recurrences in standard ONNX operators: a `Scan` over the steps, which carries along what they read of the steps before."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from opc.emit.arrays.boxes import Boxes
from opc.emit.arrays.frames import PythonText
from opc.emit.onnx.sizes import BUILDER
from opc.emit.onnx.windows import OnnxWindows
from opc.ir.dtypes import is_bool
from opc.ir.expr import Const
from opc.ir.op import Group, Op, Operand
from opc.transform.carried import with_carried_values
from opc.transform.steps import Segment, SegmentedOp, Steps, in_segments


class OnnxSteps(OnnxWindows):
    """The part of the ONNX emitter that writes loops over steps."""

    def __init__(self, op: Op, reserved: Sequence[str]) -> None:
        self.carried: Mapping[str, tuple[str, ...]] = {}
        self.behind: Mapping[str, str] = {}
        self.step_names: dict[str, str] = {}
        super().__init__(op, reserved)

    @abstractmethod
    def constant(self, e: Const) -> PythonText:
        """A literal."""

    def segments(self, op: Op) -> SegmentedOp:
        """As `ArrayEmitter.segments` says."""
        found = with_carried_values(in_segments(op))
        self.carried, self.behind = found.carried, found.behind
        return found.segmented

    def dim(self, name: str) -> str:
        """As `OnnxSizes.dim` says; which step is the present one is a size of the loop."""
        return self.step_names[name] if name in self.step_names else super().dim(name)

    def step(self, segment: Segment, steps: Steps) -> None:
        """Write a Scan over the steps of a recurrence."""
        index, made = self.names.fresh(steps.index), self.names.fresh()
        self.step_names[steps.index] = index
        parts = [self.operands[part] for part, _ in steps.parts]
        whole = [self.operands[name] for _, name in steps.parts]
        behind = [self.operands[self.behind[part.name]] for part in parts if part.name in self.behind]
        some = self.boxes.is_never_empty(steps.extent, {})

        def written() -> PythonText:
            extent = self.named(PythonText(self.size(steps.extent))).text
            starting = [*(part for part in parts if self.carried[part.name]), *behind]
            starts = {o.name: self.named(self.nothing(o)).text for o in starting}
            flat = {o.name: self.named(PythonText(self.shape(o.dims))).text for o in (*parts, *behind) if _is_flat(o)}
            shapes = [self.named(PythonText(self.shape(o.dims))).text if _is_flat(o) else "None" for o in whole]
            empty = [] if some else [self.named(self.nothing(o)).text for o in whole]
            given = [(self.local[n], part) for part in parts for n in self.carried[part.name]]
            given += [(self.local[o.name], o) for o in behind]
            # That there is a present step is known inside alone.
            outer, self.boxes = self.boxes, Boxes(segment.op)
            inside, _ = self.capture(lambda: self.one_step(segment, parts, made, index))
            self.boxes = outer
            self.line(f"with {BUILDER}.steps() as {made}:")
            self.line(f"    {index} = {made}.index")
            for name, o in given:
                start = starts[o.name]
                carried = f"{made}.carry({f'{BUILDER}.flat({start})' if o.name in flat else start})"
                value = f"{BUILDER}.reshape({carried}, {flat[o.name]})" if o.name in flat else carried
                self.line(f"    {name} = {value}")
            self.lines += [f"    {line}" for line in inside]
            results = ", ".join(self.local[o.name] for o in whole)
            more = "" if some else f", empty=[{', '.join(empty)}]"
            more += f", shapes=[{', '.join(shapes)}]" if flat else ""
            self.line(f"[{results}] = {BUILDER}.scan({made}, {extent}, {steps.falls}{more})")
            return PythonText(index)

        lines, _ = self.capture(written)
        self.put(lines, self.asked_for(steps.parts[0][0]))

    def one_step(self, segment: Segment, parts: list[Operand], made: str, index: str) -> PythonText:
        """Write the statements of one step, and what it hands on."""
        for s in segment.op.body:
            self.line(f"{self.local[s.target]} = {self.statement(s).text}")
            if s.target in self.behind:
                # What stands below may read this step with those behind it.
                whole = self.behind[s.target]
                put = PythonText(f"{BUILDER}.put({self.local[whole]}, {index}, {self.local[s.target]})")
                self.local[whole] = self.named(put).text
        handed = [(n, part) for part in parts for n in (part.name, *self.carried[part.name])[: len(self.carried[part.name])]]
        outs = [self.out(self.local[n], part) for n, part in handed]
        behind = [self.operands[self.behind[part.name]] for part in parts if part.name in self.behind]
        outs += [self.out(self.local[o.name], o) for o in behind]
        self.line(f"{made}.handed = [{', '.join(outs)}]")
        self.line(f"{made}.results = [{', '.join(self.out(self.local[part.name], part) for part in parts)}]")
        return PythonText(made)

    def out(self, text: str, part: Operand) -> str:
        """Return a value of a step as it leaves the step."""
        return f"{BUILDER}.flat({text})" if _is_flat(part) else text

    def nothing(self, o: Operand) -> PythonText:
        """Return zeros of an operand's shape."""
        zero = self.constant(Const(False if is_bool(o.type) else 0, o.type))
        return PythonText(f"{BUILDER}.Expand({zero.text}, {self.shape(o.dims)})" if o.dims else zero.text)


def _is_flat(o: Operand) -> bool:
    """Whether a value leaves a step as a vector: ONNX Runtime must know the rank, which a group of axes does not tell."""
    return any(isinstance(d, Group) for d in o.dims)
