"""The C++ op for boards on the emulation of RKNN's runtime, on this machine and for aarch64; and its refusals."""

import ctypes
import platform
from pathlib import Path

import numpy as np
import pytest

from opc.backends.base import OpError, Unsupported
from opc.backends.rknn import board
from opc.backends.rknn.board import MACHINE, Board
from opc.backends.rknn.graph import AcceptedCall, make_call
from opc.ir.dtypes import DType
from opc.pipeline import load_family
from opc.testing.oracle.evaluation import evaluate
from opc.testing.oracle.tolerance import compare

OP = load_family(Path(__file__).parents[3] / "specs" / "dual_residual.yaml").forward


def call(alpha: float = 0.5) -> AcceptedCall:
    x = np.linspace(-3, 5, 60, dtype=np.float32).reshape(3, 4, 5)
    return make_call(OP, {"x": x, "y": x[::-1]}, {"alpha": alpha})


@pytest.mark.parametrize("machine", sorted({platform.machine(), MACHINE}))
def test_right_on_the_emulation(machine: str, package: Path) -> None:
    calls = [call(), call(2.0)]
    try:
        answers = Board(package, machine).run(calls)
    except Unsupported as reason:
        pytest.skip(str(reason))
    for made, answer in zip(calls, answers, strict=True):
        assert isinstance(answer, dict)
        want = evaluate(OP, dict(made.feeds), dict(made.attributes))
        for name, got in answer.items():
            assert compare(name, got, want[name]).ok


def test_a_refused_call_tells_why(package: Path) -> None:
    good = call()
    bad = AcceptedCall(OP, {**good.feeds, "y": good.feeds["y"][:2]}, good.attributes, good.outputs)
    wrong = AcceptedCall(OP, good.feeds, good.attributes, {**good.outputs, "v": (DType.FLOAT32, (3, 4))})
    untyped = AcceptedCall(OP, good.feeds, {"alpha": "text"}, good.outputs)
    for refused, why in ((bad, "but"), (wrong, "output 1 has another size"), (untyped, "attribute 'alpha' has another type")):
        (answer,) = Board(package, platform.machine()).run([refused])
        assert isinstance(answer, OpError)
        assert str(answer).startswith("dual_residual: ")
        assert why in str(answer)


def test_the_library_is_a_plugin(package: Path) -> None:
    place = package / f"build/rknn/{platform.machine()}/libdual_residual_rknn.so"
    library = ctypes.CDLL(str(place), mode=1)  # lazily: what it calls of the runtime is not here
    library.get_rknn_custom_op.restype = ctypes.c_void_p
    description = library.get_rknn_custom_op()
    version, target = (ctypes.c_uint32 * 2).from_address(description)
    assert (version, target) == (1, 1)
    assert ctypes.string_at(description + 8) == b"cstDualResidual"


def test_without_a_cross_compiler_there_is_only_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(board, "cross_compiler", lambda: ())
    assert board.machines() == (platform.machine(),)
    with pytest.raises(Unsupported, match="apt install"):
        Board(tmp_path, "riscv64").run([call()])
