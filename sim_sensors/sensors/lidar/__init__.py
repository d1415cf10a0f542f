"""The scanning sensors: lidar2d and lidar3d."""
