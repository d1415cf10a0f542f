"""The node of the synchronising half."""
