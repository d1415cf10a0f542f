"""The executables of the sync half."""
