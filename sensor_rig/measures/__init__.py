"""The numbers of one run, by documented keys (docs/sweep.md), and claims about them."""
