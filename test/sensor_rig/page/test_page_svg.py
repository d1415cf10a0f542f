"""The page's drawings: well-formed, every time at its place, nothing that a name could break."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

pytest.importorskip('viser', reason='the live page needs viser')

from sensor_rig.page import parts
from sensor_rig.page.app import table
from sensor_rig.page.body import Body, Trace, contacts, joints
from sensor_rig.page.history import History, Mark, Occurrence, OffsetPoint, WindowPoint
from sensor_rig.page.offsets import limits, offsets, window
from sensor_rig.page.timeline_lanes import timeline

MS = 10**6
S = 10**9
SPACE = '{http://www.w3.org/2000/svg}'


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def ticks(drawing: ElementTree.Element, colour: str) -> list[float]:
    """Return the x of every mark of a colour."""
    return [
        float(x)
        for path in drawing.iter(f'{SPACE}path')
        if path.get('stroke') == colour
        for x in re.findall(r'M([\d.]+)', path.get('d', ''))
    ]


def x_of(time_s: float, now_s: float, *names: str, span_s: float = 2.0) -> float:
    return parts.TimeAxis(parts.label_width(names), now_s, span_s).x(time_s)


def events(drawing: ElementTree.Element) -> list[float]:
    """Return the x of every mark of an event."""
    return [
        float(path.get('d', 'M0 ')[1:].split()[0])
        for path in drawing.iter(f'{SPACE}path')
        if path.get('class') == 'rig-event'
    ]


def heights(drawing: ElementTree.Element, colour: str) -> list[float]:
    """Return the y of every point of the first line of a colour."""
    line = next(line for line in drawing.iter(f'{SPACE}polyline') if line.get('stroke') == colour)
    return [float(point.split(',')[1]) for point in line.get('points', '').split()]


def test_timeline_puts_the_three_times_of_a_sample_at_their_places() -> None:
    history = History(['lidar', 'camera'])
    history.add_mark('lidar', Mark(1 * S, 1 * S - 85 * MS, 1 * S + 150 * MS))
    history.add_mark('camera', Mark(1 * S + 10 * MS, 1 * S + 47 * MS, 1 * S + 40 * MS))
    history.add_bundle({'lidar': 1 * S - 85 * MS, 'camera': 1 * S + 47 * MS})
    history.advance(2 * S)
    drawing = parsed(timeline(history))
    for colour, times_s in (
        (parts.CAPTURE, (1.0, 1.01)),
        (parts.STAMP, (0.915, 1.047)),
        (parts.ARRIVAL, (1.15, 1.04)),
    ):
        places = [x_of(time_s, 2.0, 'lidar', 'camera') for time_s in times_s]
        assert ticks(drawing, colour) == pytest.approx(places, abs=0.06)
    bundle = next(
        line for line in drawing.iter(f'{SPACE}polyline') if line.get('stroke') == parts.BUNDLE
    )
    ends = [float(point.split(',')[0]) for point in bundle.get('points', '').split()]
    assert ends == pytest.approx([x_of(t, 2.0, 'lidar', 'camera') for t in (1.0, 1.01)], abs=0.06)


def test_a_fast_sensor_is_a_bar_with_gaps_where_samples_are_lost() -> None:
    history = History(['imu'])
    for index in range(400):
        if not 200 <= index < 240:
            history.add_mark('imu', Mark(index * 5 * MS, index * 5 * MS, index * 5 * MS + MS))
    history.advance(2 * S)
    drawing = parsed(timeline(history))
    begins = [x_of(time_s, 2.0, 'imu') for time_s in (0.0, 1.2)]
    assert ticks(drawing, parts.CAPTURE) == pytest.approx(begins, abs=3)
    assert not list(drawing.iter(f'{SPACE}polyline')), 'samples are not connected one by one'


def test_a_quick_sensor_is_not_connected_but_has_its_marks() -> None:
    history = History(['wheels'])
    for index in range(100):
        history.add_mark('wheels', Mark(index * 20 * MS, index * 20 * MS, index * 20 * MS))
    history.advance(2 * S)
    drawing = parsed(timeline(history))
    assert len(ticks(drawing, parts.CAPTURE)) == 99, 'the one at the very edge is gone'
    assert not list(drawing.iter(f'{SPACE}polyline'))


def test_offset_band_holds_the_line_and_the_truth_is_another_line() -> None:
    line = [OffsetPoint(float(second), 122.0 + 0.3, 0.2, 122.0) for second in range(10)]
    text = offsets({'camera': line}, 'lidar', 9.0, 10.0)
    drawing = parsed(text)
    band = next(drawing.iter(f'{SPACE}polygon')).get('points', '').split()
    ys = [float(point.split(',')[1]) for point in band]
    estimate, truth = heights(drawing, parts.STAMP)[-1], heights(drawing, parts.BUNDLE)[-1]
    assert min(ys) < estimate < max(ys)
    assert estimate < truth, '0.3 ms above it'
    assert '+122.3 ms, off by 0.3 ms' in text
    assert text.count('relative to lidar') == 1


def test_a_clock_step_is_seen_as_a_step() -> None:
    """53 ms are most of the plot's height, in the truth at once and in the estimate later."""
    line = [
        OffsetPoint(
            0.1 * index, 122.0 if index < 320 else 175.0, 0.5, 122.0 if index < 300 else 175.0
        )
        for index in range(600)
    ]
    drawing = parsed(
        offsets(
            {'camera': line}, 'lidar', 60.0, 60.0, [Occurrence(30.0, 'clock +90 ms', 'camera')]
        )
    )
    frame = next(each for each in drawing.iter(f'{SPACE}rect') if each.get('fill') == parts.INK)
    high = float(frame.get('height', 0.0))
    for colour in (parts.BUNDLE, parts.STAMP):
        ys = heights(drawing, colour)
        assert max(ys) - min(ys) > 0.7 * high
        assert len(set(ys)) == 2, 'two levels, nothing is clipped'
    assert events(drawing) == [pytest.approx(x_of(30.0, 60.0, span_s=60.0), abs=40.0)]
    assert any(each.text == 'clock +90 ms' for each in drawing.iter(f'{SPACE}text'))


