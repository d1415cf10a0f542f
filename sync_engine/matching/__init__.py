"""Which messages belong together: window, selection, assembly of bundles."""
