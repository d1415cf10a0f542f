"""One file a sensor: its config and its class."""
