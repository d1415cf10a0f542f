"""The picture sheet of a rig: for every sensor what it measured, over what was true.

`record` runs the rig without ROS and keeps what each sensor captured; `draw` puts one panel per
sensor on a sheet. How a type looks is in `gallery_panels`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rig_common.errors import RigError
from rig_common.times import NS_PER_S
from sensor_rig.pictures import figures
from sensor_rig.pictures import gallery_panels as panels
from sensor_rig.pictures.gallery_style import INK, SOFT
from sensor_rig.pictures.takes import Take
from sensor_rig.rigfile import RigConfig
from sim_sensors.interface import Sample
from sim_sensors.rig import Rig

COLUMNS = 4
PANEL_IN = (4.7, 3.3)
HEAD_IN = 1.35
CHUNK_S = 0.1
"""How much is simulated between two updates of the progress bar, s."""


def record(
    config: RigConfig,
    seconds: float,
    lead_s: float = 0.0,
    advance: Callable[[float], None] = lambda _: None,
) -> list[Take]:
    """Run a rig for `lead_s` + `seconds` and return what its sensors captured in the latter."""
    world = config.simulated_world.model_copy(update={'num_envs': 1})
    rig = Rig(
        world,
        config.make_sensors().values(),
        seed=config.seed,
        links=config.links,
        base_dir=config.path.parent,
        messages=True,
        arrays=False,
    )
    start_ns = round(lead_s * NS_PER_S)
    found: dict[str, dict[int, Sample]] = {name: {} for name in rig.sensors}
    left_s = lead_s + seconds
    while left_s > 0.0:
        span_s = min(CHUNK_S, left_s)
        for message in rig.run(span_s):  # a sample may make several
            sample = message.sample
            if sample.elapsed_ns >= start_ns:
                found[sample.sensor][sample.index] = sample
        left_s -= span_s
        advance(span_s)
    takes = [
        Take(rig.sensors[name], [samples[index] for index in sorted(samples)], start_ns)
        for name, samples in found.items()
        if samples
    ]
    if not takes:
        raise RigError(
            f'no sensor of {config.path.name} captured anything in {seconds:g} s; give '
            f'it longer with --seconds'
        )
    return takes


def draw(takes: list[Take], title: str, subtitle: str, out: Path) -> None:
    """Draw one panel per sensor and save the sheet; the suffix of `out` says the format."""
    rows = -(-len(takes) // COLUMNS)
    width, height = COLUMNS * PANEL_IN[0], rows * PANEL_IN[1] + HEAD_IN
    with figures.figure(width, height) as figure:
        figure.text(
            0.25 / width,
            1.0 - 0.42 / height,
            title,
            size=22,
            weight='bold',
            va='center',
            color=INK,
        )
        figure.text(
            0.25 / width, 1.0 - 0.80 / height, subtitle, size=11.5, va='center', color=SOFT
        )
        panels.legend(figure)
        grid = figure.add_gridspec(
            rows,
            COLUMNS,
            left=0.75 / width,
            right=1.0 - 0.3 / width,
            bottom=0.5 / height,
            top=1.0 - (HEAD_IN + 0.35) / height,
            wspace=0.3,
            hspace=0.52,
        )
        for index, take in enumerate(takes):
            panels.draw(figure, grid[index], take)
        figures.save(figure, out)
