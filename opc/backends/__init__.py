"""One subpackage for each framework, and what they share: the contract, the registry, loading of generated packages."""
