"""Programs for Poplar: the stages of an op as expressions, reductions, products and codelets on whole tensors."""
