"""The part of Embree 4's C interface that the caster needs, by ctypes.

The `embreex` wheel ships the Embree library. Its own Python face knows neither instances, which
make moving bodies cheap, nor curves and spheres, which make round geoms exact, so the library
is spoken to directly. A system-wide Embree 4 serves as well.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_size_t, c_ssize_t, c_uint, c_void_p
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rig_common.arrays import AnyArray, Floats32
from rig_common.errors import RigError
from rig_common.installing import pip_install

ROWS = 21
"""Rows of a RTCRayHit16, each of as many 4-byte lanes; the named ones are below."""
ORIGIN, DIRECTION, TFAR, MASK = slice(0, 3), slice(4, 7), 8, 9
NORMAL, GEOM_ID, INST_ID = slice(12, 15), 18, 19
INVALID_ID = EVERY_BIT = 0xFFFFFFFF

TRIANGLES, CONE_CURVE, ROUND_CURVE, SPHERES, INSTANCE_ARRAY = 0, 15, 16, 50, 122
BUFFER_INDEX, BUFFER_VERTEX, BUFFER_TRANSFORM, BUFFER_FLAGS = 0, 1, 23, 32
FORMAT_UCHAR, FORMAT_UINT, FORMAT_UINT3 = 0x1001, 0x5001, 0x5003
FORMAT_FLOAT3, FORMAT_FLOAT4, FORMAT_FLOAT3X4_ROW_MAJOR = 0x9003, 0x9004, 0x9134
NEIGHBOUR_BEFORE, NEIGHBOUR_AFTER = 1, 2
SCENE_DYNAMIC, SCENE_ROBUST = 1, 4

_VERSION = 0
_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    'rtcNewDevice': (c_void_p, (c_char_p,)),
    'rtcGetDeviceProperty': (c_ssize_t, (c_void_p, c_int)),
    'rtcGetDeviceError': (c_int, (c_void_p,)),
    'rtcNewScene': (c_void_p, (c_void_p,)),
    'rtcSetSceneFlags': (None, (c_void_p, c_int)),
    'rtcCommitScene': (None, (c_void_p,)),
    'rtcReleaseScene': (None, (c_void_p,)),
    'rtcNewGeometry': (c_void_p, (c_void_p, c_int)),
    'rtcSetNewGeometryBuffer': (
        c_void_p,
        (c_void_p, c_int, c_uint, c_int, c_size_t, c_size_t),
    ),
    'rtcSetSharedGeometryBuffer': (
        None,
        (c_void_p, c_int, c_uint, c_int, c_void_p, c_size_t, c_size_t, c_size_t),
    ),
    'rtcSetGeometryMask': (None, (c_void_p, c_uint)),
    'rtcSetGeometryInstancedScenes': (None, (c_void_p, c_void_p, c_size_t)),
    'rtcCommitGeometry': (None, (c_void_p,)),
    'rtcReleaseGeometry': (None, (c_void_p,)),
    'rtcAttachGeometryByID': (None, (c_void_p, c_void_p, c_uint)),
}
_COHERENT = 1 << 16


class QueryArguments(ctypes.Structure):
    """RTCIntersectArguments; its flags say whether a packet's rays go nearly the same way."""

    _fields_ = [
        ('flags', c_int),
        ('features', c_uint),
        ('context', c_void_p),
        ('filter', c_void_p),
        ('intersect', c_void_p),
        ('min_width', ctypes.c_float),
    ]


BUNDLED = QueryArguments(_COHERENT, EVERY_BIT)
SINGLE = QueryArguments(0, EVERY_BIT)

Pointer: TypeAlias = 'ctypes._CArgObject | c_void_p'
Intersect = Callable[[Pointer, c_void_p, Pointer, Pointer], None]
"""Takes active lanes, scene, packet and `QueryArguments`."""


