"""Random numbers by index, and the noise processes that are made of them."""
