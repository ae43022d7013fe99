"""That every read stands inside its operand: accesses, ranges of values, and the prover."""
