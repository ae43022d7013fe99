"""Data type and sizes of a tensor."""

import numpy as np
from popart_core import _TensorInfoCore, getTensorInfo


class TensorInfo(_TensorInfoCore):
    """`TensorInfo(dtype, shape)`, with PopART's name of the dtype ("FLOAT") or NumPy's type, or `TensorInfo(array)`."""

    def __init__(self, *args) -> None:
        if len(args) == 1 and isinstance(args[0], np.ndarray):
            args = (args[0].dtype, args[0].shape)
        if len(args) != 2:
            raise TypeError(f"Can not create TensorInfo with args {args}")
        dtype, shape = args
        if isinstance(dtype, (type, np.dtype)):
            dtype = getTensorInfo(np.empty(0, dtype)).dataType()
        super().__init__(dtype, list(shape))
