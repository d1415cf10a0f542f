"""The same recording with right stamps."""
