"""The spec file: its model, and the loader that keeps the place of everything in it."""
