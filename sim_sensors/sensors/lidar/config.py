"""What LiDARs can be told, with units, defaults and ranges."""

from __future__ import annotations

from math import inf
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from rig_common.validation import Strict
from sim_sensors.interface.config import ranges_are_sane
from sim_sensors.raycast.patterns import ELEVATION_TABLES_DEG
from sim_sensors.sensors.common.phenomena import PhysicalConfig
from sim_sensors.timing.units import Fraction, NonNegative, Positive


class BeamConfig(Strict):
    """The width of a beam. A beam that meets an edge returns from both sides of it."""

    rays: Annotated[int, Field(ge=1, le=37)] = 1
    """Rays that make up one beam; 1 is a beam without width. More cost as many times the rays."""
    divergence_rad: Annotated[float, Field(ge=0.0, le=0.2)] = 0.003
    """Full opening angle of the beam, rad."""
    returns: Literal['first', 'last', 'strongest'] = 'strongest'
    """Which echo is reported where a beam meets several surfaces."""
    pulse_length_m: Positive = 0.5
    """Echoes nearer to each other than this melt into one mixed point between them, m."""


class OpticsConfig(Strict):
    """What comes back: `signal` is reflectivity times the cosine of incidence, 0..1."""

    default_reflectivity: Fraction = 0.5
    """Reflectivity of what is named neither here nor in the model's `reflectivity` tuple."""
    reflectivity: dict[str, Fraction] = {}
    """Reflectivity by name of geom or material; a geom's own name wins."""
    dark_range_m: NonNegative = 0.0
    """Range at which a target of 10 % reflectivity, met head-on, is lost half of the time, m;
    the signal needed grows with range squared. 0 never loses a weak return."""
    dropout_slope: Annotated[float, Field(gt=0.0, le=100.0)] = 6.0
    """How sharply returns vanish around that signal; larger is sharper."""
    dropout_probability: Fraction = 0.0
    """Fraction of returns lost whatever their strength."""
    weak_signal_noise: Annotated[float, Field(ge=0.0, le=2.0)] = 0.5
    """Exponent with which range noise grows as the signal falls below `reference_signal`;
    0.5 is what photon counting gives, 0 is none."""
    reference_signal: Annotated[float, Field(gt=0.0, le=1.0)] = 0.8
    """Signal for which `noise` and `noise_per_m` are given; data sheets use an 80 % target."""
    intensity_scale: Positive = 100.0
    """Intensity of a signal of 1 at or below `intensity_range_m`."""
    intensity_range_m: NonNegative = 10.0
    """Beyond this the intensity falls with range squared, m; 0 keeps it free of range."""


class LidarConfig(PhysicalConfig):
    """Keys that all LiDARs share; `physics` is in m of range."""

    rate_hz: Positive = 10.0
    """Scans a second."""
    min_range_m: NonNegative = 0.1
    """Nearer than this is no valid range, m."""
    max_range_m: Annotated[float, Field(gt=0.0, le=10_000.0)] = 30.0
    """Farther than this there is no return, m."""
    noise: NonNegative = 0.01
    """Standard deviation of the range at the reference signal, m."""
    noise_per_m: Fraction = 0.0
    """Further standard deviation per metre of range, m/m; adds to `noise`."""
    backend: Literal['auto', 'mujoco', 'embree'] = 'auto'
    """Who casts the rays; `auto` is Embree where it is installed, else MuJoCo."""
    ray_frame: Literal['sensor', 'world'] = 'sensor'
    """Whether the rays turn with the sensor, or keep their directions in the world (a levelled
    scanner); its frame on /tf then does not turn either."""
    z_height_m: float = 0.0
    """Height of the rays' origin above the mount, along z of the ray frame, m."""
    motion_distortion: bool = True
    """Cast each ray from where the sensor is when it fires; false freezes the world per scan."""
    sweep_s: NonNegative = 0.0
    """Time of a sweep, s: of a full turn for spinning scanners, of a frame for others. 0 is a
    whole period; more than a period is refused."""
    segments: Annotated[int, Field(ge=1, le=1000)] = 8
    """Pieces of a distorted sweep; other bodies stand still within one, the sensor does not."""
    exclude_own_body: bool = True
    """Whether the body that carries the sensor, and all that is attached to it, is invisible to
    it."""
    exclude_bodies: tuple[str, ...] = ()
    """Further bodies, with everything attached to them, that are invisible to it."""
    geom_groups: tuple[Annotated[int, Field(ge=0, le=5)], ...] = ()
    """Geom groups that are visible to it; empty is all."""
    transparent_below: Fraction = 0.0
    """Geoms whose alpha is below this let rays pass; those of alpha 0 always do."""
    no_hit: Literal['inf', 'max', '-1'] = 'inf'
    """What a ray without a return reads: +inf (REP 117), `max_range_m`, or -1; with the latter two
    a ray that is too close reads 0 instead of -inf. Messages always follow REP 117."""
    fields: tuple[Literal['intensities', 'geoms', 'normals'], ...] = ()
    """What `observation_space()` has besides ranges. `geoms` are MuJoCo's ids (-1: none),
    `normals` unit vectors in the ray frame (0: none); both are readable only if listed."""
    beam: BeamConfig = BeamConfig()
    """The width of the beams."""
    optics: OpticsConfig = OpticsConfig()
    """Strength of returns, and what depends on it."""

    _ranges = ranges_are_sane

    @field_validator('no_hit', mode='before')
    @classmethod
    def _as_written(cls, value: object) -> object:
        """Take the numbers that YAML reads `inf` and `-1` as."""
        return (
            {inf: 'inf', -1: '-1'}.get(value, value)
            if isinstance(value, (int, float))
            else (value)
        )

    @model_validator(mode='after')
    def _is_possible(self) -> LidarConfig:
        if self.sweep_s * self.rate_hz > 1.0 + 1e-9:
            raise ValueError(
                f'sweep_s is {self.sweep_s}; at {self.rate_hz} Hz a sweep has '
                f'{1.0 / self.rate_hz:g} s at most'
            )
        return self


