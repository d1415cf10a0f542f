"""What the engine does and has learned, as plain data."""
