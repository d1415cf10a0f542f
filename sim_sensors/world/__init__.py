"""The simulated world: model, mounts, drivers, physics, rendering; start at world.py."""
