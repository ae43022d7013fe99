"""Loop nests as C++: point by point, or over rows with a vectorised lane, and how each kind of nest runs its loops."""
