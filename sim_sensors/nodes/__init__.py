"""The nodes of the simulator: world and emulator."""