class Embree:
    """A loaded Embree library with one device."""

    def __init__(self, path: str) -> None:
        """Load the library at `path` and open its device."""
        # The interpreter lock is kept during calls: each takes microseconds, and letting go of
        # the lock between two of them costs more than the call.
        library = ctypes.PyDLL(path)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        self.library: Any = library
        self.intersect: Intersect = _unchecked(library, 'rtcIntersect16')
        # One thread: moving bodies are a rebuild of microseconds, and waking workers for it costs
        # more than it saves.
        self.device: int = library.rtcNewDevice(b'threads=1')
        if not self.device:
            raise OSError(f'Embree at {path} gives no device on this processor')
        version = library.rtcGetDeviceProperty(self.device, _VERSION)
        if not 40300 <= version < 50000:
            raise OSError(f'Embree at {path} has version {version}; 4.3 brought instance arrays')
        self._update_buffer = _unchecked(library, 'rtcUpdateGeometryBuffer')
        self._commit_geometry = _unchecked(library, 'rtcCommitGeometry')
        self._recommit = self._commit_function()

    def _commit_function(self) -> Callable[[c_void_p], None]:
        """Return what builds a scene's tree soonest.

        A thread that joins builds itself and hands nothing over; without TBB none can join.
        """
        join: Callable[[c_void_p], None] = _unchecked(self.library, 'rtcJoinCommitScene')
        probe = self.new_scene(SCENE_DYNAMIC)
        join(probe)
        joined = self.library.rtcGetDeviceError(self.device) == 0
        self.release([probe])
        return join if joined else _unchecked(self.library, 'rtcCommitScene')

    def new_scene(self, flags: int) -> c_void_p:
        """Return a new, empty scene."""
        scene = c_void_p(self.library.rtcNewScene(self.device))
        self.library.rtcSetSceneFlags(scene, flags)
        return scene

    def new_geometry(self, kind: int, buffers: list[tuple[int, int, AnyArray]]) -> c_void_p:
        """Return a committed geometry; each buffer is (type, format, rows), copied."""
        geometry = c_void_p(self.library.rtcNewGeometry(self.device, kind))
        for buffer, fmt, rows in buffers:
            rows = np.ascontiguousarray(rows)
            stride = rows.nbytes // len(rows)
            memory = self.library.rtcSetNewGeometryBuffer(
                geometry, buffer, 0, fmt, stride, len(rows)
            )
            ctypes.memmove(memory, rows.ctypes.data, rows.nbytes)
        self.library.rtcCommitGeometry(geometry)
        return geometry

    def attach(self, scene: c_void_p, geometry: c_void_p, geom_id: int) -> None:
        """Hand `geometry` over to `scene` under the number `geom_id`."""
        self.library.rtcAttachGeometryByID(scene, geometry, geom_id)
        self.library.rtcReleaseGeometry(geometry)

    def release(self, scenes: list[c_void_p]) -> None:
        """Give up `scenes`; Embree frees what nothing else holds."""
        for scene in scenes:
            self.library.rtcReleaseScene(scene)

    def commit(self, scene: c_void_p) -> None:
        """Build the scene's tree and say so if Embree could not."""
        self.library.rtcCommitScene(scene)
        error = self.library.rtcGetDeviceError(self.device)
        if error:
            raise RuntimeError(f'Embree could not build a scene, error {error}')

    def move(self, scene: c_void_p, geometry: c_void_p, buffer: int) -> None:
        """Rebuild `scene` after a change in a shared buffer, of that type, of its `geometry`."""
        self._update_buffer(geometry, buffer, 0)
        self._commit_geometry(geometry)
        self._recommit(scene)


def _unchecked(library: ctypes.PyDLL, name: str) -> Any:
    """Return a function without `argtypes`, for every scan: checking takes as long as calling.

    Pointers must be objects of ctypes, as an int would be cut to 32 bits.
    """
    function = library[name]
    function.restype = None
    return function


@functools.lru_cache(maxsize=1)
def load_embree() -> Embree:
    """Return the process's Embree, from the embreex wheel or the system."""
    tried = []
    for path in _candidates():
        try:
            return Embree(path)
        except OSError as error:
            tried.append(str(error))
    why = f' ({"; ".join(tried)})' if tried else ''
    raise RigError(
        f"ray-casting backend 'embree' finds no Embree 4.3 library{why}; "
        f'{pip_install("embreex")}, or use backend: mujoco'
    )


def has_embree() -> bool:
    """Whether there is an Embree to cast with."""
    try:
        load_embree()
    except RigError:
        return False
    return True


def _candidates() -> list[str]:
    paths: list[str] = []
    try:
        wheel = importlib.import_module('embreex')  # on Windows this tells where its libraries are
    except ImportError:
        wheel = None
    if wheel is not None and wheel.__file__ is not None:
        package = Path(wheel.__file__).parent
        # auditwheel, delocate and delvewheel each have their own place for bundled libraries.
        for folder in (package.parent / 'embreex.libs', package / '.dylibs', package):
            paths += sorted(str(path) for path in folder.glob('*embree4*'))
    system = ctypes.util.find_library('embree4')
    return paths + ([system] if system else [])


def memory_of(array: AnyArray) -> ctypes.Array[ctypes.c_char]:
    """Return the contiguous memory of `array` for `ctypes.byref`; it keeps the array alive."""
    return (ctypes.c_char * array.nbytes).from_buffer(array.data)


def aligned_zeros(shape: tuple[int, ...]) -> Floats32:
    """Return float32 zeros on a 64-byte boundary, as ray packets must be."""
    size = int(np.prod(shape)) * 4
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(np.float32).reshape(shape)
