"""What a recording of a simulated rig holds besides its streams: for RViz, Foxglove, scoring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rig_common import msgs
from rig_common.topics import truth_topic
from sim_sensors.interface.topics import env_prefix
from sim_sensors.world.scene.pose_messages import (
    DESCRIPTION_TOPIC,
    DESCRIPTION_TYPE,
    ODOM_RATE_HZ,
    ODOM_TYPE,
    SCENE_RATE_HZ,
    TF_TYPE,
    FrameMessages,
    TrueOdometry,
    robot_description,
    schedule_of,
)

if TYPE_CHECKING:
    from sensor_rig.inprocess import InProcessRig

TF, TF_STATIC = 'tf', 'tf_static'


class Surroundings:
    """What a recording holds besides the streams: true poses, frames, the robot's description."""

    def __init__(self, rig: InProcessRig) -> None:
        world, hidden = rig.world, rig.hides_truth
        self._world = world
        self.types: dict[str, str] = {}
        """Type by topic."""
        self._odometry = None if hidden else TrueOdometry(world)
        self._odom_times = schedule_of(ODOM_RATE_HZ, world)
        self._odom_topics = (
            []
            if hidden
            else [
                env_prefix(env, world.num_envs) + truth_topic('odom')
                for env in range(world.num_envs)
            ]
        )
        self.types |= dict.fromkeys(self._odom_topics, ODOM_TYPE)
        self._frames = (
            None if world.num_envs > 1 else FrameMessages(world, list(rig.sensors.values()))
        )
        self._frame_times = schedule_of(SCENE_RATE_HZ, world)
        if self._frames is not None:
            self.types[TF_STATIC] = TF_TYPE
            if self._frames.can_move:
                self.types[TF] = TF_TYPE
        self._description = robot_description(world)
        if self._description is not None:
            self.types[DESCRIPTION_TOPIC] = DESCRIPTION_TYPE

    def latched(self) -> Iterator[tuple[str, bytes]]:
        """Yield (topic, message) of what is said once, at the start."""
        if self._frames is not None:
            self._frames.begin(self._world)
            yield TF_STATIC, self._frames.static()
        if self._description is not None:
            yield DESCRIPTION_TOPIC, msgs.string_message(self._description)

    def due(self) -> Iterator[tuple[str, bytes]]:
        """Yield (topic, message) of what belongs to the present tick."""
        world = self._world
        if self._odometry is not None and self._odom_times.index_at(world.time_ns) is not None:
            for env, topic in enumerate(self._odom_topics):
                yield topic, self._odometry.message(world, env)
        if TF in self.types and self._frame_times.index_at(world.time_ns) is not None:
            assert self._frames is not None
            yield TF, self._frames.moving(world)
