"""Modules that opc copies into packages and wheels, where they run without it."""
