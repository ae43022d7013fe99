"""Python source that generated modules carry along, written as these are."""
