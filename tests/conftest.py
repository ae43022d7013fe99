"""What holds for all tests: kernels are compiled for this machine alone. Tests of the other variants ask for them."""

import os

os.environ.setdefault("OPC_VARIANT", "native")
