"""Colour and grey cameras: lens, shutter and the noise of an image sensor."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Annotated, Literal

import mujoco
import numpy as np
from pydantic import Field, model_validator

from rig_common import msgs
from rig_common.arrays import Floats
from rig_common.validation import Strict
from sim_sensors.interface import Batch, Sample, Topic, clip_to
from sim_sensors.interface.truth import TruthReader, WorldView
from sim_sensors.sensors.cameras.imager import Imager, ImageReader
from sim_sensors.sensors.cameras.optics import Lens, LensModel, Pinhole
from sim_sensors.sensors.cameras.traced import LUMA, TracedConfig, TracedReader
from sim_sensors.timing.arrays import Array
from sim_sensors.timing.units import Fraction, NonNegative
from sim_sensors.world.rendering.renderer import Renderer

COMPRESSED = Topic('image_raw/compressed', 'sensor_msgs/msg/CompressedImage')

FULL_SCALE = 255.0


class DistortionConfig(Strict):
    """Coefficients of the lens, which have no unit."""

    k1: float = 0.0
    """Radial, second order."""
    k2: float = 0.0
    """Radial, fourth order."""
    p1: float = 0.0
    """Tangential."""
    p2: float = 0.0
    """Tangential."""
    k3: float = 0.0
    """Radial, sixth order."""
    k4: float = 0.0
    """Radial, eighth order; of a fisheye only."""


class CameraConfig(TracedConfig):
    """A camera. Gain is fixed: nothing in the picture changes its exposure."""

    encoding: Literal['rgb8', 'mono8'] = 'rgb8'
    """Pixel format."""
    lens: LensModel = 'plumb_bob'
    """Model of the lens: Brown's (plumb_bob), or a fisheye whose radii are angles
    (equidistant)."""
    distortion: DistortionConfig = DistortionConfig()
    """Coefficients of the lens."""
    vignetting: Fraction = 0.0
    """Light lost in the corners, as a fraction; it grows with the square of the radius."""
    shot_noise: NonNegative = 0.0
    """Photon noise: standard deviation at full scale, grey levels; it grows with the square root
    of the value."""
    read_noise: NonNegative = 0.0
    """Noise of the readout, grey levels, whatever the value."""
    compressed: bool = False
    """Publish JPEG on `<name>/image_raw/compressed` too."""
    jpeg_quality: Annotated[int, Field(ge=1, le=95)] = 90
    """Quality of the JPEG."""

    @model_validator(mode='after')
    def _coefficients_of_the_lens(self) -> CameraConfig:
        foreign = ('p1', 'p2') if self.lens == 'equidistant' else ('k4',)
        for key in foreign:
            if getattr(self.distortion, key):
                raise ValueError(
                    f'distortion.{key} is {getattr(self.distortion, key):g}, which the lens '
                    f'{self.lens} does not have'
                )
        return self


class Camera(Imager[CameraConfig]):
    """A picture [height, width, channels] of bytes, and its camera info."""

    config_class = CameraConfig
    on_tensors = True
    topic = Topic('image_raw', 'sensor_msgs/msg/Image')
    info = Topic('camera_info', 'sensor_msgs/msg/CameraInfo')

    def __init__(self, name: str, config: CameraConfig) -> None:
        super().__init__(name, config)
        given, model = config.distortion, config.lens
        if model == 'equidistant':
            d = np.array([given.k1, given.k2, given.k3, given.k4])
            self.picture = Pinhole.equidistant(config.width, config.height, config.fovy_deg, d)
        else:
            d = np.array([given.k1, given.k2, given.p1, given.p2, given.k3])
        bends = model == 'equidistant' or d.any()
        self._lens = Lens(self.picture, d, model) if bends else None
        if self._lens is not None:
            self.rendered = self._lens.rendered
        channels = (3,) if config.encoding == 'rgb8' else ()
        self._lay_out(config.encoding, np.uint8, channels, d, model)
        self._shading = self._falloff() if config.vignetting else None

    def reader(self, view: WorldView) -> TruthReader:
        """Render, bend through the lens, weigh to grey; or cast rays through the lens."""
        if self.is_traced:
            return TracedReader(view, self, self.config.encoding)
        return ImageReader(view, self, self._draw)

    def pixel_rays(self) -> tuple[Floats, Floats]:
        """Return x/z and y/z of every pixel as the lens shows it."""
        return super().pixel_rays() if self._lens is None else self._lens.rays

    def _draw(self, renderer: Renderer, data: mujoco.MjData, camera: int, rows: slice) -> Array:
        if self._lens is None:
            picture = renderer.rgb(data, camera, rows=rows)
        else:
            needed = self._lens.rows_for(rows)
            picture = self._lens.bend(renderer.rgb(data, camera, rows=needed), rows)
        if self.config.encoding == 'mono8':
            return np.asarray(np.rint(picture @ LUMA), np.uint8)
        return picture

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Darken the corners, add photon and readout noise, then what every sensor may add."""
        config = self.config
        if self._shading is not None or config.shot_noise or config.read_noise:
            xp = batch.noise.xp
            light = xp.astype(values, np.float32)
            if self._shading is not None:
                light *= self._shading
            if config.shot_noise or config.read_noise:
                variance = light * (config.shot_noise**2 / FULL_SCALE)
                variance += config.read_noise**2
                light += xp.sqrt(variance) * batch.noise.normal('pixels', batch, light.shape[1])
            clip_to(values, light)
        batch.noise.apply_readout_errors(values, batch)

    def _falloff(self) -> Array:
        """Return the light that each value keeps, [width of a row of the pipeline]."""
        x, y = self.picture.rays()
        r2 = x * x + y * y
        kept = (1.0 - self.config.vignetting * r2 / r2.max()).astype(np.float32)
        channels = self.truth_layout.width // kept.size
        return np.repeat(kept.reshape(-1), channels)

    def topics(self) -> Sequence[Topic]:
        """Return image and camera info, and the JPEG if asked for."""
        return [*super().topics()] + [COMPRESSED] * self.config.compressed

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        """Write the picture, its camera info and the JPEG."""
        written = [*super().encode(sample)]
        if self.config.compressed:
            encoding = self.config.encoding
            stored = 'bgr8' if encoding == 'rgb8' else encoding
            jpeg = msgs.compressed_image(
                sample.stamp_ns,
                self.frame_id,
                f'{encoding}; jpeg compressed {stored}',
                self._jpeg(self.truth_layout.view(sample.values, 'data')),
            )
            written.append((COMPRESSED, jpeg))
        return written

    def _jpeg(self, picture: Array) -> bytes:
        from PIL import Image

        buffer = io.BytesIO()
        Image.fromarray(picture).save(buffer, 'JPEG', quality=self.config.jpeg_quality)
        return buffer.getvalue()

    def bounds(self) -> tuple[float, float]:
        """Return the range of a byte."""
        return (0.0, FULL_SCALE)
