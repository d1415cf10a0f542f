"""Ray casting against a MuJoCo model: one interface, several backends, one answer."""
