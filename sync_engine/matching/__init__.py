"""Which messages belong together: buffers, window, selection, assembly of bundles."""