@pytest.mark.parametrize(
    ('points', 'least', 'most'),
    [
        ([(10.0, 0.1, 10.0)], 4.0, 4.0),
        ([(0.0, 900.0, 122.0), (122.0, 0.5, 122.0)], 4.0, 4.0),
        ([(122.0, 0.5, 122.0), (122.0, 0.5, 175.0)], 53.0, 70.0),
    ],
)
def test_the_scale_holds_the_truth_and_sure_estimates(
    points: list[tuple[float, float, float]], least: float, most: float
) -> None:
    low, high = limits([OffsetPoint(0.0, *point) for point in points])
    assert least <= high - low <= most
    assert low <= points[-1][2] <= high


def test_events_stand_in_the_timeline_with_their_names() -> None:
    planned = [Occurrence(1.5, 'dead', 'imu', 6.5), Occurrence(90.0, 'stuck')]
    history = History(['imu'], planned=planned)
    history.add_event(Occurrence(1.0, 'clock +65 ms', 'imu'))
    history.advance(2 * S)
    drawing = parsed(timeline(history))
    assert events(drawing) == [pytest.approx(x_of(t, 2.0, 'imu'), abs=0.06) for t in (1.0, 1.5)]
    said = [each.text for each in drawing.iter(f'{SPACE}text')]
    assert 'imu: dead' in said and 'imu: clock +65 ms' in said and 'stuck' not in said
    history.advance(5 * S)
    later = parsed(timeline(history))
    assert not events(later)
    assert 'imu: dead' in [each.text for each in later.iter(f'{SPACE}text')], 'it still lasts'


def test_window_and_an_empty_timeline_are_drawn() -> None:
    points = [WindowPoint(0.0, 100.0, 0.0), WindowPoint(1.0, 20.0, 1.0)]
    assert '20 ms' in window(points, 1.0, 10.0, 100.0)
    parsed(window(points, 1.0, 10.0, 100.0))
    parsed(timeline(History([])))


def test_joints_show_measured_over_true() -> None:
    trace = Trace()
    for index in range(50):
        trace.add('true', 0.1 * index, 0.02 * index)
        trace.add('measured', 0.1 * index, 0.02 * index + 0.1)
    text = joints({'elbow': trace, 'silent': Trace()}, 5.0)
    drawing = parsed(text)
    assert heights(drawing, parts.CAPTURE)[-1] < heights(drawing, parts.BUNDLE)[-1]
    assert '+1.080' in text and 'elbow' in text and 'silent' in text


def test_a_switch_is_a_block_while_it_is_closed() -> None:
    body = Body(
        contacts={'foot': Trace(), 'wrist': Trace(), 'new': Trace()},
        switches=frozenset(['foot', 'new']),
    )
    for time_s, closed in ((1.0, 1.0), (2.0, 0.0), (2.01, 1.0), (2.02, 0.0)):
        body.contacts['foot'].add('measured', time_s, closed, switches=True)
    for time_s, force in ((1.0, 3.0), (2.0, 37.0)):
        body.contacts['wrist'].add('measured', time_s, force)
    text = contacts(body, 5.0)
    block = next(path.get('d', '') for path in parsed(text).iter(f'{SPACE}path'))
    assert block.count('Z') == 2, 'a short touch is not left out'
    assert '50 N' in text, 'the next round number'


def test_names_cannot_break_out() -> None:
    history = History(['<b>&"'])
    history.advance(S)
    parsed(timeline(history))
    assert '<script' not in table(['a'], [['<script>']])
