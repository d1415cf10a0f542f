"""What every sensor that renders shares: size, shutter, frame and the reader that draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Any, Generic, TypeVar

import mujoco
import numpy as np
from numpy.typing import DTypeLike
from pydantic import Field

from rig_common import msgs
from rig_common.arrays import Floats
from rig_common.times import seconds_to_ns
from sim_sensors.interface import Sample, Sensor, SensorConfig, Topic
from sim_sensors.interface.truth import WorldView
from sim_sensors.sensors.cameras.optics import OPTICAL_QUAT_WXYZ, LensModel, Pinhole, add_camera
from sim_sensors.timing.arrays import Array, Layout
from sim_sensors.timing.units import NonNegative
from sim_sensors.world.rendering import renderer as render

Draw = Callable[[render.Renderer, mujoco.MjData, int, slice], Array]
"""`draw(renderer, data, camera, rows)` returns these rows of the picture, [rows, width, ...]."""


class ImagerConfig(SensorConfig):
    """Keys of every rendered sensor."""

    rate_hz: NonNegative = 30.0
    """Pictures a second; 0 captures at every physics step."""
    width: Annotated[int, Field(ge=1, le=8192)] = 320
    """Columns, pixels."""
    height: Annotated[int, Field(ge=1, le=8192)] = 240
    """Rows, pixels."""
    fovy_deg: Annotated[float, Field(gt=0.0, lt=170.0)] = 60.0
    """Vertical field of view, degrees."""
    exposure_s: NonNegative = 0.0
    """Exposure time, s. A picture shows, and is stamped with, the middle of its exposure; latency
    counts from the end of it."""
    readout_s: NonNegative = 0.0
    """Rolling shutter: time from the first row's exposure to the last one's, s; 0 is a global
    shutter."""
    readout_bands: Annotated[int, Field(ge=2, le=1024)] = 16
    """Bands of rows that a rolling shutter is drawn in, each at its own time; physics steps limit
    how many there are."""
    shadows: bool = False
    """Draw shadows and reflections (slow without a GPU)."""
    samples: Annotated[int, Field(ge=0, le=16)] = 0
    """Multisampling (0, 2, 4, 8); smooth edges, slow without a GPU."""

    def too_long_for(self, period_s: float) -> str:
        """Say which of exposure and readout is longer than the period.

        Their sum may be: the first rows of a picture are exposed while the last ones of the
        picture before are still read.
        """
        for key in ('exposure_s', 'readout_s'):
            value = getattr(self, key)
            if value > period_s * (1.0 + 1e-9):
                return (
                    f'{key} is {value:g}; it must not be longer than the time between two '
                    f'pictures, {period_s:.4g} s'
                )
        return ''


ConfigT = TypeVar('ConfigT', bound=ImagerConfig)


class Imager(Sensor[ConfigT], Generic[ConfigT]):
    """A sensor whose truth is drawn; its messages are in the optical frame of its mount."""

    heavy = True
    frame_quat_wxyz = OPTICAL_QUAT_WXYZ
    info: Topic
    """Its camera info, which carries the stamp of the picture."""

    def __init__(self, name: str, config: ConfigT) -> None:
        super().__init__(name, config)
        self.frame_id = config.frame_id or f'{name}_optical'
        self.picture = Pinhole.from_fov(config.width, config.height, config.fovy_deg)
        self.rendered = self.picture
        """What is drawn; a distorting lens needs more than it shows."""

    @property
    def duration_ns(self) -> int:
        """From the middle of the first row's exposure to the end of the last one's, ns."""
        return seconds_to_ns(self.config.exposure_s / 2.0 + self.config.readout_s)

    @property
    def stamp_points_ns(self) -> dict[str, int]:
        """Start of the first row's exposure, its middle (the capture), end of the last row's."""
        half_ns = seconds_to_ns(self.config.exposure_s / 2.0)
        return {'start': -half_ns, 'middle': 0, 'end': self.duration_ns}

    def mount(self, spec: mujoco.MjSpec) -> None:
        """Add the site and a camera on it."""
        super().mount(spec)
        add_camera(spec, self.name, self.rendered)

    def pixel_rays(self) -> tuple[Floats, Floats]:
        """Return x/z and y/z of every pixel as it is seen, [height, width] each, optical axes."""
        return self.picture.rays()

    @property
    def is_traced(self) -> bool:
        """Whether rays make the picture, and no renderer is needed."""
        return getattr(self.config, 'renderer', 'gl') == 'rays'

    def validate(self, view: WorldView) -> None:
        """Raise RigError where nothing can be rendered."""
        if not self.is_traced:
            render.backend()

    def sync_facts(self) -> dict[str, object]:
        """Return the focal length, which turns shifts in the picture into angles."""
        return {'focal_px': self.picture.focal_px}

    def _lay_out(
        self,
        encoding: str,
        dtype: DTypeLike,
        channels: tuple[int, ...] = (),
        d: Array | Sequence[float] = (),
        model: LensModel = 'plumb_bob',
    ) -> None:
        """Make rows and messages of such a picture, through a lens with the coefficients `d`."""
        size = self.config.height, self.config.width
        self.truth_layout = Layout({'data': (*size, *channels)}, dtype)
        self._template = msgs.image(self.frame_id, *size, encoding)
        self._info = msgs.camera_info(
            self.frame_id, *size, self.picture.matrix, d=d, distortion_model=model
        )

    def topics(self) -> Sequence[Topic]:
        """Return the picture and its camera info."""
        return (self.topic, self.info)

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        """Write both, with one stamp."""
        return [*super().encode(sample), (self.info, self._info.fill(sample.stamp_ns))]


class ImageReader:
    """Draws a picture, row band by row band where the shutter rolls."""

    def __init__(self, view: WorldView, sensor: Imager[Any], draw: Draw) -> None:
        """Prepare to draw camera `sensor.name`."""
        config, lens = sensor.config, sensor.rendered
        self._draw = draw
        self._camera = view.model.camera(sensor.name).id
        self._renderer = render.Renderer(
            view.model, lens.width, lens.height, shadows=config.shadows, samples=config.samples
        )
        self.parts_ns: Sequence[int]
        self.parts_ns, self._bands = bands_of(config, seconds_to_ns(view.model.opt.timestep))
        self._shape = (config.height, -1)

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        """Draw the rows of band `part` in each environment."""
        band = self._bands[part]
        for row, env in enumerate(envs):
            picture = self._draw(self._renderer, view.data(env), self._camera, band)
            out[row].reshape(self._shape)[band] = picture.reshape(len(picture), -1)


def bands_of(config: ImagerConfig, step_ns: int) -> tuple[list[int], list[slice]]:
    """Return when the bands of a rolling shutter are drawn, on the physics grid, and their rows.

    A row is exposed at its share of `readout_s`; a band is drawn at the step nearest to its middle
    row, and bands that meet on one step are one.
    """
    if config.readout_s == 0.0:
        return [0], [slice(0, config.height)]
    bands = min(config.readout_bands, config.height)
    edges = np.linspace(0, config.height, bands + 1).round().astype(int).tolist()
    parts: list[int] = []
    rows: list[slice] = []
    for first, last in pairwise(edges):
        middle_s = config.readout_s * ((first + last) / 2.0 / config.height)
        part_ns = round(seconds_to_ns(middle_s) / step_ns) * step_ns
        if parts and parts[-1] == part_ns:
            rows[-1] = slice(rows[-1].start, last)
        else:
            parts.append(part_ns)
            rows.append(slice(first, last))
    return parts, rows
