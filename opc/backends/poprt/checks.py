"""What PopRT promises of an op beyond values."""
