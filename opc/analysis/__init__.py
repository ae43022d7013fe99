"""From spec model and body tree to the typed IR: types, shapes, bounds, cost."""
