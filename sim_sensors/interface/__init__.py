"""What a sensor is, for the world below it and the pipeline above it."""
