"""From a stage to the loops of its kernel: statements of the loop IR, built and then transformed."""
