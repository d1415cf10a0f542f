"""Answers `read()`: rings of samples, delays, interpolation."""
