"""Affine forms and scalar expressions as text: one printer, and a dialect for each target."""
