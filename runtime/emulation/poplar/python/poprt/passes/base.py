"""The registry of passes over models."""

import onnx

PASSES: dict[str, type] = {}


class Pass:
    """A pass over a model: derive from it, write `run`, and register it under a name."""

    def __init__(self, *args, **kwargs) -> None:
        pass

    def run(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
        """The model after the pass; must be overridden."""
        raise NotImplementedError(f"{type(self).__name__} has no method `run`.")

    def __call__(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
        """The same as `run`."""
        return self.run(onnx_model)

    def traverse_graph(self, graph: onnx.GraphProto, transform, is_main_graph: bool = True) -> onnx.GraphProto:
        """Applies `transform(graph, is_main_graph)` to the graph and to those inside of its nodes."""
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    attribute.g.CopyFrom(self.traverse_graph(attribute.g, transform, False))
        return transform(graph, is_main_graph)


def register(name: str):
    """Decorates a class derived from Pass: `@register("name")`; raises ValueError for a name that is taken."""

    def decorate(cls):
        if PASSES.get(name, cls) is not cls:
            raise ValueError(f"There is a pass named {name} already.")
        PASSES[name] = cls
        return cls

    return decorate


def get_registered_passes() -> list[str]:
    """The names of all passes."""
    return sorted(PASSES)
