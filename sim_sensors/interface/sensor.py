"""What a sensor is: a config, named arrays, four stages with defaults, and its messages."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from rig_common.quaternions import product
from rig_common.times import seconds_to_ns
from sim_sensors.interface.batch import Batch, Timeline
from sim_sensors.interface.config import SensorConfig
from sim_sensors.timing.arrays import Array, Layout, Movable

if TYPE_CHECKING:
    import mujoco

    from rig_common.cdr import Template
    from sim_sensors.interface.truth import TruthReader, WorldView
    from sim_sensors.timing.schedule import Schedule

ConfigT = TypeVar('ConfigT', bound=SensorConfig, covariant=True)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that a sensor publishes."""

    suffix: str
    """Name after `<sensor>/`; a suffix that starts with `/` stands alone (`/joint_states`)."""
    type_name: str
    """`sensor_msgs/msg/Imu` and the like."""
    is_global: bool = False
    """Whether ROS has it outside of namespaces (`/tf`)."""

    def of(self, sensor: str) -> str:
        """Return the relative topic name for a sensor called `sensor`."""
        return self.suffix[1:] if self.suffix.startswith('/') else f'{sensor}/{self.suffix}'


class Origin(NamedTuple):
    """The frame that poses or velocities in a sensor's messages are given in."""

    frame_id: str
    yaw_rad: float = 0.0
    """Its heading in the world, counter-clockwise from the world's x axis, rad."""
    at_start: bool = False
    """Whether it lies where the mount is when an episode starts, level; else at the world's."""
    places_base: bool = False
    """Whether the sensor publishes the transform from it to the base."""


@dataclass(slots=True)
class Sample:
    """One captured measurement with its three times; not frozen, as that trebles its making."""

    sensor: str
    env: int
    index: int
    """Capture number k."""
    capture_ns: int
    """True time of the capture (of its first ray or row)."""
    stamp_ns: int
    """What the sensor's clock says; goes into the header."""
    arrival_ns: int
    """When the host has it: capture + duration + delay + jitter."""
    values: Array = field(repr=False)
    """Return-space row [width], frozen at capture."""
    truth: Array = field(repr=False)
    """Ground-truth return-space row [width] of the same capture, undelayed and noise-free."""

    start_ns: int = 0
    """Time at which the run started; the times above count from there, as stamps do."""

    @property
    def elapsed_ns(self) -> int:
        """Time of the capture since the start of the run: what a scan pattern counts from, ns."""
        return self.capture_ns - self.start_ns


