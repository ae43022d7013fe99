"""Products of matrices by cuBLASLt: an emulation of it checks what it is asked, and computes on the CPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from opc.backends.cuda.session import LIBRARY, LIBRARY_PATH, CudaSession
from opc.backends.cuda.toolkit import EMULATED_LIBRARY
from opc.ir.dtypes import DType, numpy_dtype
from opc.lower.cuda.kernels import cuda_kernel
from opc.lower.cuda.stages import device_programs
from opc.pipeline import compile_text, load_family

if TYPE_CHECKING:
    from opc.backends.base import Array

ROOT = Path(__file__).parents[3]
ANSWERS = "OPC_EMULATED_CUBLASLT"
DTYPES = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64)

Loaded = Callable[..., CudaSession]


class Library:
    """A session whose products are counted."""

    def __init__(self, session: CudaSession, patch: pytest.MonkeyPatch) -> None:
        self.session = session
        patch.setenv(LIBRARY_PATH, str(session.package / EMULATED_LIBRARY))
        patch.setenv(LIBRARY, "all")
        self.made = getattr(session.library, f"opc_{session.family.name}_cuda_library")

    def call(self, op: str, attributes: Any = None, only: Any = None, **inputs: Array) -> tuple[dict[str, Array], int]:
        """Return results, and how many products the library has made of one of the two calls that a session makes."""
        before = self.made()
        found = self.session.call(op, inputs, attributes or {}, only)
        count = self.made() - before
        assert count % 2 == 0
        return found, count // 2


@pytest.fixture(scope="module")
def linear_session(loaded: Loaded) -> CudaSession:
    return loaded("linear", "backward")


@pytest.fixture(scope="module")
def matmul_session(loaded: Loaded) -> CudaSession:
    return loaded("matmul", "backward")


@pytest.fixture
def linear(linear_session: CudaSession, monkeypatch: pytest.MonkeyPatch) -> Library:
    return Library(linear_session, monkeypatch)


@pytest.fixture
def matmul(matmul_session: CudaSession, monkeypatch: pytest.MonkeyPatch) -> Library:
    return Library(matmul_session, monkeypatch)


def integers(*shape: int, dtype: DType = DType.FLOAT32, seed: int = 0) -> Array:
    """Return small integers: sums of their products are exact in any order."""
    found = np.random.default_rng(seed + len(shape)).integers(-2, 3, shape).astype(numpy_dtype(dtype))
    assert isinstance(found, np.ndarray)
    return found


def exact(found: Array, expected: Array) -> None:
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


@pytest.mark.rotating
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("biased", [False, True])
def test_rows_times_weights_with_a_bias(linear: Library, dtype: DType, biased: bool) -> None:
    x, w, b = integers(2, 3, 20, dtype=dtype), integers(9, 20, dtype=dtype, seed=1), integers(9, dtype=dtype, seed=2)
    found, count = linear.call("linear", x=x, w=w, **({"b": b} if biased else {}))
    assert count == 1
    exact(found["y"], x.astype(float) @ w.astype(float).T + (b.astype(float) if biased else 0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_both_gradients(linear: Library, dtype: DType) -> None:
    x, w, d_y = integers(5, 4, 20, dtype=dtype), integers(9, 20, dtype=dtype, seed=1), integers(5, 4, 9, dtype=dtype, seed=2)
    found, count = linear.call("linear_backward", x=x, w=w, b=integers(9, dtype=dtype), d_y=d_y)
    assert count == 2
    exact(found["d_x"], d_y.astype(float) @ w.astype(float))
    exact(found["d_w"], d_y.reshape(20, 9).T.astype(float) @ x.reshape(20, 20).astype(float))


def test_sums_of_16_bits_are_rounded_once(linear: Library) -> None:
    """In float16 2049 is none: rounded before the bias is added it would be 2048, and the result too."""
    x, w, b = np.ones((1, 2), np.float16), np.full((3, 2), 1, np.float16), np.ones(3, np.float16)
    w[:, 0] = 2048
    found, count = linear.call("linear", x=x, w=w, b=b)
    assert count == 1
    exact(found["y"], np.full((1, 3), 2050.0))


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("shape_a", "shape_b", "products"),
    [
        ((6, 7), (7, 5), 2),
        ((4, 6, 7), (4, 7, 5), 2),
        ((2, 3, 6, 7), (2, 3, 7, 5), 2),
        ((4, 6, 7), (7, 5), 2),
        ((4, 6, 7), (1, 7, 5), 2),
        ((6, 7), (4, 7, 5), 1),
        ((4, 1, 7), (4, 7, 1), 2),
        ((4, 6, 1), (4, 1, 5), 2),
        ((1, 7), (7, 1), 2),
    ],
)
def test_batches_with_one_step(matmul: Library, shape_a: tuple[int, ...], shape_b: tuple[int, ...], products: int) -> None:
    """Batches and rows that are summed have one step where what is shared is on the right, and two where it is on the left."""
    a, b = integers(*shape_a), integers(*shape_b, seed=1)
    found, count = matmul.call("matmul", a=a, b=b)
    assert count == 1
    exact(found["y"], a @ b)
    d_y = integers(*found["y"].shape, seed=2)
    gradients, count = matmul.call("matmul_backward", a=a, b=b, d_y=d_y)
    assert count == products
    for name, whole, like in (("d_a", d_y @ np.swapaxes(b, -1, -2), a), ("d_b", np.swapaxes(a, -1, -2) @ d_y, b)):
        more = tuple(range(whole.ndim - like.ndim))
        summed = whole.sum(more) if more else whole
        ones = tuple(n for n, (own, of) in enumerate(zip(like.shape, summed.shape, strict=True)) if own != of)
        exact(gradients[name], summed.sum(ones, keepdims=True) if ones else summed)


def test_batches_with_several_steps_are_made_in_tiles(matmul: Library) -> None:
    a, b = integers(2, 3, 6, 7), integers(2, 1, 7, 5, seed=1)
    found, count = matmul.call("matmul", a=a, b=b)
    assert count == 0
    exact(found["y"], a @ b)


@pytest.mark.parametrize("dtype", [DType.BFLOAT16, DType.FLOAT64])
def test_matrices_lie_as_they_like(matmul: Library, dtype: DType) -> None:
    """Transposed, with gaps between rows, not aligned; where no axis has neighbours together tiles read them."""
    wide, other = integers(16, 30, dtype=dtype), integers(30, 16, dtype=dtype, seed=1)
    cases: list[tuple[Array, Array, int]] = [
        (wide[:, :20], other[:20], 1),
        (wide.T[:20], other.T[:, 3:23], 1),
        (wide[1:, 1:21], other[3:23, 1:], 1),
        (wide[:, ::2], other[::2], 0),
        (wide[::-1, :20], other[:20], 0),
        (np.broadcast_to(wide[0, :20], (5, 20)), other[:20], 0),
    ]
    for a, b, expected in cases:
        found, count = matmul.call("matmul", a=a, b=b)
        assert count == expected
        exact(found["y"], a.astype(float) @ b.astype(float))


def test_answers_are_of_all_sizes(matmul: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes differ one at a time, while distances between rows or columns, and how operands are aligned, are the same."""
    import opc.backends.cuda.session as module

    def copied(self: module._Memory, source: int, size: int) -> int:
        self.held.append(self.library.opc_array_allocate(None, ctypes.c_int64(size + 255), None))
        place = (self.held[-1] + 255) // 256 * 256
        self._copy(self.library.opc_array_copy_in, place, source, size)
        return place

    monkeypatch.setattr(module._Memory, "_copied", copied)
    a, b = integers(24, 24), integers(24, 24, seed=1)
    for left in (a, a.T):
        for right in (b, b.T):
            for rows, terms, columns in ((8, 9, 9), (9, 8, 9), (9, 9, 8), (9, 9, 9)):
                own, other = left[:rows, :terms], right[:terms, :columns]
                found, count = matmul.call("matmul", a=own, b=other)
                assert count == 1
                exact(found["y"], own @ other)


