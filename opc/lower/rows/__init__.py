"""Regular statements, whose accesses are bare indices: flattened into steps and fused into stages over rows."""
