"""What PopART promises of an op beyond values and gradients."""
