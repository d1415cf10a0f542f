"""One input: its messages in order, its clock, its counters, and which messages it accepts."""
