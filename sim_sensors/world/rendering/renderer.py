"""Images of the world: picks a GL library that works here, and renders off screen with it.

Shadows and multisampling are off by default: on a software rasteriser they cost eight times the
rest (measured with llvmpipe, 320x240).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import lru_cache, partial
from importlib import import_module
from typing import Any, TypeAlias

import mujoco
import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import AnyArray, Floats32, Ints32
from rig_common.errors import UnavailableError
from sim_sensors.world.rendering.gl_libraries import candidates, try_renderer

Bytes: TypeAlias = NDArray[np.uint8]
_MODEL_LOCK = threading.Lock()
_GEOM = int(mujoco.mjtObj.mjOBJ_GEOM)
WHOLE = slice(None)
"""All rows of a picture."""


@lru_cache(maxsize=1)
def backend() -> str:
    """Return the GL library that renders here: `egl`, `osmesa` or `glfw`.

    A broken driver can end a process, so each is tried in a process of its own first. MUJOCO_GL
    names the one to use where it is set.
    """
    reasons = []
    for name in candidates():
        works, reason = try_renderer(name)
        if works:
            return name
        reasons.append(f'{name}: {reason}')
    raise UnavailableError(
        f'cameras cannot work here, since no renderer does ({"; ".join(reasons)}); install one '
        f'(apt install libegl1 libgl1-mesa-dri), or set world.skip_unavailable: true to run '
        f'without them'
    )


def _gl_context(width: int, height: int) -> Any:
    """Return a GL context of the working library, whatever MuJoCo chose when it was imported."""
    name = backend()
    if name != 'glfw':
        os.environ.setdefault('PYOPENGL_PLATFORM', name)
    return import_module(f'mujoco.{name}').GLContext(width, height)


class Renderer:
    """Renders cameras of one model at one size.

    A GL context belongs to a thread, so each thread that renders gets its own on first use.
    Every picture can be had in part: `rows` draws only that band of the whole, at its share of
    the cost.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        width: int,
        height: int,
        *,
        shadows: bool = False,
        samples: int = 0,
        max_geoms: int = 10_000,
    ) -> None:
        """Prepare images of `width` x `height`; `samples` is the multisampling (0, 2, 4, 8)."""
        backend()
        self.model = model
        self.width, self.height = width, height
        self._new_surface = partial(_Surface, model, width, height, shadows, samples, max_geoms)
        self._local = threading.local()

    def rgb(self, data: mujoco.MjData, camera: int, *, rows: slice = WHOLE) -> Bytes:
        """Return the colours [height, width, 3], top row first."""
        return self._surface().draw(data, camera, rows, is_plain=False)[::-1].copy()

    def depth(self, data: mujoco.MjData, camera: int, *, rows: slice = WHOLE) -> Floats32:
        """Return the distance along the optical axis [height, width], m; inf where nothing is."""
        pixels = self._surface().draw(data, camera, rows, is_plain=True, is_depth=True)
        extent = self.model.stat.extent
        near, far = self.model.vis.map.znear * extent, self.model.vis.map.zfar * extent
        # Reversed z (far is 0): depth = near far / (near + z (far - near)), in double precision
        # because z crowds near 0 and the camera's near plane is millimetres away.
        z = pixels.astype(np.float64)
        metres = near * far / (near + z * (far - near))
        metres[pixels <= 0.0] = np.inf
        flipped: Floats32 = metres.astype(np.float32)[::-1].copy()
        return flipped

    def segmentation(self, data: mujoco.MjData, camera: int, *, rows: slice = WHOLE) -> Ints32:
        """Return the geom id of each pixel [height, width], -1 where there is none."""
        surface = self._surface()
        colour = surface.draw(data, camera, rows, is_plain=True).astype(np.int32)
        ids = colour[..., 0] + (colour[..., 1] << 8) + (colour[..., 2] << 16)
        geoms: Ints32 = surface.geom_of_segment()[ids][::-1].copy()
        return geoms

    def close(self) -> None:
        """Free this thread's GL context."""
        surface = getattr(self._local, 'surface', None)
        if surface is not None:
            surface.free()
            del self._local.surface

    def _surface(self) -> _Surface:
        surface: _Surface | None = getattr(self._local, 'surface', None)
        if surface is None:
            surface = self._local.surface = self._new_surface()
        surface.gl.make_current()
        return surface


