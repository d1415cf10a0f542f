"""Corrections beside a recording: stamps are put right while it is read, the file stays as it is.

    version: 1
    corrections:
      /lidar/points: {stamp_point: end}
      /imu/data: {clock: {offset_s: 0.012, drift_ppm: -15.0}}

The keys are those of a rig file: `clock` says how far the sensor's clock is off, `stamp_point`
where in a sweep it is stamped. Corrected stamps are on the host's clock, at the start of a sweep.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import yaml
from pydantic import Field

from rig_common.cdr import CdrError, read_stamp_ns
from rig_common.errors import RigError, why
from rig_common.msgs.decode import read_cloud
from rig_common.times import NS_PER_S
from rig_common.validation import Strict, validated
from sensor_rig.bags.inspect import CLOUD_TYPE, sweep_s
from sync_engine.wire.restamp import corrected, counts_from_stamp, point_times_s

VERSION = 1


class ClockCorrection(Strict):
    """How far a sensor's clock is off."""

    offset_s: Annotated[float, Field(ge=-4e9, le=4e9)] = 0.0
    """Sensor's clock minus the host's at the start of the recording, s."""
    drift_ppm: Annotated[float, Field(ge=-1000.0, le=1000.0)] = 0.0
    """Rate error, parts per million."""


class Correction(Strict):
    """What is corrected on one topic."""

    clock: ClockCorrection = ClockCorrection()
    stamp_point: Literal['start', 'middle', 'end'] = 'start'
    """Where in a sweep the recording is stamped."""


class Sidecar(Strict):
    """The whole file."""

    version: Literal[1] = 1
    corrections: dict[str, Correction] = {}

    def correct(self, topic: str, type_name: str, raw: bytes, start_ns: int) -> bytes:
        """Return a message with the stamp it should have; `start_ns` is the recording's start."""
        correction = self.corrections.get(topic)
        if correction is None:
            return raw
        try:
            clock = correction.clock
            since_ns = read_stamp_ns(raw) - round(clock.offset_s * NS_PER_S) - start_ns
            error_ns = round(clock.offset_s * NS_PER_S + clock.drift_ppm * 1e-6 * since_ns)
            return corrected(type_name, raw, error_ns, _late_ns(correction, type_name, raw))
        except CdrError:
            return raw  # what cannot be read or held stays as it is


def _late_ns(correction: Correction, type_name: str, raw: bytes) -> int:
    """Return how long after the start of its sweep a message is stamped, ns."""
    if correction.stamp_point == 'start':
        return 0
    share = 1.0 if correction.stamp_point == 'end' else 0.5
    cloud = read_cloud(raw) if type_name == CLOUD_TYPE else None
    times = None if cloud is None else point_times_s(cloud)
    if cloud is None or times is None:
        return round(sweep_s(type_name, raw) * share * NS_PER_S)
    if counts_from_stamp(cloud):
        return round(-float(times.min()) * NS_PER_S)
    return round(float(np.ptp(times)) * share * NS_PER_S)


def load_sidecar(path: Path) -> Sidecar:
    """Read and check a sidecar."""
    try:
        values = yaml.safe_load(path.read_text(encoding='utf-8'))
    except OSError as error:
        raise RigError(f'cannot read {path}: {why(error)}') from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RigError(f'{path} is not YAML: {" ".join(str(error).split())}') from None
    if not isinstance(values, dict):
        raise RigError(f'{path} should be a map with the keys version and corrections')
    return validated(Sidecar, values, str(path))


def sidecar_text(corrections: dict[str, dict[str, object]], source: str) -> str:
    """Return the text of a sidecar."""
    body = yaml.safe_dump({'version': VERSION, 'corrections': corrections}, sort_keys=False)
    return f'# Corrections for {source}; use it with --sidecar.\n{body}'
