"""Philox-4x32-10: every text of it against an evaluator of its own, and that one against the numbers that its authors publish."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opc
from opc.emit.numpy.reference import function_name, numpy_module
from opc.ir.functions import FUNCTIONS
from opc.ir.scalar_functions import _philox
from opc.pipeline import compile_text
from opc.testing.oracle.enclosures import numpy_function
from opc.testing.oracle.evaluation import evaluate
from opc.testing.oracle.tolerance import compare
from tests.backends.onnx.test_checks import load
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz.kernels import compile_together
from tests.fuzz.scalars import philox

INCLUDE = Path(opc.__file__).parent.parent / "runtime" / "include"

KNOWN = [
    ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ((2**32 - 1,) * 4, (2**32 - 1,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]
"""The authors' known answers (Random123, `kat_vectors`): a counter, a key, and the block."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The functions of the header: all four words of a block, and the first."""
    folder = tmp_path_factory.mktemp("philox")
    source, built = folder / "philox.cpp", folder / "philox.so"
    source.write_text(
        '#include "opc/core/philox.h"\nextern "C" void block(uint64_t *w, uint64_t k, uint64_t l) '
        "{ opc::philox_rounds(w[0], w[1], w[2], w[3], k, l); }\n"
        'extern "C" uint64_t first(uint64_t s, uint64_t i) { return opc::philox(s, i); }\n'
    )
    subprocess.run(["g++", "-std=c++17", "-O1", "-fPIC", "-shared", f"-I{INCLUDE}", str(source), "-o", str(built)], check=True)
    made = ctypes.CDLL(str(built))
    made.first.restype, made.first.argtypes = ctypes.c_uint64, [ctypes.c_uint64] * 2
    made.block.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64]
    return made


@pytest.mark.parametrize(("counter", "key", "block"), KNOWN)
def test_known_answers(library: ctypes.CDLL, counter: tuple[int, ...], key: tuple[int, int], block: str) -> None:
    words = np.array(counter, np.uint64)
    library.block(words.ctypes.data, *key)
    assert [f"{w:08x}" for w in words.tolist()] == block.split()
    assert [f"{w:08x}" for w in philox(counter, key)] == block.split()


def test_every_text_gives_the_first_word(library: ctypes.CDLL) -> None:
    rng = np.random.default_rng(3)
    numbers = [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, *rng.integers(0, 2**64, 20, np.uint64).tolist()]
    column = numpy_function(FUNCTIONS["philox"].numpy)
    for seed in numbers:
        for counter in numbers:
            word = philox((counter % 2**32, counter >> 32, 0, 0), (seed % 2**32, seed >> 32))[0]
            assert _philox(seed, counter) == word
            assert library.first(seed, counter) == word
            assert int(column(np.uint64(seed), np.uint64(counter))) == word


SPEC = """
op: drawn
domain: probe
version: 1
doc: Random numbers of a seed that is data, one that is an attribute, and counters of several kinds.
inputs: {seed: 'int64[]', i: 'int32[N]'}
attributes: {n: int}
outputs: {bits: 'uint32[N]', share: 'float32[N]', die: 'int64[N]'}
gradient: none
kernel: |
  bits[k] = random_bits(seed[], i[k])
  share[k] = random(n, 3 * k - 1)
  die[k] = 1 + cast(int64, random_bits(n, k) % 6)
"""


def test_kernels_references_and_functions_draw_the_same(tmp_path: Path) -> None:
    family = compile_text(SPEC, "drawn.yaml")
    inputs = {"seed": np.array(-7), "i": np.array([0, 1, -1, 2**31 - 1, -(2**31), 9, 10, 11, 12], np.int32)}
    n = 2**40 + 5

    def word(seed: int, counter: int) -> int:
        seed, counter = seed % 2**64, counter % 2**64
        return philox((counter % 2**32, counter >> 32, 0, 0), (seed % 2**32, seed >> 32))[0]

    want = {
        "bits": np.array([word(-7, i) for i in inputs["i"].tolist()], np.uint32),
        "share": np.array([(word(n, 3 * k - 1) >> 8) / 2**24 for k in range(9)], np.float32),
        "die": np.array([1 + word(n, k) % 6 for k in range(9)]),
    }
    module: dict[str, Any] = {}
    exec(numpy_module(family), module)
    library = compile_together([family], tmp_path / "kernel", "-O0")
    answers = {
        "kernel": KernelLibrary(family, library).call(family.forward, inputs, {"n": n}),
        "numpy": dict(zip(want, module[function_name(family.forward)](*inputs.values(), n=n), strict=True)),
        "onnx": load(family, tmp_path).function_call(family.name, inputs, {"n": n}, list(want)),
    }
    oracle = evaluate(family.forward, inputs, {"n": n})
    for name, exact in want.items():
        assert compare(name, exact, oracle[name]).ok, f"oracle {name}"
        for backend, found in answers.items():
            np.testing.assert_array_equal(found[name], exact, f"{backend} {name}")


def test_fractions_are_spread_evenly() -> None:
    """A chi-squared test of 2^16 numbers in 256 parts: 340 is beyond all but one in 3,000, and these numbers never change."""
    words = numpy_function(FUNCTIONS["philox"].numpy)(np.uint64(1), np.arange(2**16, dtype=np.uint64))
    counts = np.bincount(words >> np.uint64(24))
    assert len(counts) == 256
    assert ((counts - 256.0) ** 2 / 256).sum() < 340
