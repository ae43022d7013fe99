"""The body language: text to an untyped tree with places."""
