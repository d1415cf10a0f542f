"""When things happen: capture schedules, ticks, pacing against the wall clock."""
