"""Passes over the IR: normalisation, simplification, reverse and forward differentiation, transposition of reads."""
