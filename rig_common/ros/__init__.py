"""Helpers for nodes of any kind: quality of service, executors, parameters, diagnostics."""
