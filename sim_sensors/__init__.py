"""Makes the streams: MuJoCo truth, imperfect sensors, delayed and stamped samples; no ROS."""

from rig_common.requirements import require

require('pydantic')
