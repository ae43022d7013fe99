"""Sums of products that run in blocks: their terms, and what each factor's indices add up from."""
