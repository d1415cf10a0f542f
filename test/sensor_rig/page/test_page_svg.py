"""The page's drawings: well-formed, every time at its place, nothing that a name could break."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

pytest.importorskip('viser', reason='the live page needs viser')

from sensor_rig.page import svg
from sensor_rig.page.app import table
from sensor_rig.page.history import History, Mark, OffsetPoint, WindowPoint

MS = 10**6
S = 10**9
SPACE = '{http://www.w3.org/2000/svg}'


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def ticks(drawing: ElementTree.Element, colour: str) -> list[float]:
    """Return the x of every mark of a colour."""
    return [float(x) for path in drawing.iter(f'{SPACE}path') if path.get('stroke') == colour
            for x in re.findall(r'M([\d.]+)', path.get('d', ''))]


def x_of(time_s: float, now_s: float, span_s: float = 2.0) -> float:
    return svg.LABEL + (time_s - now_s + span_s) / span_s * (svg.WIDTH - svg.LABEL - 8)


def test_timeline_puts_the_three_times_of_a_sample_at_their_places() -> None:
    history = History(['lidar', 'camera'])
    history.add_mark('lidar', Mark(1 * S, 1 * S - 85 * MS, 1 * S + 150 * MS))
    history.add_mark('camera', Mark(1 * S + 10 * MS, 1 * S + 47 * MS, 1 * S + 40 * MS))
    history.add_bundle({'lidar': 1 * S - 85 * MS, 'camera': 1 * S + 47 * MS})
    history.advance(2 * S)
    drawing = parsed(svg.timeline(history))
    for colour, times_s in ((svg.CAPTURE, (1.0, 1.01)), (svg.STAMP, (0.915, 1.047)),
                            (svg.ARRIVAL, (1.15, 1.04))):
        assert ticks(drawing, colour) == pytest.approx([x_of(t, 2.0) for t in times_s], abs=0.06)
    bundle = next(line for line in drawing.iter(f'{SPACE}polyline')
                  if line.get('stroke') == svg.BUNDLE)
    ends = [float(point.split(',')[0]) for point in bundle.get('points', '').split()]
    assert ends == pytest.approx([x_of(1.0, 2.0), x_of(1.01, 2.0)], abs=0.06)


def test_a_fast_sensor_is_a_bar_with_gaps_where_samples_are_lost() -> None:
    history = History(['imu'])
    for index in range(400):
        if not 200 <= index < 240:
            history.add_mark('imu', Mark(index * 5 * MS, index * 5 * MS, index * 5 * MS + MS))
    history.advance(2 * S)
    drawing = parsed(svg.timeline(history))
    assert ticks(drawing, svg.CAPTURE) == pytest.approx([x_of(0.0, 2.0), x_of(1.2, 2.0)], abs=3)
    assert not list(drawing.iter(f'{SPACE}polyline')), 'samples are not connected one by one'


def test_a_quick_sensor_is_not_connected_but_has_its_marks() -> None:
    history = History(['wheels'])
    for index in range(100):
        history.add_mark('wheels', Mark(index * 20 * MS, index * 20 * MS, index * 20 * MS))
    history.advance(2 * S)
    drawing = parsed(svg.timeline(history))
    assert len(ticks(drawing, svg.CAPTURE)) == 99, 'the one at the very edge is gone'
    assert not list(drawing.iter(f'{SPACE}polyline'))


def test_offset_band_holds_the_line_and_the_scale_fits() -> None:
    line = [OffsetPoint(float(second), 122.0 + 0.3, 0.2, 122.0) for second in range(10)]
    text = svg.offsets({'camera': line}, 9.0, 10.0)
    drawing = parsed(text)
    band = next(drawing.iter(f'{SPACE}polygon')).get('points', '').split()
    path = next(drawing.iter(f'{SPACE}polyline')).get('points', '').split()
    middle = float(path[-1].split(',')[1])
    ys = [float(point.split(',')[1]) for point in band]
    assert min(ys) < middle < max(ys)
    assert '+122.30 ms' in text
    assert '+1 ms' in text, 'limit above 0.3 + 2 * 0.2'


@pytest.mark.parametrize(('value', 'limit'), [(0.2, 0.5), (0.7, 1.0), (3.0, 5.0), (11.0, 20.0)])
def test_scales_are_round(value: float, limit: float) -> None:
    assert svg._nice(value) == limit


def test_window_is_drawn_and_an_empty_one_too() -> None:
    points = [WindowPoint(0.0, 100.0, 0.0), WindowPoint(1.0, 20.0, 1.0)]
    assert '20 ms' in svg.window(points, 1.0, 10.0, 100.0)
    parsed(svg.window(points, 1.0, 10.0, 100.0))
    parsed(svg.window([], 1.0, 10.0, 100.0))
    parsed(svg.timeline(History([])))


def test_names_cannot_break_out() -> None:
    history = History(['<b>&"'])
    history.advance(S)
    parsed(svg.timeline(history))
    assert '<script' not in table(['a'], [['<script>']])


def test_upright_headers_stand_and_the_first_one_lies() -> None:
    text = table(['input', 'unmatched'], [['imu', '3']], upright=True)
    assert text.count('vertical-rl') == 1
    assert '>input<' in text
