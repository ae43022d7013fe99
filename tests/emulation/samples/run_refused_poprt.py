"""Runs `poprt` with the options in each line of a file, in one process, and prints the status and the message of each."""

import contextlib
import io
import logging
import sys
from pathlib import Path

from poprt import cli

for line in Path(sys.argv[1]).read_text().splitlines():
    said = io.StringIO()
    logging.getLogger().handlers.clear()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            status = cli.main(f"-i custom_op_test.onnx --custom_library_so_paths {sys.argv[2]} {line}".split())
        except SystemExit as end:
            status = end.code
    assert status, line
    print(f"{line}: {status} {' '.join(said.getvalue().split())}")
