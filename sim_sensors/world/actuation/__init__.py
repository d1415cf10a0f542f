"""From commands to actuators."""
