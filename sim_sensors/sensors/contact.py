"""Contact switch: the net contact force on a body, thresholded and debounced to a bool."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from pydantic import model_validator

from rig_common import msgs
from sim_sensors.interface import Batch, Topic
from sim_sensors.interface.truth import TruthReader, WorldView
from sim_sensors.sensors.common.net_force import NetForceReader, add_net_force
from sim_sensors.sensors.common.phenomena import PhysicalConfig, PhysicalSensor
from sim_sensors.timing.arrays import Array, Layout
from sim_sensors.timing.units import NonNegative

INFRARED = 1
TIMES = ('air_s', 'contact_s', 'last_air_s', 'last_contact_s')
"""How long it has been open and closed by now (0: it is not), and was when that last ended, s."""
NS = 1e-9
"""Times closer than this are the same, s."""


class ContactConfig(PhysicalConfig):
    """A contact switch."""

    rate_hz: NonNegative = 100.0
    """Captures a second; 0 captures at every physics step."""
    against: str = ''
    """Count only contacts with this body; empty counts all."""
    threshold_n: NonNegative = 1.0
    """Force at which the switch closes, N."""
    release_n: NonNegative = 0.0
    """Force below which it opens again, N; 0 means `threshold_n` (no hysteresis)."""
    debounce_s: NonNegative = 0.0
    """A change must last this long before it is reported, s."""
    times: bool = False
    """Whether what is read also has for how long it has been open and closed, and was before."""

    @model_validator(mode='after')
    def _release_below_threshold(self) -> ContactConfig:
        if self.release_n > self.threshold_n:
            raise ValueError(
                f'release_n is {self.release_n}; it must not be larger than '
                f'threshold_n, {self.threshold_n}'
            )
        return self


class Contact(PhysicalSensor[ContactConfig]):
    """Whether something touches a body: truth is a force in N, what is read is a bool.

    The message is a Range with min_range == max_range: the one stamped standard type with a
    defined binary reading (-inf detected, +inf not).
    """

    config_class = ContactConfig
    topic = Topic('contact', 'sensor_msgs/msg/Range')
    remembers_captures = True
    on_tensors = True

    def __init__(self, name: str, config: ContactConfig) -> None:
        super().__init__(name, config)
        self.state_shapes = {'pending': ()}
        self.truth_layout = Layout({'force': (3,)}, float)
        """Net contact force in the sensor's axes, N."""
        self.returns = (
            Layout(dict.fromkeys(('contact', *TIMES), ()), np.float32)
            if config.times
            else Layout({'contact': ()}, bool)
        )
        """Closed (1) or open (0), and s."""
        self._truth_template = msgs.wrench_stamped(self.frame_id)
        self._template = msgs.range_reading(
            self.frame_id,
            radiation_type=INFRARED,
            field_of_view_rad=0.0,
            min_range_m=0.0,
            max_range_m=0.0,
        )
        self._release_n = config.release_n or config.threshold_n
        self.stateful = bool(
            self._release_n < config.threshold_n or config.debounce_s or config.times
        )

    def mount(self, spec: mujoco.MjSpec) -> None:
        """Add the site and the native contact sensor of its body."""
        super().mount(spec)
        add_net_force(spec, self.name, self.config.against)

    def reader(self, view: WorldView) -> TruthReader:
        """Read the net force."""
        return NetForceReader(view.model, self.name, with_torque=False)

    def post_process(self, values: Array, previous: Array | None, batch: Batch) -> Array:
        """Threshold with hysteresis, then let a change through only once it has lasted."""
        before = None if previous is None else previous[:, :1] > 0
        closed = self._closed(values, before, batch)
        return self._timed(closed, previous, batch) if self.config.times else closed

    def _timed(self, closed: Array, previous: Array | None, batch: Batch) -> Array:
        """Return [n, 5]: closed, how long open and closed, how long it was so the last time."""
        xp = batch.noise.xp
        out = self.return_layout.zeros(len(closed), xp)
        out[:, :1] = closed
        if previous is not None:
            holds = xp.concat([~closed, closed], 1)
            held = xp.concat([previous[:, :1] == 0, previous[:, :1] > 0], 1)
            lasted_s = previous[:, 1:3] + batch.period_s
            out[:, 1:3] = xp.where(holds & held, lasted_s, 0.0)
            out[:, 3:] = xp.where(held & ~holds, lasted_s, previous[:, 3:])
        return out

    def _closed(self, values: Array, previous: Array | None, batch: Batch) -> Array:
        """Return which switches are closed, [n, 1], given which were."""
        xp = batch.noise.xp
        force_n = xp.norm(values)
        if previous is None:
            return force_n > self.config.threshold_n
        limit = xp.where(previous, self._release_n, self.config.threshold_n)
        closed: Array = force_n > limit
        if self.config.debounce_s == 0.0:
            return closed
        pending = batch.state['pending']
        captures = xp.where((closed != previous)[:, 0], pending[batch.envs] + 1.0, 0.0)
        lasted_s = (captures - 1.0) * batch.period_s
        settled = lasted_s > self.config.debounce_s - NS
        pending[batch.envs] = xp.where(settled, 0.0, captures)
        return xp.where(settled[:, None], closed, previous)

    def blocks(self, row: Array) -> dict[str, Any]:
        """Say -inf when closed, +inf when open."""
        return {'range': -np.inf if row[0] else np.inf}
