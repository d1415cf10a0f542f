"""Pictures of inter-coded video (H.264, H.265 and whatever else FFmpeg decodes), by PyAV.

A picture is coded against the ones before it, so every packet goes through the decoder, in order.
Where some are missing (a live cue that could not keep up) nothing is shown until the next key
frame.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rig_common.cdr import Buffer, CdrError, Reader
from rig_common.errors import RigError
from sync_engine.streams.payload import CueValues

FOXGLOVE_TYPE = 'foxglove_msgs/msg/CompressedVideo'
FFMPEG_TYPE = 'ffmpeg_image_transport_msgs/msg/FFMPEGPacket'
VIDEO_TYPES = (FOXGLOVE_TYPE, FFMPEG_TYPE)
_DECODERS = {'h264': 'h264', 'libx264': 'h264', 'h265': 'hevc', 'hevc': 'hevc', 'libx265': 'hevc'}
"""Word in a message -> name of the decoder; any other word is taken as the decoder's name."""
_HARDWARE = ('_nvenc', '_vaapi', '_nvmpi', '_qsv', '_v4l2m2m', '_videotoolbox', '_omx')
"""Endings of encoders whose output the plain decoder of the same name reads."""


class VideoReader:
    """Decodes the packets of one stream, one message after another."""

    def __init__(self, type_name: str) -> None:
        self._foxglove = type_name == FOXGLOVE_TYPE
        self._codec: Any = None
        self._name = ''
        self._wait_for_key = True

    def missed(self) -> None:
        """Packets were left out: what refers to them cannot be shown."""
        self._codec = None

    def __call__(self, raw: Buffer) -> CueValues:
        """Take one message; return `gray` and, of the picture that is out now, its `stamp_ns`.

        Without `gray` where the decoder holds its pictures back, or waits for a key frame.
        """
        stamp_ns, name, data = self._packet(raw)
        av = _pyav()
        if self._codec is None or name != self._name:
            self._open(av, name)
        packet = av.Packet(data)
        packet.pts = stamp_ns
        try:
            frames = self._codec.decode(packet)
        except av.FFmpegError as error:
            if self._wait_for_key:
                return {}  # nothing of it can be shown before the first key frame
            self._codec = None
            raise CdrError(f'a packet of {name} video is damaged: {error}') from None
        shown = [frame for frame in frames if self._is_whole(frame)]
        if not shown:
            return {}
        frame = shown[-1]
        stamp_ns = stamp_ns if frame.pts is None else int(frame.pts)
        return {'gray': _brightness(frame), 'stamp_ns': stamp_ns}

    def _is_whole(self, frame: Any) -> bool:
        if frame.key_frame:
            self._wait_for_key = False
        return not self._wait_for_key and not frame.is_corrupt

    def _open(self, av: Any, name: str) -> None:
        """Start a decoder without delay: threads over frames would hold pictures back."""
        try:
            self._codec = av.CodecContext.create(name, 'r')
        except (av.FFmpegError, ValueError):
            raise CdrError(f'there is no decoder for video of the format {name!r}') from None
        self._codec.thread_type = 'SLICE'
        self._codec.flags |= av.codec.context.Flags.low_delay
        self._name, self._wait_for_key = name, True

    def _packet(self, raw: Buffer) -> tuple[int, str, bytes]:
        """Return the stamp, the decoder's name and the bytes of a message."""
        reader = Reader(raw)
        stamp_ns, _ = reader.header()
        if self._foxglove:
            data = bytes(reader.octets())
            name = reader.string()
        else:
            reader.i32()  # width
            reader.i32()  # height
            name = reader.string().partition(';')[0]
            reader.u64()  # time in units of the encoder
            reader.u8()  # flags
            reader.boolean()  # byte order of the encoder's machine
            data = bytes(reader.octets())
        for ending in _HARDWARE:
            name = name.removesuffix(ending)
        return stamp_ns, _DECODERS.get(name, name), data


def _brightness(frame: Any) -> Any:
    """Return the first plane [height, width] of a frame, without a copy where it is gray."""
    if frame.format.is_planar and frame.format.components[0].bits == 8 and not frame.format.is_rgb:
        plane = frame.planes[0]
        rows = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)
        return rows[: frame.height, : frame.width]
    return frame.to_ndarray(format='gray')


def _pyav() -> Any:
    """Import PyAV, or say how to get it."""
    try:
        import av
    except ImportError:
        raise RigError(
            "video packets are decoded with PyAV, which is not installed; pip install 'av', or "
            "the extra 'video' of this package"
        ) from None
    return av
