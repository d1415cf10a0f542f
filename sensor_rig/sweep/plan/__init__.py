"""The plan of a sweep: read, checked, and turned into points to run."""
