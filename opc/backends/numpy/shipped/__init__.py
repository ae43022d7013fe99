"""Modules that are copied as they are into every generated package, laid out for common
formatters.
"""
