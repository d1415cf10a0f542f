"""How nodes follow the time of the world: messages, a follower, handover in one process."""
