"""A kernel's loop on XLA's threads, under ThreadSanitizer, in a pool of two threads that stands for XLA's.

What could make such a loop wait for ever is a thread that it waits for and that waits itself. So both threads of the pool run
calls too, at once with callers from outside; and a call ends in a pool that runs nothing at all.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opc.backends import environments
from opc.build.toolchain import runtime_include

PROGRAM = r"""
#include <stdio.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "opc/adapters/jax_threads.h"

/* Stands for XLA's pool: the API that a handler is given leads here. */
struct Queue {
  std::mutex mutex;
  std::condition_variable more;
  std::deque<std::pair<void (*)(void *), void *>> tasks;
  bool closed = false;

  void add(void (*task)(void *), void *data) {
    std::lock_guard<std::mutex> hold(mutex);
    tasks.emplace_back(task, data);
    more.notify_one();
  }
  void work() {
    for (;;) {
      std::unique_lock<std::mutex> hold(mutex);
      more.wait(hold, [&] { return closed || !tasks.empty(); });
      if (tasks.empty()) return;
      const auto next = tasks.front();
      tasks.pop_front();
      hold.unlock();
      next.first(next.second);
    }
  }
  void close() {
    std::lock_guard<std::mutex> hold(mutex);
    closed = true;
    more.notify_all();
  }
};

static XLA_FFI_Error *number(XLA_FFI_ThreadPool_NumThreads_Args *args) { return *args->num_threads = 2, nullptr; }

static XLA_FFI_Error *schedule(XLA_FFI_ThreadPool_Schedule_Args *args) {
  reinterpret_cast<Queue *>(args->ctx)->add(args->task, args->data);
  return nullptr;
}

static int wrong = 0;

static void mark(void *marks, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) ++static_cast<int *>(marks)[i]; /* ranges are disjoint, so this is no race */
}

static void call(Queue &queue) {
  XLA_FFI_Api api = {};
  api.XLA_FFI_ThreadPool_NumThreads = number;
  api.XLA_FFI_ThreadPool_Schedule = schedule;
  opc::jax::Pool pool = {&api, reinterpret_cast<XLA_FFI_ExecutionContext *>(&queue)};
  std::vector<int> marks(997);
  opc::jax::Pool::parallel_for(&pool, 997, 10, mark, marks.data());
  for (int m : marks) if (m != 1) __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
}

int main() {
  Queue queue;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back([&] { queue.work(); });
  /* Calls from the pool's own threads, as XLA runs handlers there, and from two others. */
  for (int i = 0; i < 400; ++i) queue.add([](void *q) { call(*static_cast<Queue *>(q)); }, &queue);
  for (int i = 0; i < 2; ++i) threads.emplace_back([&] { for (int k = 0; k < 400; ++k) call(queue); });
  threads[2].join();
  threads[3].join();
  queue.close();
  threads[0].join();
  threads[1].join();
  /* A pool whose threads never come: the call does all by itself. Its task comes later, and frees what the loop was. */
  Queue idle;
  call(idle);
  if (idle.tasks.size() != 1) return puts("the call scheduled no task"), 1;
  idle.close();
  idle.work();
  return wrong ? (puts("an index was visited not once"), 1) : 0;
}
"""


def test_loops_end_and_are_free_of_races(tmp_path: Path) -> None:
    folder = environments.folder("jax", "jaxlib")
    assert folder is not None
    (tmp_path / "pool.cpp").write_text(PROGRAM)
    flags = ("-std=c++17", "-g", "-O1", "-fsanitize=thread", "-pthread", f"-I{runtime_include()}", "-isystem", folder / "include")
    compiled = subprocess.run(["c++", *flags, "pool.cpp", "-o", "pool"], cwd=tmp_path, capture_output=True, text=True)
    if "tsan" in compiled.stderr or "unsupported" in compiled.stderr:
        pytest.skip("the compiler has no ThreadSanitizer")
    assert compiled.returncode == 0, compiled.stderr
    done = subprocess.run(["./pool"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run on this kernel")
    assert done.returncode == 0, done.stdout + done.stderr
