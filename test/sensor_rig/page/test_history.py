"""What the page remembers of a run."""

from __future__ import annotations

import tracemalloc

from sensor_rig.page.history import (
    MOST_MARKS,
    History,
    Mark,
    Occurrence,
    OffsetPoint,
    WindowPoint,
)

MS = 10**6
S = 10**9


def test_marks_and_bundles_leave_with_their_time() -> None:
    history = History(['a', 'b'], span_s=2.0)
    for sensor in ('a', 'b'):
        history.add_mark(sensor, Mark(0, 5 * MS, 10 * MS))
    history.add_mark('a', Mark(1 * S, 1 * S + 5 * MS, 1 * S + 10 * MS))
    history.add_bundle({'a': 5 * MS, 'b': 5 * MS})
    history.add_bundle({'a': 1 * S + 5 * MS})
    history.advance(2 * S)
    assert len(history.marks['a']) == 2 and len(history.bundles) == 2
    history.advance(2 * S + 20 * MS)
    assert [mark.capture_ns for mark in history.marks['a']] == [1 * S]
    assert not history.marks['b']
    assert list(history.bundles) == [{'a': 1 * S + 5 * MS}]


def test_bundles_are_drawn_at_true_captures_of_members_that_are_shown() -> None:
    history = History(['a', 'b', 'c'])
    history.add_mark('a', Mark(100, 7, 200))
    history.add_mark('b', Mark(110, 9, 220))
    history.add_bundle({'a': 7, 'b': 9, 'c': 11})
    history.add_bundle({'a': 7, 'c': 11})
    assert history.bundle_captures() == [{'a': 100, 'b': 110}], 'one member makes no line'


def test_floods_of_bundles_and_samples_reach_a_plateau() -> None:
    """Six rounds of ever new names and of samples, while time hardly moves."""
    history, kept = History(['a']), []
    tracemalloc.start()
    for part in range(6):
        for k in range(MOST_MARKS):
            history.add_bundle({'a': k, f'{part} {k}'.ljust(1000, 'x'): k})
            history.add_mark('a', Mark(k, k, k))
        history.advance(part)
        kept.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert max(kept) - kept[1] < 1 << 20, kept


def test_a_jump_back_forgets_everything() -> None:
    history = History(['a'])
    history.add_mark('a', Mark(5 * S, 5 * S, 5 * S))
    history.add_bundle({'a': 5 * S})
    history.add_offset('a', OffsetPoint(5.0, 1.0, 0.1, 1.0))
    history.add_window(WindowPoint(5.0, 20.0, 1.0))
    history.advance(5 * S)
    history.advance(1 * S)
    assert history.now_ns == 1 * S
    assert not (history.marks['a'] or history.bundles or history.offsets or history.windows)


def test_long_lines_keep_a_minute() -> None:
    history = History(['a'], long_s=60.0)
    for second in range(100):
        history.add_offset('a', OffsetPoint(float(second), 0.0, 0.0, 0.0))
        history.add_window(WindowPoint(float(second), 20.0, 1.0))
    assert history.offsets['a'][0].time_s == history.windows[0].time_s == 39.0


def test_a_step_of_the_truth_is_kept_sharp_and_its_noise_is_not() -> None:
    history = History(['a'])
    history.add_offset('a', OffsetPoint(0.0, 5.0, 0.1, 5.0))
    history.add_truth('a', 0.5, 5.4)
    assert len(history.offsets['a']) == 1, 'the noise of one stamp'
    history.add_offset('a', OffsetPoint(1.0, 5.0, 0.1, 5.4))
    assert 5.0 < history.offsets['a'][-1].true_ms < 5.2
    history.add_truth('a', 1.5, 58.0)
    before, after = list(history.offsets['a'])[-2:]
    assert before.time_s == after.time_s == 1.5
    assert (before.true_ms, after.true_ms) == (history.offsets['a'][1].true_ms, 58.0)
    history.add_offset('a', OffsetPoint(2.0, 5.0, 0.1, 58.0))
    assert history.offsets['a'][-1].true_ms == 58.0
    history.add_truth('b', 2.0, 1.0)
    assert 'b' not in history.offsets


def test_events_are_told_within_a_minute_and_planned_ones_in_every_run() -> None:
    history = History(['a'], planned=[Occurrence(10.0, 'dead', 'a', 12.0)])
    history.add_event(Occurrence(5.0, 'clock +1 ms', 'a'))
    history.advance(7 * S)
    assert [event.label for event in history.events()] == ['a: clock +1 ms']
    history.advance(11 * S)
    assert [event.name for event in history.events()] == ['clock +1 ms', 'dead']
    history.advance(71 * S)
    assert [event.name for event in history.events()] == ['dead'], 'it ended within a minute'
    history.advance(1 * S)
    history.advance(11 * S)
    assert [event.name for event in history.events()] == ['dead'], 'the world was reset'
