"""A sensor of your own in one file: a Doppler log that measures the speed over ground.

It says what it reads, what its numbers are called and how its message is filled. Rate, latency,
jitter, clock, loss, noise, faults and history are there without a line.

    ./rig python examples/own_sensor.py
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from rig_common import msgs
from sim_sensors.interface.batch import Batch
from sim_sensors.interface.config import SensorConfig
from sim_sensors.interface.sensor import Sensor, Topic
from sim_sensors.rig import Rig
from sim_sensors.timing.arrays.layout import Array, Layout
from sim_sensors.world.config.world import WorldConfig


class DopplerConfig(SensorConfig):
    """Keys beyond those of every sensor."""

    max_speed_m_s: Annotated[float, Field(gt=0.0)] = 5.0
    """Speed at which it saturates, m/s."""


class Doppler(Sensor[DopplerConfig]):
    """Linear velocity of the mount, in its own axes, m/s."""

    config_class = DopplerConfig
    topic = Topic('velocity', 'geometry_msgs/msg/TwistStamped')
    natives = ('velocimeter',)

    def __init__(self, name: str, config: DopplerConfig) -> None:
        """Name the columns and prepare the message."""
        super().__init__(name, config)
        self.truth_layout = Layout({'linear': (3,)}, float)
        """Velocity, m/s: what MuJoCo's own velocimeter says, and the field of the message."""
        self._template = msgs.twist_stamped(self.frame_id)

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Add the noise of every sensor, then saturate."""
        batch.noise.apply_readout_errors(values, batch)
        np.clip(values, -self.config.max_speed_m_s, self.config.max_speed_m_s, out=values)


def main() -> None:
    """Drive for three seconds and compare what was measured with the truth."""
    log = Doppler(
        'log',
        DopplerConfig(
            type='doppler',
            mount={'body': 'rover'},
            rate_hz=5.0,
            noise=0.02,
            delay_range_s=(0.1, 0.15),
            jitter_s=0.02,
            clock={'offset_s': 0.4},
        ),
    )
    rig = Rig(
        WorldConfig(model='rover_yard.xml', driver='figure_eight'), [log], seed=1, messages=True
    )
    for message in rig.run(3.0):
        sample = message.sample
        print(
            f'{message.topic}: {sample.values[0]:+.3f} m/s forward, truly '
            f'{sample.truth[0]:+.3f}; {(message.arrival_ns - sample.capture_ns) / 1e6:.0f} ms '
            f'late, stamped {(message.stamp_ns - sample.capture_ns) / 1e6:+.0f} ms'
        )


if __name__ == '__main__':
    main()
