"""sensor_rig: sensor streams with known timing and known truth, and the engine that syncs them."""

__version__ = '0.2.0'
