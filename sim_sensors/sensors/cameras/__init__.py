"""Cameras: colour, depth, segmentation."""
