"""What both halves need: errors, times, message bytes, parameter files, lockstep."""
