"""Keys of `world:` in a rig file."""