class Sensor(Movable, ABC, Generic[ConfigT]):
    """One sensor of a rig. Holds no per-environment state: that is the pipeline's."""

    config_class: ClassVar[type[SensorConfig]] = SensorConfig
    stateful: bool = False
    """True when `respond` or `post_process` depends on earlier ticks: then nothing is skipped."""
    remembers_captures: bool = False
    """True where all that is remembered are captures: truth between them is then not needed."""
    disturbs: bool = True
    """False where this config makes `physics_imperfections` the identity."""
    responds: bool = True
    """False where this config makes `respond` the identity: then it is never called."""
    on_tensors: ClassVar[bool] = False
    """True where the stages work on torch tensors too: nothing but what `Arrays` has."""
    truth_responds: ClassVar[bool] = True
    """False where the response is an error of the sensor (a bandwidth, play), and ground truth is
    free of it; True where it makes the quantity (heat that was taken up, a distance driven)."""
    timeline_length: ClassVar[int] = 1
    """How many earlier truth ticks `respond` of a stateful sensor may look back at."""
    frame_quat_wxyz: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """Rotation from the mount to `frame_id`; only cameras turn it (REP 103 optical frames)."""
    level_frame: bool = False
    """True when `frame_id` is at the mount but keeps the world's axes, however the mount turns."""
    heavy: bool = False
    """True when truth is costly (rendering, large scans): made in worker threads over ROS."""
    state_shapes: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    """Extra float64 state per environment, zeroed on reset."""
    truth_layout: Layout
    """Intermediate space: what the world measures and the stages work on. Required."""
    returns: Layout | None = None
    """What a user reads, where that is another space."""
    natives: Sequence[str] = ()
    """MuJoCo's own sensors that it puts on its site ('gyro', 'framepos' ...)."""
    topic: Topic
    """What it publishes; of several, the first."""
    _template: Template
    """The message on that topic."""
    _truth_template: Template | None = None
    """The message of its truth, where that is another."""

    def __init__(self, name: str, config: ConfigT) -> None:
        """Make sensor `name`; derive everything constant from `config` here."""
        self.name = name
        self.config = config
        self.frame_id = config.frame_id or name

    # ---- arrays ---------------------------------------------------------------------------

    @property
    def return_layout(self) -> Layout:
        """Return space: what a user reads; `returns`, or else the truth layout."""
        return self.truth_layout if self.returns is None else self.returns

    @property
    def fine_truth(self) -> bool:
        """Whether `respond` needs truth between captures, at `truth_rate_hz`."""
        return self.stateful and not self.remembers_captures

    def truth_ticks(self, captures: Schedule) -> Schedule:
        """Return when truth is needed: at `captures`, or more often for `respond`."""
        if not self.fine_truth:
            return captures
        return captures.finer(self.config.truth_rate_hz, self.name)

    @property
    def duration_ns(self) -> int:
        """How long a capture takes (a sweep, a readout), ns; delay counts from its end."""
        return 0

    @property
    def stamp_points_ns(self) -> dict[str, int]:
        """From the time of a capture to its start, middle and end, ns; see `ClockConfig`."""
        return {'start': 0, 'middle': self.duration_ns // 2, 'end': self.duration_ns}

    # ---- the world's side -----------------------------------------------------------------

    def mount(self, spec: mujoco.MjSpec) -> None:
        """Add what the truth needs before the model is compiled: its site, `natives` on it."""
        from sim_sensors.interface.mounts import add_native, add_site

        add_site(spec, self.name, self.config.mount)
        for kind in self.natives:
            add_native(spec, self.name, kind)

    def reader(self, view: WorldView) -> TruthReader:
        """Return what fills truth rows from the compiled world: by default, with its `natives`."""
        from sim_sensors.interface.truth import ColumnReader

        return ColumnReader(view.model, self.native_names)

    @property
    def native_names(self) -> list[str]:
        """The names of its `natives`."""
        return [f'{self.name}/{kind}' for kind in self.natives]

    def origin(self) -> Origin | None:
        """Return the frame its poses or velocities are given in; None where there are none."""
        return None

    # ---- the pipeline's stages, in place on [n, width] ---------------------------------------

    def physics_imperfections(self, values: Array, batch: Batch) -> None:
        """Disturb the phenomenon itself; it feeds the response model. Measured branch only."""

    def sense(self, truth: Array, batch: Batch) -> Array:
        """Return what is sensed of `truth`, new rows: override it to make both in one pass."""
        sensed = batch.noise.xp.copy(truth)
        self.physics_imperfections(sensed, batch)
        return sensed

    def respond(self, values: Array, timeline: Timeline, batch: Batch) -> None:
        """Apply the response model (bandwidth, thermal lag); see `truth_responds`."""

    def integrate(self, values: Array, timeline: Timeline, tick_s: float) -> None:
        """Instead of `respond`: the response to consecutive ticks at once, [ticks, n, width].

        It is one for both branches, and ticks between captures may wait for the next capture.
        """

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Apply noise, bias, random walk and resolution to a working copy; measured only."""
        batch.noise.apply_readout_errors(values, batch)

    def post_process(self, values: Array, previous: Array | None, batch: Batch) -> Array:
        """Project to return space (cast, clamp, threshold).

        `previous` is the batch's last return-space rows [n, width], None before the first.
        Return `values` itself where this stage is the identity: nothing is then copied.
        """
        return values

    # ---- messages -------------------------------------------------------------------------

    def truth_template(self) -> tuple[str, Template]:
        """Return (type name, template) of `truth/<name>`, see `truth_to_blocks`."""
        template = self._truth_template or self._template
        return template.type_name, template

    def truth_to_blocks(self, row: Array) -> dict[str, Any]:
        """Return the template's blocks for a truth row [width]; by default the named fields."""
        return self.truth_layout.unpack(row)

    def blocks_to_truth(self, blocks: Mapping[str, Array], out: Array) -> None:
        """Write the blocks of a received truth message into the row `out` [width]."""
        for name, place in self.truth_layout.slices.items():
            out[place] = blocks[name].reshape(-1)

    def topics(self) -> Sequence[Topic]:
        """Return the topics it publishes."""
        return (self.topic,)

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        """Return the CDR bytes of every topic for one sample, stamped `sample.stamp_ns`."""
        blocks = self.blocks(sample.values)
        return [(self.topic, self._template.fill(sample.stamp_ns, **blocks))]

    def blocks(self, row: Array) -> dict[str, Any]:
        """Return the blocks of its message for a row [width] of return space: its fields."""
        return self.return_layout.unpack(row)

    # ---- for people and for learning --------------------------------------------------------

    def metadata(self) -> dict[str, object]:
        """Return plain facts: type, rate, layout, frame."""
        return {
            'name': self.name,
            'type': self.config.type,
            'rate_hz': self.config.rate_hz,
            'frame_id': self.frame_id,
            'dtype': str(self.return_layout.dtype),
            'fields': {k: list(v) for k, v in self.return_layout.shapes.items()},
            'topics': {t.suffix: t.type_name for t in self.topics()},
        }

    def sync_facts(self) -> dict[str, object]:
        """Return keys of a sync input that follow from this sensor (a camera's focal length)."""
        return {}

    def bounds(self) -> tuple[float, float]:
        """Return (low, high) of the return space, for observation spaces."""
        return (-np.inf, np.inf)

    def observation_space(self) -> Any:
        """Return a gymnasium Box of one environment's row (needs gymnasium)."""
        from gymnasium.spaces import Box

        low, high = self.bounds()
        layout = self.return_layout
        if layout.dtype == np.bool_:
            from gymnasium.spaces import MultiBinary

            return MultiBinary(layout.width)
        return Box(low, high, (layout.width,), layout.dtype.type)

    def observation(self, values: Array) -> Array:
        """Return the columns of readings [..., width] that `observation_space` describes."""
        return values

    def validate(self, view: WorldView) -> None:
        """Raise RigError where this sensor cannot work in that world."""

    @property
    def smallest_latency_ns(self) -> int:
        """Least time between capture and arrival, ns."""
        from sim_sensors.timing.marginals import values_of

        least_s = float(values_of(self.config.latency).min())
        return self.duration_ns + seconds_to_ns(self.config.delay_range_s[0]) + int(least_s * 1e9)


AnySensor: TypeAlias = Sensor[SensorConfig]
"""A sensor of whatever type."""


class FramePose(NamedTuple):
    """Where the frame of a sensor's messages is on the body that carries it."""

    body: int
    """Body id; 0 is the world."""
    pos_m: list[float]
    quat_wxyz: tuple[float, float, float, float]


def frame_pose(model: mujoco.MjModel, sensor: AnySensor) -> FramePose | None:
    """Return the pose of `sensor.frame_id` in a compiled model; None for one without a mount."""
    import mujoco

    site = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, sensor.name)
    if site < 0:
        return None
    w, x, y, z = model.site_quat[site].tolist()
    return FramePose(
        int(model.site_bodyid[site]),
        model.site_pos[site].tolist(),
        product((w, x, y, z), sensor.frame_quat_wxyz),
    )
