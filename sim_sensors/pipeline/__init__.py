"""From a true value to a late, noisy, stamped sample; start reading at pipeline.py."""
