"""What the results of a sweep say: curves, boundaries, indices, verdicts, the page."""
