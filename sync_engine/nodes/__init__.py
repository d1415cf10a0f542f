"""The executables of the sync half."""

from sensor_rig.early import end_quietly_on_interrupt

end_quietly_on_interrupt()
