"""One input: its messages in order, its clock, its counters, and who gets in."""