def test_nothing_is_asked_of_empty_matrices(matmul: Library) -> None:
    for a, b in ((integers(0, 4), integers(4, 3)), (integers(2, 0), integers(0, 3)), (integers(0, 2, 3), integers(0, 3, 2))):
        found, count = matmul.call("matmul", a=a, b=b)
        assert count == 0
        exact(found["y"], a @ b)


def test_infinities_and_nan(matmul: Library) -> None:
    a = np.array([[np.inf, 1], [np.nan, 1], [0, 1], [1, 1]], np.float32)
    b = np.array([[1, 0, np.inf], [1, 1, 1]], np.float32)
    found, count = matmul.call("matmul", a=a, b=b)
    assert count == 1
    expected = [[np.inf, np.nan, np.inf], [np.nan] * 3, [1, 1, np.nan], [2, 1, np.inf]]
    np.testing.assert_array_equal(found["y"], np.array(expected, np.float32))


@pytest.mark.rotating
def test_bmm_of_each_transposition(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    bmm = Library(loaded("bmm"), monkeypatch)
    a, b = integers(3, 4, 6), integers(3, 6, 5, seed=1)
    for left in (False, True):
        for right in (False, True):
            own = {"a": np.swapaxes(a, 1, 2) if left else a, "b": np.swapaxes(b, 1, 2) if right else b}
            kept = {k: np.ascontiguousarray(v) for k, v in own.items()}
            found, count = bmm.call("bmm", {"transpose_a": left, "transpose_b": right}, **kept)
            assert count == 1
            exact(found["y"], a @ b)


def test_small_products_are_made_in_tiles_unless_all_are_asked_for(linear: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call on the host takes longer than the GPU has to multiply fewer than 512 x 256 x 256."""
    small, large, w = integers(15, 256), integers(512, 256), integers(256, 256, seed=1)
    # As many in tiles would take long on the emulation.
    for use, counts in (("", {15: 0, 512: 1}), ("off", {15: 0}), ("all", {15: 1, 512: 1})):
        monkeypatch.setenv(LIBRARY, use)
        for x in (small, large)[: len(counts)]:
            found, count = linear.call("linear", x=x, w=w)
            assert count == counts[len(x)]
            exact(found["y"], x @ w.T)


@pytest.mark.parametrize("answer", ["refuses", "fails"])
def test_what_the_library_does_not_make_is_made_in_tiles(linear: Library, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    """It is asked again for another shape; of one that it does not make it is not."""
    x, w = integers(3, 11 if answer == "fails" else 12), integers(4, 11 if answer == "fails" else 12)
    for asked in (answer, ""):
        monkeypatch.setenv(ANSWERS, asked)
        found, count = linear.call("linear", x=x, w=w)
        assert count == 0
        exact(found["y"], x @ w.T)
    assert linear.call("linear", x=integers(3, 13), w=integers(4, 13))[1] == 1


def test_without_a_gpu_there_is_no_library(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    linear = Library(loaded("linear", "backward"), monkeypatch)
    for answer in ("lacks", ""):
        monkeypatch.setenv(ANSWERS, answer)
        assert linear.call("linear", x=integers(3, 4), w=integers(5, 4))[1] == 0


class Lender:
    """Memory of a host that keeps account of what it lends, or has none."""

    def __init__(self, patch: pytest.MonkeyPatch, *, stream: int | None = None, has_memory: bool = True) -> None:
        import opc.backends.cuda.session as module

        kind, self.lent, self.back = module._Context, list[int](), list[int]()
        self.memory = dict[int, Any]()

        def allocate(_: int, size: int, __: int) -> int | None:
            self.lent.append(size)
            if not has_memory:
                return None
            buffer = ctypes.create_string_buffer(size)
            self.memory[ctypes.addressof(buffer)] = buffer
            return ctypes.addressof(buffer)

        def release(_: int, place: int, size: int, __: int) -> None:
            del self.memory[place]
            self.back.append(size)

        word, number = ctypes.c_void_p, ctypes.c_int64
        functions = (
            ctypes.CFUNCTYPE(word, word, number, word)(allocate),
            ctypes.CFUNCTYPE(None, word, word, number, word)(release),
        )
        self.kept = functions
        places = [ctypes.cast(f, word) for f in functions]

        def context(_: Any, device: int, __: Any, ___: Any, *rest: Any) -> Any:
            return kind(stream, device, *places, *rest)

        patch.setattr(module, "_Context", context)


@pytest.mark.parametrize("has_memory", [True, False])
def test_workspace_is_the_context_s(linear: Library, monkeypatch: pytest.MonkeyPatch, has_memory: bool) -> None:
    """A host that has none to lend has an algorithm that needs none, and few products are not given any."""
    x, w = integers(512, 258, seed=int(has_memory)), integers(256, 258, seed=3)
    lender = Lender(monkeypatch, has_memory=has_memory)
    for of, sizes in ((x, [4 * 512 * 256] * 2), (x[:9], [])):
        lender.lent.clear()
        lender.back.clear()
        found, count = linear.call("linear", x=of, w=w)
        assert count == 1
        assert lender.lent == sizes
        assert lender.back == (sizes if has_memory else [])
        exact(found["y"], of @ w.T)


@pytest.mark.parametrize("use", ["off", "all"])
def test_a_call_that_measures_asks_for_what_any_library_may_need(
    linear: Library, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    """A host that plans with it may run in another process than the one that asks."""
    monkeypatch.setenv(LIBRARY, use)
    lender = Lender(monkeypatch, stream=2**64 - 1)
    for rows, most in ((512, 32 << 20), (511, 0)):
        lender.lent.clear()
        assert linear.call("linear", x=integers(rows, 256), w=integers(256, 256))[1] == 0
        assert max(lender.lent, default=0) == most
        assert not lender.memory


def test_more_shapes_than_answers_are_kept(linear: Library) -> None:
    x = integers(1, 300)
    for terms in range(1, 300, 2):
        found, count = linear.call("linear", x=x[:, :terms], w=x[:, :terms])
        assert count == 1
        exact(found["y"], x[:, :terms] @ x[:, :terms].T)


def test_threads_share_answers(linear: Library) -> None:
    """Each has a bias of its own, which the library is told of by what the threads have in common."""
    x, w = integers(6, 8), integers(5, 8, seed=1)
    op = linear.session.ops["linear"]

    def calls(number: int) -> None:
        b = np.full(5, number, np.float32)
        for _ in range(30):
            found = linear.session._call(op, {"x": x, "w": w, "b": b}, {}, ("y",))
            exact(found["y"], x @ w.T + number)

    before = linear.made()
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(calls, range(8))] == [None] * 8
    assert linear.made() - before == 8 * 30


def test_the_proof_calls_the_library_too(linear_session: CudaSession, monkeypatch: pytest.MonkeyPatch) -> None:
    variants = linear_session.variants()
    assert [*variants] == ["cublaslt"]
    assert sorted(variants["cublaslt"].ops) == ["linear", "linear_backward"]
    made, given, counts = linear_session.library.opc_linear_cuda_library, {"x": integers(3, 4), "w": integers(5, 4)}, list[int]()
    for session in (linear_session, variants["cublaslt"]):
        exact(session.call("linear", given, {})["y"], given["x"] @ given["w"].T)
        with monkeypatch.context() as patch:
            patch.setenv(LIBRARY_PATH, str(linear_session.package / EMULATED_LIBRARY))
            counts.append(made())
    assert counts[1] - counts[0] == 2


SUMS = """\
op: sums
domain: opc.test
version: 1
doc: Sums of products.
types: {T: [float16, float32]}
inputs: {x: 'T[M, K]', w: 'T[N, K]', b: 'T[N]', c: 'T[M]', m: 'T[M, N]'}
outputs: {y: 'T[M, N]'}
kernel: |
  y[m_, n] = BODY
gradient: none
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("sum[k](x[m_, k] * w[n, k])", ("cuBLASLt",)),
        ("b[n] + sum[k](x[m_, k] * w[n, k])", ("cuBLASLt", "bias")),
        ("sum[k](x[m_, k] * w[n, k]) + c[m_]", ()),
        ("sum[k](x[m_, k] * w[n, k]) + m[m_, n]", ()),
        ("exp(sum[k](x[m_, k] * w[n, k]))", ()),
        ("sum[k](x[m_, k] * w[n, k]) if M > 3 else 0", ()),
    ],
)
def test_the_schedule_tells_what_may_go_there(body: str, expected: tuple[str, ...]) -> None:
    family = compile_text(SUMS.replace("BODY", body), "sums.yaml")
    (program,) = device_programs(family.forward)
    found = [cuda_kernel(program.case.op, s).schedule.args("library") for s in program.program.stages]
    assert (found or [()])[-1] == expected


def test_attention_keeps_its_scores_to_itself() -> None:
    for program in device_programs(load_family(ROOT / "specs" / "attention.yaml").forward):
        for stage in program.program.stages:
            assert not cuda_kernel(program.case.op, stage).schedule.args("library")
