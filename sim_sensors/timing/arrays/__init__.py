"""Arrays of the pipeline: NumPy or torch, packed rows, columns."""
