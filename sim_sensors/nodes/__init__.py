"""The nodes of the simulator: world and emulator."""

from sensor_rig.early import end_quietly_on_interrupt

end_quietly_on_interrupt()
