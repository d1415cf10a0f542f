"""Plots as SVG: well-formed, inside their frame, with round ticks."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig_common.quantiles import LogHistogram
from sensor_rig.drawing.plots import Plot, legend, nice_ticks, tick_label
from sensor_rig.syncing.series import Decimated, Presence

finite = st.floats(-1e9, 1e9, allow_nan=False)


@given(finite, finite)
def test_ticks_are_few_round_and_inside(a, b):
    low, high = sorted((a, b))
    ticks = nice_ticks(low, high)
    assert 1 <= len(ticks) <= 12
    if high - low > 1e-3 * max(abs(low), abs(high), 1e-9):
        step = high - low
        assert all(low - 1e-6 * step <= tick <= high + 1e-6 * step for tick in ticks)
        assert all(tick_label(tick, ticks) for tick in ticks)


@pytest.mark.parametrize(
    ('low', 'high', 'labels'),
    [
        (0, 10, ['0', '2', '4', '6', '8', '10']),
        (-0.3, 0.3, ['-0.2', '0.0', '0.2']),
        (1e-5, 3e-5, None),
        (5, 5, ['5']),
    ],
)
def test_tick_labels(low, high, labels):
    ticks = nice_ticks(low, high, 5 if high == 10 else 4)
    found = [tick_label(tick, ticks) for tick in ticks]
    assert labels is None or found == labels
    assert len(set(found)) == len(found)


def test_a_plot_is_well_formed_and_stays_in_its_frame():
    plot = Plot((0, 10), (-1, 1), xlabel='time (s)', ylabel='error <ms>')
    plot.line([0, 5, 10], [0, math.nan, 99], title='a & b')
    plot.band([0, 10], [-50, -50], [50, 50], 1)
    plot.bar((1, 2), (0, 7), 2, '50 %')
    plot.dots([1, 2], [math.inf, 0.5], 3)
    plot.ticks_at([-5, 5, 50], 0, 0.3, 4)
    plot.polyline([(0, 0), (1, 9)])
    root = ET.fromstring(plot.svg('title "quoted" <here>'))
    assert root.attrib['aria-label'] == 'title "quoted" <here>'
    for path in root.iter('path'):
        for x, y in re.findall(r'[ML](-?[\d.]+) (-?[\d.]+)', path.attrib['d']):
            assert -0.1 <= float(x) <= plot.width + 0.1
            assert -0.1 <= float(y) <= plot.height + 0.1
    assert len(list(root.iter('circle'))) == 1


def test_limits_that_are_no_range_are_widened():
    for limits in ((3, 3), (math.nan, 1), (0, math.inf)):
        ET.fromstring(Plot(limits, limits).svg('x'))
    assert '&lt;b&gt;' in legend(['<b>'])


def test_a_decimated_series_covers_the_whole_run():
    series = Decimated(100)
    for k in range(12_345):
        series.add(k, -k)
    times = [row[0] for row in series.rows]
    assert 50 <= len(times) <= 100
    assert times[0] == 0
    assert times[-1] > 12_000
    assert len({b - a for a, b in pairwise(times)}) == 1


@given(st.lists(st.floats(0, 5000), min_size=1, max_size=300))
def test_presence_counts_every_message_in_bounded_space(times):
    presence = Presence()
    for time_s in sorted(times):
        presence.add(time_s)
    assert sum(presence.counts) == len(times)
    assert len(presence.counts) <= Presence.SLICES


@given(st.lists(st.floats(1e-8, 100.0), min_size=1, max_size=300), st.floats(0.01, 1.0))
def test_quantiles_are_right_to_a_few_percent(values, fraction):
    histogram = LogHistogram()
    for value in values:
        histogram.add(value)
    exact = sorted(values)[max(math.ceil(fraction * len(values)) - 1, 0)]
    assert histogram.quantile_s(fraction) == pytest.approx(exact, rel=0.04)
    assert histogram.max_s == max(values)


def test_quantiles_of_nothing_are_not_a_number():
    assert math.isnan(LogHistogram().quantile_s(0.5))
