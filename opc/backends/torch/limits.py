"""What torch does not compute with dtypes that it has tensors of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from opc.backends.base import Unsupported
from opc.ir.dtypes import DTYPES, TYPE_SETS

_SELDOM = re.compile("|".join(d.row.torch[1] for d in DTYPES if d.row.torch is not None and d not in TYPE_SETS["any"]))
"""Names in torch's messages of the dtypes that few of its operators take."""


@contextmanager
def where_torch_computes() -> Iterator[None]:
    """Raise Unsupported where an operator of torch's own refuses such a dtype; also a decorator."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        lacking = _SELDOM.search(str(error))
        if lacking is None:
            raise
        raise Unsupported(f"torch computes little with {lacking[0]}: {str(error).splitlines()[0]}") from error
