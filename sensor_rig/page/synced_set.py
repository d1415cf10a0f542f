"""The members of the last bundle side by side: the picture, the scan, the turn rate around them.

The scan is drawn into the picture as well, as if both were of one moment: where the clocks are
wrong and the robot turns, its points lie beside the walls that they hit.
"""

from __future__ import annotations

import base64
import io
from collections import deque
from typing import NamedTuple

import numpy as np
from PIL import Image

from rig_common.arrays import Floats
from rig_common.cdr import Buffer, read_stamp_ns
from rig_common.msgs.decode import read_image, read_imu
from rig_common.times import NS_PER_S
from sensor_rig.drawing import svg
from sensor_rig.drawing.scan_points import SCAN_TYPES, Mount, points_of
from sensor_rig.page import parts
from sensor_rig.page.parts import (
    ARRIVAL,
    BOLD,
    BUNDLE,
    CAPTURE,
    INK,
    SOFT,
    TimeAxis,
)

IMAGE, IMU = 'sensor_msgs/msg/Image', 'sensor_msgs/msg/Imu'
ENCODINGS = ('rgb8', 'mono8')
WIDTH, HEIGHT, HEAD = 532.0, 152.0, 20.0
PICTURE_WIDTH, GAP = 200.0, 10.0
BEFORE_S, AFTER_S = 0.5, 0.05
LEAST_RATE = 30.0
"""What the turn rate's plot shows at least, degrees/s."""
MOST_POINTS = 500
BY_DISTANCE = ('#e5383b', '#f3722c', '#f9c74f', '#90be6d', '#43aa8b', '#4895ef', '#7b5be0')
"""Colours of dots, from a quarter of a metre, each for twice the distance."""
KEPT_SETS, KEPT_TURNS = 4, 400
TOO_NEAR_M = 0.05
"""In front of the camera: nearer points are not drawn into its picture."""


class View(NamedTuple):
    """A camera without distortion, and the LiDAR that it is drawn with."""

    camera: Mount
    lidar: Mount
    focal_px: float
    size_px: tuple[int, int]
    """Width and height."""

    def pixels(self, points_m: Floats) -> Floats:
        """Return where points [n, 3] of the LiDAR's frame are seen, [m, 3]: column, row, m."""
        x, y, z = self.camera.seen(self.lidar.carried(points_m)).T
        ahead = x > TOO_NEAR_M
        x, y, z = x[ahead], y[ahead], z[ahead]
        width, height = self.size_px
        found = np.stack(
            [width / 2 - self.focal_px * y / x, height / 2 - self.focal_px * z / x, x], 1
        )
        inside = (found[:, :2] >= 0.0).all(1) & (found[:, :2] < [width, height]).all(1)
        kept: Floats = found[inside]
        return kept


class SyncedSet:
    """Takes messages as they come, and draws those of the last bundle.

    Members of a bundle share a stamp; without a sync node the latest ones are drawn.
    """

    def __init__(self, view: View | None, *, is_synced: bool) -> None:
        """Draw scans into pictures as `view` has it, where it is known."""
        self._view, self._is_synced = view, is_synced
        self._messages: dict[str, deque[tuple[int, Buffer]]] = {}
        self._turns: deque[tuple[int, float]] = deque(maxlen=KEPT_TURNS)

    def take(self, type_name: str, message: Buffer) -> None:
        """Keep a picture, a scan, or the turn rate of an IMU."""
        stamp_ns = read_stamp_ns(message)
        if type_name == IMU:
            if self._turns and stamp_ns <= self._turns[-1][0]:
                self._turns.clear()
            self._turns.append((stamp_ns, float(np.degrees(read_imu(message)[0][2]))))
        else:
            kept = self._messages.setdefault(type_name, deque(maxlen=KEPT_SETS))
            kept.append((stamp_ns, message))

    def drawing(self, taken_within_ms: float | None) -> str:
        """Draw the last whole set; '' before there is one.

        `taken_within_ms`: between the first and the last true capture of its members.
        """
        found = self._latest()
        if found is None:
            return ''
        stamp_ns, members = found
        caption = 'latest, not synced'
        if taken_within_ms is not None:
            caption = f'truly taken within {taken_within_ms:.1f} ms'
        scan = next(((kind, members[kind]) for kind in SCAN_TYPES if kind in members), None)
        points = None if scan is None else _thinned(points_of(*scan).local_m)
        drawn, left = [svg.text(2, 13, caption, BOLD)], 2.0
        if IMAGE in members:
            drawn.append(self._picture(members[IMAGE], points, left))
            left += PICTURE_WIDTH + GAP
        if points is not None:
            if left < PICTURE_WIDTH:
                left += PICTURE_WIDTH - HEIGHT  # below the caption
            drawn.append(_from_above(points, left))
            left += HEIGHT + GAP
        if self._turns:
            drawn.append(_turn_rate(self._turns, stamp_ns, left))
        return parts.document(HEAD + HEIGHT + 2, drawn, 'synced set', WIDTH)

    def _latest(self) -> tuple[int, dict[str, Buffer]] | None:
        """Return the newest stamp that picture and scan share, with them."""
        if not self._messages:
            return None
        if not self._is_synced:
            latest = {kind: kept[-1] for kind, kept in self._messages.items()}
            return max(stamp for stamp, _ in latest.values()), {
                kind: message for kind, (_, message) in latest.items()
            }
        sets = [dict(kept) for kept in self._messages.values()]
        shared = set.intersection(*(set(each) for each in sets))
        if not shared:
            return None
        newest = max(shared)
        return newest, {
            kind: each[newest] for kind, each in zip(self._messages, sets, strict=True)
        }

    def _picture(self, message: Buffer, points: Floats | None, left: float) -> str:
        image = read_image(message)
        if image.encoding not in ENCODINGS:
            return svg.text(left, HEAD + 14, f'a picture in {image.encoding}', SOFT)
        shown = Image.fromarray(image.pixels)
        scale = min(PICTURE_WIDTH / shown.width, HEIGHT / shown.height)
        jpeg = io.BytesIO()
        shown.save(jpeg, 'JPEG', quality=80)
        data = base64.b64encode(jpeg.getvalue()).decode()
        dots = ''
        if points is not None and self._view is not None:
            seen = self._view.pixels(points)
            dots = _dots(seen[:, :2] * scale + [left, HEAD], seen[:, 2])
        return (
            f'<image x="{left}" y="{HEAD}" width="{scale * shown.width:.1f}" '
            f'height="{scale * shown.height:.1f}" href="data:image/jpeg;base64,{data}"/>{dots}'
        )


