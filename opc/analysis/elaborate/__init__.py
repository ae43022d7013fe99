"""From a spec and its body trees to typed ops: signature, expressions, reads, calls and assignments."""
