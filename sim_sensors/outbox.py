"""The messages of a rig without ROS, in the order in which they arrive at the host."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import NamedTuple

from rig_common.times import NEVER_NS, in_seconds
from sim_sensors.interface import AnySensor, Sample
from sim_sensors.interface.topics import sensor_topics
from sim_sensors.pipeline.in_flight import InFlight
from sim_sensors.pipeline.pipeline import Pipeline


class Message(NamedTuple):
    """One message as it arrives at the host."""

    arrival_ns: int
    """When the host has it, ns of simulated time."""
    topic: str
    """Relative topic name; under `env_<i>/` where there are several environments."""
    type_name: str
    data: bytes
    """The serialised message (CDR)."""
    stamp_ns: int
    """Its header stamp: what the sensor's clock said."""
    sample: Sample
    """The sample it was made of, with the truth about it."""

    def __repr__(self) -> str:
        """Return one line: topic, times and size, not the bytes."""
        return (
            f'Message({self.topic}, {self.type_name}, {len(self.data)} bytes, '
            f'stamp {in_seconds(self.stamp_ns)}, arrival {in_seconds(self.arrival_ns)})'
        )


class Outbox:
    """Encodes what arrives; asks the pipelines only when something does."""

    def __init__(self, sensors: Mapping[str, AnySensor], num_envs: int) -> None:
        """Name the topics of `sensors` in every environment."""
        self._names = {
            (name, env): sensor_topics(sensor, env, num_envs)
            for name, sensor in sensors.items()
            for env in range(num_envs)
        }
        self._flights: list[tuple[Pipeline, InFlight]] = []
        self.next_ns = NEVER_NS
        """When the next sample arrives; `look` again after some were sent off."""

    def restart(self, pipelines: list[Pipeline]) -> None:
        """Take the messages of these from now on, one pipeline a sensor."""
        self._flights = [
            (pipeline, pipeline.in_flight)
            for pipeline in pipelines
            if pipeline.in_flight is not None
        ]
        self.next_ns = NEVER_NS

    def look(self) -> None:
        """See when the next sample arrives."""
        next_ns = NEVER_NS
        for _, flight in self._flights:
            next_ns = min(next_ns, flight.next_ns())
        self.next_ns = next_ns

    def due(self, now_ns: int) -> list[Message]:
        """Take out the messages that have arrived by `now_ns`, in order of arrival."""
        due: list[Message] = []
        for pipeline, flight in self._flights:
            if flight.next_ns() <= now_ns:
                for sample in pipeline.due(now_ns):
                    due += self._encode(pipeline.sensor, sample)
        self.look()
        if len(due) > 1:
            due.sort(key=attrgetter('arrival_ns', 'topic'))
        return due

    def _encode(self, sensor: AnySensor, sample: Sample) -> list[Message]:
        names = self._names[sensor.name, sample.env]
        return [
            Message(
                sample.arrival_ns,
                names[topic.suffix],
                topic.type_name,
                raw,
                sample.stamp_ns,
                sample,
            )
            for topic, raw in sensor.encode(sample)
        ]
