"""Memory that a library keeps from one call to the next: used again, bounded, each block one caller's, given back at the end."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from opc.backends.kernel.backend import COMMON_FLAGS
from tests.emit.compilers import COMPILERS, run_compiler
from tests.emit.kernel_library import INCLUDE

SOURCE = r"""
#include <string.h>
#include <thread>
#include <vector>
#include "opc/core/workspace.h"
#define EXPORT extern "C" __attribute__((visibility("default")))
__attribute__((destructor)) static void finish() { opc::empty(opc::kept_workspace); }
EXPORT void *take(int64_t bytes) { return opc::take_memory(bytes); }
EXPORT void give(void *memory) { opc::give_memory(memory); }
EXPORT int64_t kept() { return opc::kept_workspace.bytes; }
EXPORT int64_t most() { return opc::most_workspace; }
/* How many blocks held what another thread had written. */
EXPORT int64_t share(int threads, int rounds) {
  std::vector<std::thread> running;
  std::vector<int64_t> wrong(threads);
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      for (int r = 0; r < rounds; ++r) {
        unsigned char *blocks[3];
        for (int b = 0; b < 3; ++b) {
          blocks[b] = static_cast<unsigned char *>(opc::take_memory((b + 1) << 16));
          memset(blocks[b], t + 1, (b + 1) << 16);
        }
        for (int b = 0; b < 3; ++b) {
          for (int i = 0; i < (b + 1) << 16; i += 4096) wrong[t] += blocks[b][i] != t + 1;
          opc::give_memory(blocks[b]);
        }
      }
    });
  }
  for (std::thread &each : running) each.join();
  int64_t sum = 0;
  for (int64_t each : wrong) sum += each;
  return sum;
}
"""

UNLOADED = """
import _ctypes, ctypes, sys
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
before = resident()
for _ in range(20):
    library = ctypes.CDLL(sys.argv[1])
    library.take.restype = ctypes.c_void_p
    block = library.take(ctypes.c_int64(1 << 23))
    ctypes.memset(block, 1, 1 << 23)
    library.give(ctypes.c_void_p(block))
    handle = library._handle
    del library
    _ctypes.dlclose(handle)
print(resident() - before)
"""


@pytest.fixture(scope="module", params=COMPILERS)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    source, found = folder / "workspace.cpp", folder / "workspace.so"
    source.write_text(SOURCE)
    run_compiler(COMPILERS[request.param], *COMMON_FLAGS, "-O2", "-pthread", "-I", INCLUDE, "-shared", source, "-o", found)
    return found


@pytest.fixture
def loaded(library: Path) -> ctypes.CDLL:
    found = ctypes.CDLL(str(library))
    found.take.restype = ctypes.c_void_p
    for name in ("kept", "most", "share"):
        getattr(found, name).restype = ctypes.c_int64
    return found


def test_a_block_is_used_again_for_what_it_fits(loaded: ctypes.CDLL) -> None:
    block = loaded.take(ctypes.c_int64(3 << 20))
    assert block % 4096 == 0
    loaded.give(ctypes.c_void_p(block))
    kept = loaded.kept()
    assert kept >= 3 << 20
    small = loaded.take(ctypes.c_int64(1 << 20))
    assert small != block, "a block of three times the size is not taken"
    assert loaded.take(ctypes.c_int64(2 << 20)) == block
    loaded.give(ctypes.c_void_p(block))
    loaded.give(ctypes.c_void_p(small))


def test_small_blocks_begin_at_a_line_and_stay_with_the_allocator(loaded: ctypes.CDLL) -> None:
    before = loaded.kept()
    blocks = [loaded.take(ctypes.c_int64(n)) for n in (0, 1, 63, 64, 65, 4096, 65535)]
    assert all(b % 64 == 0 for b in blocks)
    for b in blocks:
        ctypes.memset(b, 1, 1)
        loaded.give(ctypes.c_void_p(b))
    loaded.give(None)
    assert loaded.kept() == before


def test_no_more_is_kept_than_the_bound(loaded: ctypes.CDLL) -> None:
    blocks = [loaded.take(ctypes.c_int64(n << 20)) for n in (1, 60, 30, 20, 10, 5, 65, 2)]
    for block in blocks:
        loaded.give(ctypes.c_void_p(block))
        assert 0 < loaded.kept() <= loaded.most()
    last = loaded.take(ctypes.c_int64(2 << 20))
    assert last == blocks[-1], "what was given last is there"
    loaded.give(ctypes.c_void_p(last))


def test_more_than_there_is(loaded: ctypes.CDLL) -> None:
    assert loaded.take(ctypes.c_int64(2**63 - 1)) is None
    assert loaded.take(ctypes.c_int64(2**62)) is None


def test_each_block_has_one_holder(loaded: ctypes.CDLL) -> None:
    assert loaded.share(8, 200) == 0


def test_nothing_is_left_when_a_library_is_unloaded(library: Path) -> None:
    done = subprocess.run([sys.executable, "-c", UNLOADED, library], check=True, capture_output=True, text=True)
    assert int(done.stdout) < 3 * (1 << 23), "of 20 blocks of 8 MiB"
