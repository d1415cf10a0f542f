"""Benchmarks that print ratios; each has run(quick) -> dict."""
