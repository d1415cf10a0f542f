"""One run of a sweep, the workers that carry runs out, and the results on disk."""
