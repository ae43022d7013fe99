"""What PopXL promises of an op beyond values and gradients."""
