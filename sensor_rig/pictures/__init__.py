"""PNG pictures: the gallery of a rig, scans before and after sync."""
