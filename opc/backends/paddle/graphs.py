"""Static graphs of Paddle, and predictors of the models that they are saved as."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def predictor(path: Path, *, optimized: bool = False) -> Any:
    """Return a predictor of a saved model, `path` without its ending, as it is: passes over its graph cost most of the time."""
    from paddle import inference

    config = inference.Config(f"{path}.json", f"{path}.pdiparams")
    config.disable_gpu()
    config.disable_glog_info()
    if not optimized:
        config.switch_ir_optim(False)
        config.disable_mkldnn()
    return inference.create_predictor(config)


@contextmanager
def static_graph() -> Iterator[Any]:
    """Build a static graph, and go back to dynamic ones."""
    import paddle

    program = paddle.static.Program()
    paddle.enable_static()
    try:
        with paddle.static.program_guard(program, paddle.static.Program()):
            yield program
    finally:
        paddle.disable_static()
