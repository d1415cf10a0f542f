"""The quick MCAP writer writes the bytes of rosbags' own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import Writer

from rig_common import msgs
from sensor_rig.bags import writer as bag_writer
from sensor_rig.bags.quick_mcap import QuickWriter


@pytest.mark.parametrize('compress', [False, True])
def test_the_files_are_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compress: bool
) -> None:
    made: dict[str, Any] = {
        '/picture': msgs.image('camera', 480, 640, 'rgb8'),
        '/imu': msgs.imu('imu'),
        '/never': msgs.imu('imu'),
    }
    pixels = np.random.default_rng(1).integers(0, 255, (480, 640, 3), np.uint8)
    for kind in (Writer, QuickWriter):
        monkeypatch.setattr(bag_writer, 'QuickWriter', kind)
        with bag_writer.BagWriter(tmp_path / kind.__name__ / 'bag', compress=compress) as writer:
            for topic, template in made.items():
                writer.add_topic(topic, template.type_name)
            for k in range(40):  # several chunks, times not in order
                writer.write('/imu', 10**9 + (k ^ 1) * 10**6, made['/imu'].fill(k))
                if k % 8 == 0:
                    writer.write(
                        '/picture', 10**9 + k * 10**6, made['/picture'].fill(k, data=pixels)
                    )
    first, second = (tmp_path / kind.__name__ / 'bag' for kind in (Writer, QuickWriter))
    for name in ('bag.mcap', 'metadata.yaml'):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    assert (first / 'bag.mcap').stat().st_size > 2 << 20
