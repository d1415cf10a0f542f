"""From model files to a compiled model."""
