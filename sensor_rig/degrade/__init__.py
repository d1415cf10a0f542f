"""The faults of simulated sensors on streams that somebody else made: recordings, live topics."""