class _Surface:
    """What one thread needs to render: GL context, scene, buffers."""

    def __init__(
        self,
        model: mujoco.MjModel,
        width: int,
        height: int,
        shadows: bool,
        samples: int,
        max_geoms: int,
    ) -> None:
        self.model = model
        self.gl = _gl_context(width, height)
        self.gl.make_current()
        self.context = _mjr_context(model, width, height, shadows, samples)
        self.size = width, height
        self.scene = mujoco.MjvScene(model, max_geoms)
        self.option = mujoco.MjvOption()
        # Sites (every sensor has one) and rays are drawn for people; no camera sees them.
        self.option.sitegroup[:] = 0
        self.option.flags[mujoco.mjtVisFlag.mjVIS_RANGEFINDER] = 0
        self.camera = mujoco.MjvCamera()
        self.camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
        flags = self.scene.flags
        flags[mujoco.mjtRndFlag.mjRND_SHADOW] = shadows
        flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = shadows
        self.rgb = np.empty((height, width, 3), np.uint8)
        self.depth = np.empty((height, width), np.float32)

    def draw(
        self,
        data: mujoco.MjData,
        camera: int,
        rows: slice,
        *,
        is_plain: bool,
        is_depth: bool = False,
    ) -> AnyArray:
        """Render `rows`, lowest first, and return colours or z; `is_plain` paints geom numbers."""
        self.camera.fixedcamid = camera
        mujoco.mjv_updateScene(
            self.model,
            data,
            self.option,
            None,
            self.camera,
            mujoco.mjtCatBit.mjCAT_ALL,
            self.scene,
        )
        self.scene.flags[mujoco.mjtRndFlag.mjRND_SEGMENT] = is_plain
        self.scene.flags[mujoco.mjtRndFlag.mjRND_IDCOLOR] = is_plain
        width, height = self.size
        first, last, _ = rows.indices(height)
        if last - first < height:
            self._narrow(first / height, last / height)
        rect = mujoco.MjrRect(0, 0, width, last - first)
        mujoco.mjr_render(rect, self.scene, self.context)
        pixels = (self.depth if is_depth else self.rgb)[: rect.height]
        both = (None, pixels) if is_depth else (pixels, None)
        mujoco.mjr_readPixels(*both, rect, self.context)
        return pixels

    def _narrow(self, first: float, last: float) -> None:
        """Let the camera see only a band of its picture, between two fractions of the height."""
        width, height = self.size
        for eye in self.scene.camera:
            top, bottom = eye.frustum_top, eye.frustum_bottom
            if eye.frustum_width == 0.0:  # it would follow from the shape of the band
                eye.frustum_width = (top - bottom) / 2.0 * width / height
            eye.frustum_top = top + (bottom - top) * first
            eye.frustum_bottom = top + (bottom - top) * last

    def geom_of_segment(self) -> Ints32:
        """Return the geom id of each colour number; 0 is the background."""
        table = np.full(self.scene.ngeom + 1, -1, np.int32)
        for geom in self.scene.geoms[: self.scene.ngeom]:
            if geom.segid >= 0 and geom.objtype == _GEOM:
                table[geom.segid + 1] = geom.objid
        return table

    def free(self) -> None:
        self.context.free()
        self.gl.free()


def _mjr_context(
    model: mujoco.MjModel, width: int, height: int, shadows: bool, samples: int
) -> mujoco.MjrContext:
    """Return a context with buffers for this size, whatever the model says about its own."""
    quality = model.vis.quality
    with _MODEL_LOCK:
        kept = quality.offsamples, quality.shadowsize
        quality.offsamples, quality.shadowsize = samples, quality.shadowsize if shadows else 0
        context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        quality.offsamples, quality.shadowsize = kept
    mujoco.mjr_resizeOffscreen(width, height, context)
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, context)
    context.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
    return context


def overview(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    camera: mujoco.MjvCamera,
    width: int,
    height: int,
    decorate: Callable[[mujoco.MjvScene], None],
) -> Bytes:
    """Return a picture for people, [height, width, 3]: moving bodies are see-through, and
    `decorate` adds to the scene."""
    surface = _Surface(model, width, height, False, 4, 10_000)
    surface.option.flags[mujoco.mjtVisFlag.mjVIS_TRANSPARENT] = True
    mujoco.mjv_updateScene(
        model, data, surface.option, None, camera, mujoco.mjtCatBit.mjCAT_ALL, surface.scene
    )
    decorate(surface.scene)
    rect = mujoco.MjrRect(0, 0, width, height)
    mujoco.mjr_render(rect, surface.scene, surface.context)
    mujoco.mjr_readPixels(surface.rgb, None, rect, surface.context)
    surface.free()
    return surface.rgb[::-1].copy()