def _thinned(points: Floats) -> Floats:
    return points[:: max(1, len(points) // MOST_POINTS)]


def _dots(places_px: Floats, distances_m: Floats) -> str:
    """Return a dot at each place [n, 2], coloured by distance [n]: a jump is an edge."""
    band = np.minimum(
        np.log2(np.maximum(distances_m, 0.25) / 0.25).astype(int), len(BY_DISTANCE) - 1
    )
    return ''.join(
        f'<g fill="{colour}">'
        + ''.join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.4"/>' for x, y in places_px[band == index]
        )
        + '</g>'
        for index, colour in enumerate(BY_DISTANCE)
    )


def _from_above(points: Floats, left: float) -> str:
    """Draw points [n, 3] m from above, forward up, with the sensor in the middle."""
    flat = points[:, :2]
    reach_m = 1.1 * max(float(np.quantile(np.abs(flat), 0.95, axis=0).max()), 0.1)
    x, y, scale = left + HEIGHT / 2, HEAD + HEIGHT / 2, HEIGHT / 2 / reach_m
    near = flat[(np.abs(flat) < reach_m).all(1)]
    return (
        _ground(left, HEIGHT)
        + _dots([x, y] - scale * near[:, ::-1], np.hypot(*near.T))
        + f'<path d="M{x} {y - 6}l4 9h-8z" fill="{BUNDLE}"/>'
        + svg.text(left, 13, f'from above, {2 * reach_m:.3g} m')
    )


def _turn_rate(turns: deque[tuple[int, float]], stamp_ns: int, left: float) -> str:
    """Draw the turn rate about the IMU's z axis around the stamp of the bundle."""
    right = WIDTH - 4
    points = [((each - stamp_ns) / NS_PER_S, rate) for each, rate in turns]
    axis = TimeAxis(left, AFTER_S, BEFORE_S + AFTER_S, right)
    shown = [(t, rate) for t, rate in points if axis.shows(t)]
    reach = max([LEAST_RATE, *(abs(rate) for _, rate in shown)]) * 1.1
    middle = HEAD + HEIGHT / 2
    line = ((axis.x(t), middle - rate / reach * HEIGHT / 2) for t, rate in shown)
    now = axis.x(0.0)
    return (
        _ground(left, right - left)
        + f'<path d="M{left} {middle}H{right}" stroke="{ARRIVAL}" stroke-opacity="0.5"/>'
        + f'<path d="M{now:.1f} {HEAD}V{HEAD + HEIGHT}" stroke="{BUNDLE}" stroke-width="2"/>'
        + parts.line(line, CAPTURE)
        + svg.text(left, 13, f'turn rate, +-{reach:.0f} degrees/s')
    )


def _ground(left: float, width: float) -> str:
    return (
        f'<rect x="{left:.1f}" y="{HEAD}" width="{width:.1f}" height="{HEIGHT}" '
        f'fill="{INK}" fill-opacity="0.04"/>'
    )
