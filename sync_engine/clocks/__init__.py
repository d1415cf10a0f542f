"""How wrong each sensor's clock is: the filter, clock steps, epochs."""
