"""The nodes of the simulating half: world and emulator."""
