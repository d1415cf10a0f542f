"""What a recording looks like, for its report: paths and a few pictures, in constant memory."""

from __future__ import annotations

import base64
import io
import math
from contextlib import suppress

from rig_common.cdr import CdrError
from rig_common.jsonable import JsonObject
from rig_common.msgs.decode import read_image
from sensor_rig.bags.reader import BagReader
from sensor_rig.syncing.series import Decimated
from sensor_rig.view.trajectories import pose_topics, read_pose_of

IMAGE = 'sensor_msgs/msg/Image'
SHOWN = ('rgb8', 'mono8')
MOST_PATHS, MOST_PICTURES = 6, 4
PICTURE_PX = 320


class Scenery:
    """Paths of everything that has poses, and pictures of the first camera."""

    def __init__(self, bag: BagReader) -> None:
        raw = [topic for topic in pose_topics(bag) if not topic.startswith('/synced/')]
        self._poses = {topic: bag.topics[topic].type_name for topic in raw[:MOST_PATHS]}
        self._paths = {topic: Decimated[float]() for topic in self._poses}
        cameras = sorted(
            name
            for name, topic in bag.topics.items()
            if topic.type_name == IMAGE and not name.startswith('/synced/')
        )
        self._camera = next(iter(cameras), None)
        self._pictures: Decimated[bytes] = Decimated(2 * MOST_PICTURES)

    @property
    def topics(self) -> list[str]:
        """What to `take`."""
        return [*self._poses, *([self._camera] if self._camera else [])]

    def take(self, topic: str, raw: bytes) -> None:
        """Take a message of one of `topics`; one that is none of its type is passed over."""
        with suppress(CdrError):
            if topic in self._poses:
                pose = read_pose_of(self._poses[topic], raw)
                x, y, z, w = pose.orientation_xyzw
                yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
                self._paths[topic].add(
                    pose.stamp_ns / 1e9, float(pose.position_m[0]), float(pose.position_m[1]), yaw
                )
            elif topic == self._camera:
                self._pictures.add(raw)

    def document(self) -> JsonObject:
        """Return paths (time s, x m, y m, yaw rad) by topic, and pictures (JPEG, base64)."""
        kept = [raw for (raw,) in self._pictures.rows]
        few = kept[:: -(-len(kept) // MOST_PICTURES) or 1]
        return {
            'paths': {topic: path.rows for topic, path in self._paths.items() if path.rows},
            'camera': self._camera,
            'pictures': [found for found in map(_jpeg, few) if found],
        }


def _jpeg(raw: bytes) -> str:
    """Return a small JPEG of an image message as base64; '' where it cannot be shown."""
    from PIL import Image

    with suppress(CdrError):
        image = read_image(raw)
        if image.encoding in SHOWN:
            picture = Image.fromarray(image.pixels)
            picture.thumbnail((PICTURE_PX, PICTURE_PX))
            out = io.BytesIO()
            picture.convert('RGB').save(out, 'JPEG', quality=75)
            return base64.b64encode(out.getvalue()).decode()
    return ''
