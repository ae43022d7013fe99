"""Formulas of ops as MathML Core, which browsers draw by themselves."""
