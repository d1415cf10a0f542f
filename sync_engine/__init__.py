"""Puts sensor streams back together in time and says how well it did; needs no ROS."""

from rig_common.requirements import require

require('pydantic')
