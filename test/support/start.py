"""The time at which a rig's runs start unless its file says otherwise."""

START_NS = 1_000_000_000_000
"""`world.start_time_s` by default, ns: what stamps and /clock count from."""
