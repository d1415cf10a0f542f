"""Records a rig that runs without ROS: what a recorder of a lockstep run would have heard."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from pydantic import BaseModel, PositiveInt, ValidationError

from rig_common import msgs
from rig_common.cdr import Template
from rig_common.errors import RigError
from rig_common.times import NS_PER_S
from rig_common.topics import truth_time_topic
from rig_common.validation import hint
from sensor_rig.bags.writer import BagWriter
from sim_sensors.interface.topics import env_prefix

if TYPE_CHECKING:
    from sensor_rig.inprocess import InProcessRig
    from sim_sensors.outbox import Message

NOTE = 'sensor_rig'
"""Where a recording says what a simulation knows of its timing: see `RigNote`."""
TIME_TYPE = 'sensor_msgs/msg/TimeReference'


def record_rig(
    rig: InProcessRig,
    writer: BagWriter,
    seconds: float,
    advance: Callable[[float], None],
    topics: Collection[str] = (),
) -> None:
    """Run `rig` for `seconds` of simulated time and write what it sends, at its arrival ticks.

    Besides the sensors' topics: what the rig's sync engine makes, `/tf_static`, the robot's
    description where it has one and, unless the rig hides its truth, `truth/time/<sensor>`,
    `truth/odom` and `/tf`. `topics` (relative or not) keeps only some.
    """
    note = RigNote(
        start_time_ns=rig.world.time_base.start_ns,
        step_ns=rig.world.dt_ns,
        captures_ns={
            name: {'duration': sensor.duration_ns, **sensor.stamp_points_ns}
            for name, sensor in rig.sensors.items()
        },
    )
    writer.note(NOTE, note.model_dump_json())
    Recorder(rig, writer, {topic.lstrip('/') for topic in topics}).run(seconds, advance)


class RigNote(BaseModel, frozen=True):
    """What `rig record` notes beside the messages of a simulated rig."""

    start_time_ns: int
    """When the simulation started; its sensors count from here."""
    step_ns: PositiveInt
    """The physics step; a message is recorded at the first one at or after its arrival."""
    captures_ns: dict[str, dict[str, int]]
    """Of each sensor: `duration` of a capture (a sweep, an exposure), and from its stamped instant
    to its `start`, `middle` and `end`."""

    @classmethod
    def of(cls, note: Mapping[str, str]) -> RigNote | None:
        """Return the note of a recording, None where it has none that can be read."""
        try:
            return cls.model_validate_json(note.get(NOTE, ''))
        except ValidationError:
            return None


def require_topics(rig: InProcessRig, topics: Collection[str]) -> None:
    """Raise RigError for the first of `topics` that `rig` does not publish."""
    known = [f'/{topic}' for topic in topics_of(rig)]
    for topic in topics:
        if '/' + topic.lstrip('/') not in known:
            raise RigError(
                f'the rig publishes no topic {topic!r}; {hint("/" + topic.lstrip("/"), known)}'
            )


def topics_of(rig: InProcessRig) -> list[str]:
    """Return every topic that a recording of `rig` may hold, relative."""
    from sensor_rig.bags.surroundings import Surroundings

    found = [] if rig.sync is None else list(rig.sync.output_topics())
    for env in range(rig.num_envs):
        prefix = env_prefix(env, rig.num_envs)
        for name, sensor in rig.sensors.items():
            found += [prefix + topic.of(name) for topic in sensor.topics()]
            if not rig.hides_truth:
                found.append(prefix + truth_time_topic(name))
    return sorted({*found, *Surroundings(rig).types})


class Recorder:
    """Writes the messages of a rig, tick by tick."""

    def __init__(self, rig: InProcessRig, writer: BagWriter, only: Collection[str] = ()) -> None:
        from sensor_rig.bags.surroundings import Surroundings  # the rest needs no simulator

        self._rig, self._writer, self._only = rig, writer, only
        self._times: dict[str, Template] = {}
        self._last_index: dict[str, int] = {}
        self._surroundings = Surroundings(rig)

    def run(self, seconds: float, advance: Callable[[float], None]) -> None:
        """Run the rig for `seconds` (simulated)."""
        end_ns = self._rig.elapsed_ns + round(seconds * NS_PER_S)
        before_ns = max(self._rig.elapsed_ns, 0)
        while self._rig.elapsed_ns < end_ns:
            self.tick()
            now_ns = self._rig.elapsed_ns
            if now_ns - before_ns >= NS_PER_S // 20:
                advance((now_ns - before_ns) / NS_PER_S)
                before_ns = now_ns

    def tick(self) -> None:
        """Make one physics step and write what arrives."""
        rig, around = self._rig, self._surroundings
        arrived = rig.step()
        if rig.elapsed_ns == 0:
            for topic, raw in around.latched():
                self._write(topic, around.types[topic], rig.time_ns, raw)
        for topic, raw in around.due():
            self._write(topic, around.types[topic], rig.time_ns, raw)
        for message in arrived:
            if not rig.hides_truth:
                self._write_truth_time(message)
            self._write(message.topic, message.type_name, rig.time_ns, message.data)
        for bundle in rig.bundles:
            for output in rig.outputs(bundle):
                self._write(output.topic, output.type_name, rig.time_ns, output.raw)

    def _write_truth_time(self, message: Message) -> None:
        """Write when a sample was truly captured, once for all the topics it goes out on."""
        sample = message.sample
        topic = env_prefix(sample.env, self._rig.num_envs) + truth_time_topic(sample.sensor)
        if self._last_index.get(topic) == sample.index:
            return
        self._last_index[topic] = sample.index
        if topic not in self._times:
            frame_id = self._rig.sensors[sample.sensor].frame_id
            self._times[topic] = msgs.time_reference(frame_id, sample.sensor)
        self._write(
            topic,
            TIME_TYPE,
            self._rig.time_ns,
            self._times[topic].fill(sample.capture_ns, time_ref=divmod(sample.stamp_ns, NS_PER_S)),
        )

    def _write(self, topic: str, type_name: str, time_ns: int, raw: bytes) -> None:
        if self._only and topic not in self._only:
            return
        self._writer.add_topic('/' + topic, type_name)
        self._writer.write('/' + topic, time_ns, raw)
