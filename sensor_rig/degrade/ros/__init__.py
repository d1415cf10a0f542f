"""The degrade node."""
