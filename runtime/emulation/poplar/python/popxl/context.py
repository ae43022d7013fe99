"""What is current while a graph is built: the graph, the names, the IPU, the hooks."""

from contextlib import contextmanager
from functools import wraps

import popart._internal.ir as _ir


class Context:
    """The one context of a process; `get_current_context()` gives it."""

    def __init__(self) -> None:
        self._graphs: list = []
        self._ipu_id = 0
        self._in_sequence = None
        self._name_scope: list[str] = []
        self._api: list[str] = []
        self._hook_handle = 0
        self._op_created_hooks: dict = {}

    def _get_op_settings(self, name: str):
        """The settings of an op that is made now under this name."""
        settings = _ir.Settings(self.graph._pb_graph, "/".join((*self._name_scope, name)))
        settings.vgraphId = self._ipu_id
        return settings

    @property
    def ipu_id(self):
        """The IPU that ops are placed on."""
        return self._ipu_id

    @property
    def name_scopes(self) -> list[str]:
        """The names that stand before the name of an op."""
        return list(self._name_scope)

    def push_graph(self, graph) -> None:
        """Makes `graph` the current one; graphs of two IRs can't be nested."""
        if self._graphs and self._graphs[0].ir != graph.ir:
            raise RuntimeError(
                "Trying to a create a context manager nested in another context, when the previous context's Ir is different. "
                f"{self._graphs[0].ir} != {graph.ir}"
            )
        self._graphs.append(graph)

    def pop_graph(self):
        """Ends what push_graph began."""
        return self._graphs.pop()

    def _need(self, what: str):
        if not self._graphs:
            raise RuntimeError(
                f"Trying to access {what}, but no graph has been selected. Hint - try performing the operations in a context "
                "manager (for example `with graph_instance:`) or inside a function that's called by `popxl.Ir().create_graph()`"
            )
        return self._graphs[-1]

    @property
    def graph(self):
        """The graph that ops are added to."""
        return self._need("a graph")

    @property
    def main_graph(self):
        """The main graph of the current IR."""
        return self._need("the main_graph").main_graph

    @property
    def ir(self):
        """The current IR."""
        return self._need("the ir").ir

    @property
    def in_sequence(self):
        """Whether ops run in the order in which they are made: True, False, or None for no say."""
        return self._in_sequence

    def register_op_created_hook(self, fn) -> int:
        """Calls `fn` with each op that is made from now on; returns a handle."""
        self._hook_handle += 1
        self._op_created_hooks[self._hook_handle] = fn
        return self._hook_handle

    def remove_op_created_hook(self, handle: int) -> None:
        """Ends what register_op_created_hook began."""
        if handle not in self._op_created_hooks:
            raise ValueError(f"Unknown op created hook {handle}")
        del self._op_created_hooks[handle]

    def _op_created(self, op) -> None:
        """Every op that is made is told here, and the hooks are called."""
        for hook in self._op_created_hooks.values():
            hook(op)


_CURRENT_CONTEXT = Context()


def get_current_context() -> Context:
    """The context of this process."""
    return _CURRENT_CONTEXT


def get_current_graph():
    """The graph that ops are added to; raises RuntimeError outside of every graph."""
    return _CURRENT_CONTEXT.graph


def get_main_graph():
    """The main graph; raises RuntimeError outside of every graph."""
    return _CURRENT_CONTEXT.main_graph


def get_ir():
    """The current IR; raises RuntimeError outside of every graph."""
    return _CURRENT_CONTEXT.ir


gcg = get_current_graph
gmg = get_main_graph
gir = get_ir


@contextmanager
def ipu(ipu: int):
    """Places the ops of the context on this IPU."""
    previous, _CURRENT_CONTEXT._ipu_id = _CURRENT_CONTEXT._ipu_id, ipu
    try:
        yield ipu
    finally:
        _CURRENT_CONTEXT._ipu_id = previous


@contextmanager
def in_sequence(mode=True):
    """Runs the ops of the context in the order in which they are made: the emulation always does."""
    if mode is None:
        raise TypeError("`None` cannot be passed to `in_sequence`. Try `False` instead.")
    previous, _CURRENT_CONTEXT._in_sequence = _CURRENT_CONTEXT._in_sequence, None if mode == "pass" else mode
    try:
        yield mode
    finally:
        _CURRENT_CONTEXT._in_sequence = previous


@contextmanager
def name_scope(name: str):
    """Puts `name/` before the names of the ops of the context."""
    _CURRENT_CONTEXT._name_scope.append(name)
    try:
        yield _CURRENT_CONTEXT.name_scopes
    finally:
        _CURRENT_CONTEXT._name_scope.pop()


@contextmanager
def io_tiles():
    """Accepted for what is written with it: the emulation has no I/O tiles."""
    yield


def op_debug_context(name):
    """Decorates a function that makes ops: `@op_debug_context` or `@op_debug_context("name")`."""

    def outer(function, label):
        @wraps(function)
        def wrapper(*args, **kwargs):
            _CURRENT_CONTEXT._api.append(label)
            try:
                return function(*args, **kwargs)
            finally:
                _CURRENT_CONTEXT._api.pop()

        return wrapper

    if callable(name):
        return outer(name, name.__name__)
    return lambda function: outer(function, name)


@contextmanager
def debug_context_frame_offset(i: int):
    """Accepted for what is written with it: the emulation records no source lines."""
    yield i
