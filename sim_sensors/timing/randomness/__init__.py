"""Random numbers by index."""
