"""Modules that every generated package carries as they are, laid out for common formatters."""
