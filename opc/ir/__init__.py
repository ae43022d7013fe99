"""The typed intermediate representation: index notation, its functions, printer and verifier."""
