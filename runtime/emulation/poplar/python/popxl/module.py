"""A graph as a class with a method `build`."""


class Module:
    """Derive from it, write `build(self, x, ...)`, and give an instance to `ir.create_graph`."""

    def build(self, *args, **kwargs):
        """Makes the ops of the graph; must be overridden."""
        raise NotImplementedError("Your popxl.Module must override `build` method")

    def __call__(self, *args, **kwargs):
        """The same as `build`."""
        return self.build(*args, **kwargs)
