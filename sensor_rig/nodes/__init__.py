"""The executables: they read the rig file and start the nodes of the two halves."""

from rig_common.early import end_quietly_on_interrupt, end_with_parent

end_quietly_on_interrupt()
end_with_parent()
