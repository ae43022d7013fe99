"""The verifier of programs for Poplar: every value and tensor is defined before it is read, and each output is written."""

from __future__ import annotations

from opc.ir.expr import Expr, GroupIndex, GroupRef, IndexValue, Read, walk
from opc.ir.expr import Reduce as Reduction
from opc.ir.op import Op
from opc.lower.poplar.nodes import Case, Codelet, Convolution, Picked, PoplarProgram, Product, Refuse, Step, Store, TensorStage


def verify_program(op: Op, program: PoplarProgram) -> None:
    """Check the program of an op.

    Raises:
        AssertionError: when it is not well formed; the message says where.
    """
    for case in program.cases:
        _case(op, case)


def _case(op: Op, case: Case) -> None:
    known = {o.name for o in op.inputs}
    made = {t.name for t in case.tensors}
    for stage in case.stages:
        if isinstance(stage, Codelet):
            read = {o.name for o in stage.stage.operands}
            assert read <= known, f"{stage.stage.name} reads {sorted(read - known)} before they are made"
            known |= {stage.stage.target.name} if stage.total is None else {stage.stage.target.name, stage.total}
        else:
            known |= _stage(stage, known, made)
    missing = {o.name for o in op.outputs} - known
    assert not missing, f"{op.name} never writes {sorted(missing)}"


def _stage(stage: TensorStage, known: set[str], made: set[str]) -> set[str]:
    """Check a stage where some tensors are known; return what it writes."""
    values: set[str] = set()
    written: set[str] = set()
    for view in stage.views:
        assert view.tensor in known, f"{stage.name} views {view.tensor} before it is made"
        assert all(isinstance(a, Picked) or a.loop < len(stage.loops) for a in view.axes), (
            f"{stage.name}: {view.tensor} lies along no loop"
        )
        assert view.name not in values, f"{stage.name} defines {view.name} twice"
        values.add(view.name)
    numbered = {name for name, _ in stage.indices}
    for step in stage.steps:
        for e in _values(step):
            _value(stage, e, values, numbered)
        match step:
            case Refuse():
                pass
            case Convolution():
                read = {step.input, step.kernel}
                assert read <= known, f"{stage.name} reads {sorted(read - known)} before they are made"
                values.add(step.name)
            case Store():
                assert step.target.tensor in made, f"{stage.name} writes {step.target.tensor}, which is no tensor of the case"
                assert step.target.tensor not in written, f"{stage.name} writes {step.target.tensor} twice"
                written.add(step.target.tensor)
            case _:
                assert step.name not in values, f"{stage.name} defines {step.name} twice"
                values.add(step.name)
    return written


def _values(step: Step) -> tuple[Expr, ...]:
    match step:
        case Refuse():
            return ()
        case Convolution():
            return step.given
        case Product():
            return step.left, step.right, *step.given
        case _:
            return (step.value,)


def _value(stage: TensorStage, e: Expr, values: set[str], numbered: set[str]) -> None:
    for node in walk(e):
        match node:
            case Read():
                assert node.operand in values, f"{stage.name} reads {node.operand} before it is defined"
                assert not node.indices, f"{stage.name} reads {node.operand} at a point"
            case GroupIndex():
                assert str(GroupRef(node.group)) in numbered, f"{stage.name} has no number for {GroupRef(node.group)}"
            case IndexValue():
                assert node.value.indices() <= numbered, f"{stage.name} has no number for {node.value}"
            case Reduction():
                raise AssertionError(f"{stage.name} has a reduction inside of a value")
