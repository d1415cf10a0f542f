"""A recording, synchronised: the pass over it, what is recorded of it, and its report."""
