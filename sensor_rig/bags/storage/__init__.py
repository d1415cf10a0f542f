"""The files of recordings: one module per format, each read to the end of what is whole."""
