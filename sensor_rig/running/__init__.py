"""How a rig is run: which nodes it consists of, and how their process is doing."""
