"""What `world.drive` and `world.actuators` of a rig file can say: what it adds to a model."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from rig_common.validation import Strict
from sim_sensors.timing.units import Latency, Limits, NonNegative, Positive, Span
from sim_sensors.world.config.drivers import Names

LATENCY_KEYS = frozenset({'joint', 'delay_range_s', 'jitter_s', 'interpolation'})


class DriveConfig(Strict):
    """How a wheeled base turns twists into wheel speeds; replaces the model's custom entries."""

    body: str
    """Base body; x forward, its origin on the drive axle."""
    left: Names
    """Actuators (or their joints) of the left wheels."""
    right: Names
    """Actuators (or their joints) of the right wheels."""
    wheel_radius_m: Positive
    """Radius of the driven wheels, m."""
    track_m: Positive
    """Distance between left and right wheels, m."""


class ActuatorConfig(Strict):
    """An actuator that the rig file adds to the model, or one for each of several joints; without
    `joint` one that the model has, whose commands are late."""

    joint: str = ''
    """Joint that it drives; with `*` or `?` in it every joint it fits gets an actuator of the
    joint's name. Empty: the actuators of the model that the label names, by actuator or joint,
    also with `*` and `?`; they take the keys of latency only."""
    delay_range_s: Span | None = None
    """Latency (min, max) of its commands, s, drawn per environment and episode; `control_delay_s`
    when it is not given."""
    jitter_s: Latency = 0.0
    """Further latency, uniform in [0, jitter_s), s, drawn per command and physics step; a command
    that is overtaken is left out."""
    interpolation: Literal['zoh', 'linear', 'cubic'] = 'zoh'
    """What an actuator holds between two commands that arrived; jitter needs `zoh`."""
    type: Literal['motor', 'position', 'velocity'] = 'motor'
    """`motor` takes an effort, `position` and `velocity` are servos."""
    kp: Positive = 100.0
    """Stiffness of a position servo, N m/rad (N/m)."""
    kd: NonNegative = 0.0
    """Damping of a position servo, 0 for critical damping at the reference pose; gain of a
    velocity servo, which must be given; N m s/rad (N s/m)."""
    gear: Positive = 1.0
    """Gear ratio from joint to actuator."""
    ctrl_range: Limits = (0.0, 0.0)
    """Limits of the command; [0.0, 0.0] is none."""
    force_range: Limits = (0.0, 0.0)
    """Limits of the force, N m (N); [0.0, 0.0] is none."""
    armature: NonNegative = 0.0
    """Inertia of the rotor at the joint, kg m^2, on top of the model's."""

    @model_validator(mode='after')
    def _values_are_sane(self) -> ActuatorConfig:
        if self.type == 'velocity' and not self.kd:
            raise ValueError('kd is 0.0; a velocity servo needs its gain')
        if self.jitter_s and self.interpolation != 'zoh':
            raise ValueError(
                f'jitter_s is {self.jitter_s} and interpolation '
                f'{self.interpolation}; only zoh knows latencies that change'
            )
        given = sorted(self.model_fields_set - LATENCY_KEYS)
        if not self.joint and given:
            raise ValueError(
                f'{given[0]} is given without a joint; what the model has takes '
                f'delay_range_s, jitter_s and interpolation only'
            )
        return self
