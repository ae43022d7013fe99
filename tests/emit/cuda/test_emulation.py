"""CUDA's emulation: barriers, shuffles, votes and shared memory as the model has them, and mistakes that it finds."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCE = Path(__file__).parent / "emulated.cpp"


def compiled(source: Path, path: Path) -> Path:
    command = ["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'runtime' / 'include'}", str(source)]
    subprocess.run([*command, "-o", str(path)], check=True)
    return path


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(SOURCE, tmp_path_factory.mktemp("emulated") / "program")


@pytest.fixture(scope="module")
def sorting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(SOURCE.parent / "sorted.cpp", tmp_path_factory.mktemp("sorted") / "program")


def run(program: Path, *arguments: str, seed: int = 0) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **({"OPC_CUDA_SEED": str(seed)} if seed else {})}
    return subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False, env=env)


@pytest.mark.parametrize("keys", [1, 255, 256, 70000])
@pytest.mark.parametrize("items", [0, 1, 4095, 4097, 20000])
def test_items_are_sorted_in_their_order(sorting: Path, items: int, keys: int) -> None:
    assert run(sorting, str(items), str(keys), "1", seed=items).stdout == "1 1\n"


@pytest.mark.parametrize(("items", "segments"), [(1, 40), (4096, 3), (4097, 3), (9000, 5)])
def test_segments_of_items_are_sorted_by_themselves(sorting: Path, items: int, segments: int) -> None:
    assert run(sorting, str(items), "3000", str(segments), seed=items).stdout == "1 1\n"


def test_small_nests_number_what_others_do(tmp_path: Path) -> None:
    """Lines have each point once, ranges are narrowed by factors as by divisions, and what has too many bits is not small."""
    assert run(compiled(SOURCE.parent / "small.cpp", tmp_path / "program")).stdout == "1 1 1 1 1 1 1 1 1\n"


def test_rows_that_are_plain_have_a_kernel_of_their_own(tmp_path: Path) -> None:
    """They keep nothing in memory; what varies otherwise, is too long or is called seldom has the kernel for all rows."""
    found = run(compiled(SOURCE.parent / "rows.cpp", tmp_path / "program")).stdout.splitlines()
    assert found == ["0 512 0", "0 8 0", "0 16 0", "1 512 1", "1 256 1", "1 512 1", "1 512 1"]


@pytest.mark.parametrize("seed", [0, 1, 77])
def test_words_mean_what_they_do_on_a_gpu(program: Path, seed: int) -> None:
    assert run(program, "pass_barrier", seed=seed).stdout == "1024\n"
    assert run(program, "lanes", seed=seed).stdout == "512\n"
    assert run(program, "sums", seed=seed).stdout == "33151 33151 33151\n"


@pytest.mark.parametrize("seed", [0, 5])
def test_teams_find_what_one_thread_finds(program: Path, seed: int) -> None:
    """Of equal values the first, of NaNs the first of them, and where nothing is better than nothing the first position."""
    assert run(program, "searches", seed=seed).stdout == 4 * f"{7 * 512}\n"


def test_a_missing_barrier_shows_in_another_order(program: Path) -> None:
    found = {run(program, "pass_without", seed=seed).stdout for seed in (0, 1, 2)}
    assert len(found) == 3
    assert "1024\n" not in found


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_blocks_wait_for_those_that_have_begun(program: Path, seed: int) -> None:
    assert run(program, "in_turn_drawn", seed=seed).stdout == "64\n"
    done = run(program, "in_turn_numbered", seed=seed)
    message = "CUDA's emulation: a block waits for what no block before it has written\n"
    assert (done.stdout, done.stderr) == (("64\n", "") if seed == 0 else ("", message))


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("outside", "an index 4 of a shared array of 4 elements"),
        ("some_wait", "some threads of a block wait at a barrier that others do not come to"),
        ("alone", "a thread waits for others in a kernel that was started as one whose threads do not"),
    ],
)
def test_mistakes_end_the_process(program: Path, case: str, message: str) -> None:
    done = run(program, case)
    assert done.returncode != 0
    assert done.stderr == f"CUDA's emulation: {message}\n"


WRITER = """
#include "opc/cuda/arrays.h"
int main(int count, char **argument) {
  char *const memory = static_cast<char *>(opc_array_allocate(nullptr, 24, nullptr));
  if (count > 1) memory[atoi(argument[1])] = 1;
  opc_array_release(nullptr, memory, 24, nullptr);
}
"""


def test_writes_beside_memory_are_found(tmp_path: Path) -> None:
    (tmp_path / "writer.cpp").write_text(WRITER)
    writer = compiled(tmp_path / "writer.cpp", tmp_path / "writer")
    assert [run(writer, place).returncode for place in ("0", "23")] == [0, 0]
    for place in ("-1", "24", "87"):
        found = run(writer, place)
        assert found.returncode != 0
        assert "a kernel wrote outside of 24 bytes of memory" in found.stderr
