"""GNSS receiver: geodetic position and velocity, with slowly wandering error and outages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import cos, sin
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from pyproj import Transformer

from rig_common import msgs
from rig_common.errors import UnavailableError
from rig_common.installing import pip_install
from rig_common.validation import Strict
from sim_sensors.interface import Batch, Origin, Sample, Sensor, SensorConfig, Topic
from sim_sensors.interface.truth import WorldView
from sim_sensors.sensors.common.drift import gauss_markov
from sim_sensors.timing.arrays import Array, Layout
from sim_sensors.timing.units import NonNegative, Positive

VELOCITY = Topic('vel', 'geometry_msgs/msg/TwistStamped')

NO_FIX = -1
STATUS = {'fix': 0, 'sbas': 1, 'gbas': 2}
UNKNOWN_COVARIANCE, DIAGONAL_COVARIANCE = 0, 2


class DatumConfig(Strict):
    """Where on Earth the world's origin lies."""

    latitude_deg: Annotated[float, Field(ge=-90.0, le=90.0)] = 0.0
    """Geodetic latitude (WGS 84), degrees north."""
    longitude_deg: Annotated[float, Field(ge=-180.0, le=180.0)] = 0.0
    """Longitude (WGS 84), degrees east."""
    altitude_m: Annotated[float, Field(ge=-1000.0, le=100_000.0)] = 0.0
    """Height above the WGS 84 ellipsoid, m."""
    yaw_rad: float = 0.0
    """From east to the world's x axis, counter-clockwise seen from above, rad; 0 is ENU."""


class OutageConfig(Strict):
    """Times without a fix."""

    mean_interval_s: NonNegative = 0.0
    """Mean time with a fix before it is lost, s; 0 means it is never lost."""
    mean_duration_s: Positive = 5.0
    """Mean length of an outage, s."""


class GnssConfig(SensorConfig):
    """A GNSS receiver; `noise`, `bias` and `random_walk` act on east, north, up in m."""

    rate_hz: NonNegative = 5.0
    """Captures a second; 0 captures at every physics step."""
    datum: DatumConfig = DatumConfig()
    """Place and heading of the world on Earth."""
    horizontal_noise_m: NonNegative = 0.0
    """Standard deviation of white noise per sample, east and north each, m."""
    vertical_noise_m: NonNegative = 0.0
    """The same for up, m."""
    horizontal_drift_m: NonNegative = 0.0
    """Standard deviation of the slow (Gauss-Markov) error, east and north each, m."""
    vertical_drift_m: NonNegative = 0.0
    """The same for up, m."""
    drift_time_s: Positive = 60.0
    """Correlation time of the slow error, s."""
    horizontal_speed_noise_m_s: NonNegative = 0.0
    """Standard deviation of the velocity, east and north each, m/s."""
    vertical_speed_noise_m_s: NonNegative = 0.0
    """The same for up, m/s."""
    outage: OutageConfig = OutageConfig()
    """Loss of the fix."""
    solution: Literal['fix', 'sbas', 'gbas'] = 'fix'
    """Status of a fix: plain, satellite-augmented, or ground-based (RTK)."""
    enu_frame_id: str = 'map'
    """Frame of the velocity; its axes are east, north, up."""


