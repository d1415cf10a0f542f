"""When samples are made, when they arrive, what their stamps say; needs no simulator."""
