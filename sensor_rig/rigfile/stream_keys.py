"""What a degraded stream can be told: which topics, and the very keys of a simulated sensor."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from rig_common.errors import Mistake, RigError
from rig_common.msgs.catalogue import CATALOGUE
from rig_common.text import near
from rig_common.validation import Strict, validated
from sim_sensors.timing.clock_config import ClockConfig
from sim_sensors.timing.config import TimingConfig
from sim_sensors.timing.units import NonNegative

AUTOMATIC = -1.0
"""Stands for "as the recording says"; ROS parameters know no null."""
TYPES = {row.sensor: row.name for row in CATALOGUE.values() if row.noise}
"""Sensor types whose noise can be put on recorded messages, and on messages of which type."""
SIMULATED_ONLY = (
    'mount',
    'frame_id',
    'phase_s',
    'truth_rate_hz',
    'trigger',
    'trigger_delay_s',
    'delay_backend',
    'interpolation',
    'history_length',
    'eager',
)
"""Keys of a simulated sensor that say nothing about a stream that exists already."""


class StreamKeys(Strict):
    """What a stream has besides the timing, and maybe the noise, of a simulated sensor."""

    topics: Annotated[tuple[str, ...], Field(min_length=1)]
    """Topics of the stream, or patterns (`*` any text, `?` one character, `[ab]` one of these).
    Messages of several topics with one stamp (a picture and its camera_info) share their fate."""
    base: Literal['arrival', 'stamp'] = 'arrival'
    """What the delay counts from: the time the message was received, or its stamp as the time of
    its capture."""
    rate_hz: NonNegative = 0.0
    """Messages a second that are kept, at most; 0 keeps all."""
    capture_s: Annotated[float, Field(ge=-1.0, le=60.0)] = AUTOMATIC
    """With `base: stamp`: from the stamp to the end of a capture (a sweep, an exposure), s. -1 is
    what `rig record` noted for the sensor of this name, else 0."""
    start_time_s: Annotated[float, Field(ge=-1.0, le=2.1e9)] = AUTOMATIC
    """The time, on the stamps, that the clock's drift and the faults' `at_s` count from, s. -1 is
    the start of the recording, or of the stream where its stamps are of another epoch."""
    clock_of: str = ''
    """Another stream whose clock stamps this one too; `clock` is then that stream's."""

    @field_validator('topics')
    @classmethod
    def _are_names(cls, topics: tuple[str, ...]) -> tuple[str, ...]:
        for topic in topics:
            if not topic.strip('/') or any(letter.isspace() for letter in topic):
                raise ValueError(
                    f'{topic!r} is not a topic; write a name such as /imu/data or a '
                    f'pattern such as /camera/*'
                )
        return topics


class StreamConfig(StreamKeys, TimingConfig):
    """A stream of messages of any type: delay, clock, loss, faults, rate."""

    @model_validator(mode='after')
    def _faults_need_no_payload(self) -> StreamConfig:
        for name, fault in self.faults.items():
            if fault.what.changes_value and not hasattr(self, 'type'):
                raise ValueError(
                    f'faults.{name}.kind is {fault.kind}, which changes values; that '
                    f'needs a type, one of {", ".join(TYPES)}'
                )
        return self

    @model_validator(mode='after')
    def _one_clock(self) -> StreamConfig:
        if self.clock_of and self.clock != ClockConfig():
            raise ValueError(
                f"clock_of is {self.clock_of!r}, so the clock is that stream's; leave out clock"
            )
        return self


@cache
def typed_config(type_name: str) -> type[StreamConfig]:
    """Return the model of a stream with the noise keys of the sensor type `type_name`."""
    from sim_sensors.registry import sensor_class

    sensor = sensor_class(type_name).config_class

    class TypedStreamConfig(StreamConfig, sensor):  # type: ignore[misc, valid-type]
        """A stream whose values get the noise of a simulated sensor."""

        @model_validator(mode='after')
        def _is_of_a_recording(self) -> TypedStreamConfig:
            for key in SIMULATED_ONLY:
                if getattr(self, key) != type(self).model_fields[key].default:
                    raise ValueError(f'{key} belongs to a simulated sensor; a stream has none')
            if not self.rate_hz:
                raise ValueError(
                    f'rate_hz is missing; noise of type {type_name} is stated for a '
                    f'rate, so give that of the stream'
                )
            return self

    return TypedStreamConfig


def stream_config(raw: Mapping[str, object], where: str) -> StreamConfig:
    """Return a validated stream; with `type` it takes that sensor's noise keys, too."""
    if 'type' not in raw:
        return validated(StreamConfig, raw, where, also=('type', 'extends'))
    if raw['type'] not in TYPES:
        raise RigError(
            Mistake(
                f'{where}.type is {raw["type"]!r}; {near(raw["type"], TYPES)}noise on recorded '
                f'values is known for {", ".join(TYPES)} (leave out type where only the '
                f'timing is meant)',
                'type',
            )
        )
    return validated(typed_config(raw['type']), raw, where, also=('extends',))


def check_clocks(streams: Mapping[str, StreamConfig], where: str) -> None:
    """Refuse a `clock_of` that names no stream, or one that has no clock of its own."""
    for name, config in streams.items():
        owner = config.clock_of
        if owner and (owner == name or owner not in streams or streams[owner].clock_of):
            own = [each for each, other in streams.items() if not other.clock_of and each != name]
            raise RigError(
                f'{where}.{name}.clock_of is {owner!r}; it should be a stream with a '
                f'clock of its own: {", ".join(own) or "there is none"}'
            )
