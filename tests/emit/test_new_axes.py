"""Outputs with a new axis, in graphs whose sizes are names: where the axis goes, for each value of its attribute."""

from __future__ import annotations

import subprocess
from pathlib import Path

from opc.emit.shapes.output_axes import OutputAxes
from opc.pipeline import compile_text
from tests.emit.kernel_library import INCLUDE

STACKED = """\
op: stacked
domain: test
version: 1
doc: A new axis.
types: {T: [float32]}
inputs: {x: 'T[*A, *B]', w: 'T[K]'}
attributes: {axis: {type: axis, dim: K, default: 0}}
outputs: {y: 'T[*A, K, *B]'}
kernel: |
  y[*A, k, *B] = x[*A, *B] * w[k]
"""
PROGRAM = """\
#include <stdio.h>
#include "opc/core/output_axes.h"
using namespace opc;
constexpr Axes axes[] = {
%s
};
int main() {
  SymbolicShape x, w;
  for (const char *name : {"a", "b", "c"}) x.append(-1, name);
  w.append(-1, "k");
  const SymbolicShape *const inputs[] = {&x, &w};
  for (int axis = -5; axis < 5; ++axis) {
    SymbolicShape y;
    printf("%%d:", axis);
    if (y.make({sizeof axes / sizeof *axes, axes}, inputs, axis))
      for (int i = 0; i < y.rank; ++i) printf(" %%s", y.names[i]);
    printf("\\n");
  }
}
"""


def test_names_of_sizes_stand_around_the_new_axis(tmp_path: Path) -> None:
    op = compile_text(STACKED, "stacked.yaml").forward
    source = PROGRAM % "\n".join(OutputAxes(op).output(op.outputs[0]))
    program = tmp_path / "axes"
    command = ["g++", "-std=c++17", "-Werror", "-x", "c++", f"-I{INCLUDE}", "-o", str(program), "-"]
    subprocess.run(command, input=source, text=True, check=True)
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    expected = {}
    for axis in range(-5, 5):
        names = ["a", "b", "c"]
        if -4 <= axis < 4:
            names.insert(axis % 4, "k")
        expected[axis] = names if -4 <= axis < 4 else []
    assert {int(line.partition(":")[0]): line.partition(":")[2].split() for line in lines} == expected
