"""Worlds that somebody else made and steps: a copy of their model carries the sensors."""
