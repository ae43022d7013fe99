"""The program that runs a saved model in Paddle Inference; `opc run` starts it with the interpreter that has Paddle.

It reads a task from standard input, `{"libraries", "model", "inputs": {name: file}, "folder"}`, writes each output to the folder
as `<number>.npy`, and answers `{"outputs": [[name, dtype], ...]}` or `{"error": text}` on the last line of standard output.
bfloat16 goes as its bits. It imports nothing of opc, which need not be installed there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def run(task: Mapping[str, Any]) -> list[list[str]]:
    """Run the model and return the name and dtype of each output."""
    import numpy as np
    import paddle
    from paddle import inference
    from paddle.utils.cpp_extension import load_op_meta_info_and_register_op

    # Before the model is read: Paddle can't read operators that it does not know.
    for library in task["libraries"]:
        load_op_meta_info_and_register_op(library)
    model = Path(task["model"])
    config = inference.Config(str(model), str(model.with_suffix(".pdiparams")))
    config.disable_gpu()
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    given = [paddle.to_tensor(np.load(task["inputs"][name]), place=paddle.CPUPlace()) for name in predictor.get_input_names()]
    found = []
    for i, (name, tensor) in enumerate(zip(predictor.get_output_names(), predictor.run(given), strict=True)):
        np.save(Path(task["folder"], f"{i}.npy"), tensor.numpy())
        found.append([name, str(tensor.dtype).removeprefix("paddle.")])
    return found


def main() -> None:
    """Carry out the task on standard input."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # Paddle prints to standard output as it likes.
    try:
        answer: dict[str, Any] = {"outputs": run(json.load(sys.stdin))}
    except Exception as error:  # Paddle's errors share no base class.
        answer = {"error": str(error)}
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