class Gnss(Sensor[GnssConfig]):
    """Latitude, longitude, altitude and velocity of the antenna.

    Errors are made in metres, then pyproj turns the point of the tangent plane at the datum into
    geodetic coordinates. Without a fix position and velocity are NaN and the status is -1.
    """

    config_class = GnssConfig
    topic = Topic('fix', 'sensor_msgs/msg/NavSatFix')
    natives = ('framepos', 'framelinvel')
    remembers_captures = True

    def __init__(self, name: str, config: GnssConfig) -> None:
        super().__init__(name, config)
        self.truth_layout = Layout({'position': (3,), 'linear': (3,)}, float)
        """Position m and velocity m/s of the antenna in the world's axes."""
        self.returns = Layout({'position': (3,), 'linear': (3,), 'status': ()}, float)
        """Latitude deg, longitude deg, altitude m; velocity east, north, up m/s; status."""
        self._truth_template = msgs.odometry('world', 'world')  # without an orientation
        self._template = msgs.nav_sat_fix(self.frame_id)
        self._velocity = msgs.twist_stamped(config.enu_frame_id)
        c, s = cos(config.datum.yaw_rad), sin(config.datum.yaw_rad)
        self._to_enu = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        horizontal, vertical = config.horizontal_noise_m, config.vertical_noise_m
        across, up = config.horizontal_speed_noise_m_s, config.vertical_speed_noise_m_s
        self._white = np.array([horizontal, horizontal, vertical, across, across, up])
        self._drift = np.array([config.horizontal_drift_m] * 2 + [config.vertical_drift_m])
        self._covariance = np.diag(self._white[:3] ** 2 + self._drift**2 + config.noise**2).ravel()
        self.stateful = config.outage.mean_interval_s > 0.0

    def origin(self) -> Origin:
        """Return the frame of the velocity: east, north, up at the world's origin."""
        return Origin(self.config.enu_frame_id, yaw_rad=-self.config.datum.yaw_rad)

    def validate(self, view: WorldView) -> None:
        """Say so where the library for geodesy is missing."""
        _ = self._to_geodetic

    @cached_property
    def _to_geodetic(self) -> Transformer:
        return geodetic_transformer(self.config.datum)

    # ---- the pipeline's stages ----------------------------------------------------------------

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Add white and slow errors; both are stated in east, north, up."""
        error = np.zeros_like(values)
        if self._white.any():
            error += self._white * batch.noise.normal('white', batch, 6)
        if self._drift.any():
            error[:, :3] += self._drift * gauss_markov('drift', self.config.drift_time_s, batch, 3)
        batch.noise.apply_readout_errors(error[:, :3], batch)
        values[:, :3] += error[:, :3] @ self._to_enu
        values[:, 3:] += error[:, 3:] @ self._to_enu

    def post_process(self, values: Array, previous: Array | None, batch: Batch) -> Array:
        """Turn metres into degrees and blank what an outage takes."""
        out = self.return_layout.empty(len(values))
        enu = values[:, :3] @ self._to_enu.T
        longitude, latitude, altitude = self._to_geodetic.transform(*enu.T)
        out[:, 0], out[:, 1], out[:, 2] = latitude, longitude, altitude
        out[:, 3:6] = values[:, 3:] @ self._to_enu.T
        out[:, 6] = STATUS[self.config.solution]
        if self.stateful and batch.is_measured:
            out[self._is_lost(previous, batch)] = [np.nan] * 6 + [NO_FIX]
        return out

    def _is_lost(self, previous: Array | None, batch: Batch) -> Array:
        """Return which rows [n] have no fix: a two-state Markov chain in time."""
        chance = batch.noise.draw('outage', batch)
        outage = self.config.outage
        lose = -np.expm1(-batch.period_s / outage.mean_interval_s)
        stay = np.exp(-batch.period_s / outage.mean_duration_s)
        was_lost = np.zeros(len(chance), bool) if previous is None else previous[:, 6] == NO_FIX
        return np.asarray(chance < np.where(was_lost, stay, lose))

    # ---- messages -------------------------------------------------------------------------

    def topics(self) -> Sequence[Topic]:
        """The fix and the velocity."""
        return [self.topic, VELOCITY]

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        """Fill both messages; the covariance is that of white and slow error together."""
        position, linear, status = self.return_layout.unpack(sample.values).values()
        kind = UNKNOWN_COVARIANCE if status == NO_FIX else DIAGONAL_COVARIANCE
        covariance = self._covariance if kind else np.zeros(9)
        fix = self._template.fill(
            sample.stamp_ns,
            status=np.int8(status),
            position=position,
            position_covariance=covariance,
            position_covariance_type=kind,
        )
        return [(self.topic, fix), (VELOCITY, self._velocity.fill(sample.stamp_ns, linear=linear))]


def geodetic_transformer(datum: DatumConfig) -> Transformer:
    """Return east, north, up (m, at the datum) -> longitude, latitude (deg), altitude (m)."""
    try:
        from pyproj import Transformer
    except ImportError as error:
        raise UnavailableError(
            f'a gnss sensor needs pyproj for its geodesy, which cannot be imported ({error}); '
            f'install it: {pip_install("pyproj")}'
        ) from None
    return Transformer.from_pipeline(
        '+proj=pipeline +step +inv +proj=topocentric +ellps=WGS84 '
        f'+lon_0={datum.longitude_deg!r} +lat_0={datum.latitude_deg!r} +h_0={datum.altitude_m!r} '
        '+step +inv +proj=cart +ellps=WGS84 +step +proj=unitconvert +xy_in=rad +xy_out=deg'
    )
