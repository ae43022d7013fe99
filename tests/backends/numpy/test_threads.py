"""The thread pool of the bindings under ThreadSanitizer: callers at once, calls inside calls, coverage of the range."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opc.build.toolchain import runtime_include

PROGRAM = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include "opc/core/threads.h"

enum { COUNT = 10007, CALLERS = 4 };
typedef struct { int marks[COUNT]; int64_t grain; int short_ranges; int depth; } work;

static void mark(void *argument, int64_t begin, int64_t end) {
  work *w = argument;
  if (end - begin < w->grain && end != COUNT) __atomic_add_fetch(&w->short_ranges, 1, __ATOMIC_RELAXED);
  for (int64_t i = begin; i < end; i++) w->marks[i]++; /* ranges are disjoint, so this is no race */
}

static void nested(void *argument, int64_t begin, int64_t end) {
  static _Thread_local work inner;
  memset(&inner, 0, sizeof inner);
  opc_parallel_for(NULL, COUNT, 1, mark, &inner);
  for (int i = 0; i < COUNT; i++) if (inner.marks[i] != 1) __atomic_store_n(&((work *)argument)->depth, -1, __ATOMIC_RELAXED);
  (void)begin, (void)end;
}

static void *caller(void *unused) {
  static _Thread_local work w;
  for (int64_t round = 0; round < 200; round++) {
    memset(&w, 0, sizeof w);
    w.grain = 1 + round * 17;
    opc_parallel_for(NULL, COUNT, w.grain, mark, &w);
    for (int i = 0; i < COUNT; i++) if (w.marks[i] != 1) return "an index was visited not once";
    if (w.short_ranges) return "a range is shorter than the grain";
  }
  opc_parallel_for(NULL, 64, 1, nested, &w);
  return w.depth < 0 ? "a call inside a call missed an index" : unused;
}

int main(void) {
  pthread_t threads[CALLERS];
  opc_set_threads(4);
  opc_parallel_for(NULL, 0, 1, mark, NULL);
  for (int i = 0; i < CALLERS; i++) pthread_create(&threads[i], NULL, caller, NULL);
  for (int i = 0; i < CALLERS; i++) {
    void *said = NULL;
    pthread_join(threads[i], &said);
    if (said) return puts(said), 1;
  }
  opc_set_threads(0);
  return opc_get_threads() == 1 ? 0 : 2;
}
"""


def test_pool_is_free_of_races(tmp_path: Path) -> None:
    (tmp_path / "pool.c").write_text(PROGRAM)
    command = ["cc", "-std=c11", "-g", "-O1", "-fsanitize=thread", "-pthread", f"-I{runtime_include()}", "pool.c", "-o", "pool"]
    compiled = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    if "tsan" in compiled.stderr or "unsupported" in compiled.stderr:
        pytest.skip("the compiler has no ThreadSanitizer")
    assert compiled.returncode == 0, compiled.stderr
    done = subprocess.run(["./pool"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run on this kernel")
    assert done.returncode == 0, done.stdout + done.stderr
