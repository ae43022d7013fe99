"""From an op to its loops: flattening, scheduling into stages, passes over rows."""
