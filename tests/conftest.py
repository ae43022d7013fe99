"""What holds for all tests: kernels are compiled for this machine alone. Tests of the other variants ask for them.

As in `opc.__main__`, garbage is looked for seldom: what is imported and compiled stays, and most of the rest goes without.
"""

import gc
import os

os.environ.setdefault("OPC_VARIANT", "native")
gc.set_threshold(100_000)


def pytest_collection_finish() -> None:
    """Leave out what all test modules import when garbage is asked for in full, as torch's compiler and pytest's end do."""
    gc.freeze()