class Lidar2dConfig(LidarConfig):
    """A planar scanner; the defaults are a small 360-degree one."""

    num_rays: Annotated[int, Field(ge=1, le=100_000)] = 360
    """Rays a scan."""
    fov_deg: Annotated[float, Field(gt=0.0, le=360.0)] = 360.0
    """Angle the rays are spread over, degrees. A full turn excludes its end, less includes it."""
    start_angle_deg: Annotated[float, Field(ge=-360.0, le=360.0)] = 0.0
    """Angle of the first ray from x towards y, degrees."""
    clockwise: bool = False
    """Whether it turns clockwise seen from above; `angle_increment` is then negative."""
    intensities: bool = True
    """Whether the scan has intensities."""


class Lidar3dConfig(LidarConfig):
    """A scanner that gives clouds; the defaults are a 16-beam spinning one."""

    max_range_m: Annotated[float, Field(gt=0.0, le=10_000.0)] = 100.0
    """Farther than this there is no return, m."""
    noise: NonNegative = 0.02
    """Standard deviation of the range at the reference signal, m."""
    pattern: Literal['spinning', 'rosette', 'grid', 'file'] = 'spinning'
    """Where the rays go: a turning stack of lasers, the flower of two prisms, a raster, or as a
    file says."""
    rows: Annotated[int, Field(ge=1, le=2048)] = 16
    """Lasers of `spinning` (16, 32, 64 or 128, unless `elevations_deg` says where they look) or
    rows of `grid`."""
    elevations_deg: tuple[Annotated[float, Field(ge=-90.0, le=90.0)], ...] = ()
    """Elevations of the lasers of `spinning`, degrees, instead of the table for `rows`."""
    columns: Annotated[int, Field(ge=1, le=65_536)] = 1024
    """Firings of a turn of `spinning`, or columns of `grid`."""
    num_rays: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """Rays a scan of `rosette`."""
    fov_deg: Annotated[float, Field(gt=0.0, le=360.0)] = 360.0
    """Horizontal angle of `spinning` and `grid`, cone of `rosette`, degrees."""
    vfov_deg: Annotated[float, Field(gt=0.0, le=180.0)] = 30.0
    """Vertical angle of `grid`, degrees."""
    start_angle_deg: Annotated[float, Field(ge=-360.0, le=360.0)] = 180.0
    """Angle of the first firing of `spinning`, degrees; 180 starts and ends behind."""
    clockwise: bool = True
    """Whether `spinning` turns clockwise seen from above."""
    pattern_file: str = ''
    """CSV or NPZ of `file`, an absolute path or one from the working directory."""
    no_return: Literal['nan', 'drop'] = 'nan'
    """Rays without a return are NaN points in a cloud of fixed size, or are left out."""
    max_points: Annotated[int, Field(ge=0)] = 0
    """Most points a cloud with `no_return: drop` may have, thinned out evenly; 0 is any number."""

    @model_validator(mode='after')
    def _pattern_is_complete(self) -> Lidar3dConfig:
        if (
            self.pattern == 'spinning'
            and not self.elevations_deg
            and self.rows not in ELEVATION_TABLES_DEG
        ):
            allowed = ', '.join(str(rows) for rows in ELEVATION_TABLES_DEG)
            raise ValueError(
                f'rows is {self.rows}; there are tables for {allowed}, others need elevations_deg'
            )
        if self.pattern == 'file' and not self.pattern_file:
            raise ValueError('pattern is file, so pattern_file must name one')
        if self.max_points and self.no_return != 'drop':
            raise ValueError(f'max_points is {self.max_points}; it needs no_return: drop')
        return self
