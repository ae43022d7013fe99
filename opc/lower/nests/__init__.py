"""Statements that are not regular: which loop nest, scan or scatter each becomes, and what is computed ahead of it."""
