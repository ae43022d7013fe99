"""What the package `popxl` is built on; no program uses it directly."""
