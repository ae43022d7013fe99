"""The loop IR: typed statements and values, their verifier and printer, and the transformations of loops."""
