"""What editors and code hosts ask for: layout, answers while one types, and results of checks in their formats."""
