"""What the backends of Graphcore's frameworks share: dtypes, the classes of ops, their rules in C++, and where the SDK is."""
