"""The picture of docs/timing.md: the page's timeline of the demo rig, run without ROS.

`./rig python test/support/timeline_picture.py` draws it again.
"""

from __future__ import annotations

from pathlib import Path

from rig_common.times import NS_PER_S
from sensor_rig.inprocess import InProcessRig
from sensor_rig.page.history import History, Mark
from sensor_rig.page.timeline_lanes import timeline
from sensor_rig.rigfile import load_rig

PICTURE = Path(__file__).resolve().parents[2] / 'docs' / 'images' / 'timeline.svg'
END_NS = 12 * NS_PER_S
SENSORS = ('front_lidar', 'camera', 'wheels', 'gnss')
SPAN_S = 0.8


def draw() -> str:
    """Return the last moments of a run of the demo as SVG on white."""
    rig = InProcessRig(load_rig('demo'))
    run_ns = rig.world.time_base.run_ns
    history = History(SENSORS, span_s=SPAN_S)
    while rig.elapsed_ns < END_NS:
        for message in rig.step():
            name, _, suffix = message.topic.partition('/')
            if name in SENSORS and suffix == rig.sensors[name].topics()[0].suffix:
                history.add_mark(
                    name,
                    Mark(
                        run_ns(message.sample.capture_ns),
                        run_ns(message.stamp_ns),
                        run_ns(message.arrival_ns),
                    ),
                )
        for bundle in rig.bundles:
            history.add_bundle(
                {
                    name: run_ns(member.stamp_ns)
                    for name, member in bundle.members.items()
                    if not member.missing and not member.collected
                }
            )
        history.advance(rig.elapsed_ns)
    return (
        timeline(history)
        .replace('<svg ', '<svg color="#1c2024" ', 1)
        .replace('>', '><rect width="100%" height="100%" fill="#ffffff"/>', 1)
    )


if __name__ == '__main__':
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(), encoding='utf-8')
