"""What happens on all topics at one moment: a loop, a joint, a host that was set, a pause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sensor_rig.findings.kinds import found
from sensor_rig.findings.levels import LevelChange
from sensor_rig.findings.model import WARNING, WRONG, Finding, Span, date, lasting, times
from sensor_rig.findings.timeline import Event, TimeLine

FEW = 20
"""Messages below which nothing is said about rates."""
HICCUP_S = 0.15
"""Shortest silence of all topics that is laid to the recorder."""
SHORTEST = 4.0
"""Periods of a topic from which on a silence of others must be one of this topic, too."""
PAUSED_S = 5.0
"""A longer silence is a pause, or a joint of two recordings."""
MOMENT_S = 1.0
SAME_S, SAME = 0.01, 0.05
"""How far sizes of one event may differ between topics."""
BACK_S = 0.5
HOST_S = 0.01
"""Smaller steps of a host are not told from changes of the latency."""
CLEAR = 1.5
"""A gap of the size of a step shows where it is this much longer than usual waits."""
TIGHT = 3.0
"""Periods that the overlap of a host set back must hold for its density to tell."""

Lines = Mapping[str, TimeLine]
Changes = Mapping[str, Sequence[LevelChange]]


def moments(lines: Lines, changes: Changes) -> list[dict[str, LevelChange]]:
    """Return the moments at which the stamps of all topics jump: the jump of each.

    What most of them jump by is the recording's; what is left of one of them is its own.
    """
    present = [name for name, line in lines.items() if line.count >= FEW]
    if len(present) < 2:
        return []
    fewest = min(present, key=lambda name: len(changes[name]))
    found_here = []
    for change in changes[fewest]:
        near = {
            name: min(changes[name], key=lambda each: abs(each.at_ns - change.at_ns), default=None)
            for name in present
            if lines[name].arrivals_ns[0] < change.at_ns - 5e8 * lines[name].period_s
            and lines[name].arrivals_ns[-1] > change.at_ns + 3e9 * lines[name].period_s
        }
        group = {
            name: each
            for name, each in near.items()
            if each is not None and _at_once(lines[name], each, lines[fewest], change)
        }
        slack_s = max(BACK_S, *(3.0 * lines[name].period_s for name in present))
        middle_s = float(np.median([each.size_s for each in group.values()])) if group else 0.0
        agree = [name for name in group if abs(group[name].size_s - middle_s) < slack_s]
        if len(agree) > 1 and 2 * len(agree) > len(group) == len(near):
            found_here.append(
                {
                    name: each if name in agree else each._replace(size_s=middle_s)
                    for name, each in group.items()
                }
            )
    return found_here


def _at_once(line: TimeLine, change: LevelChange, other: TimeLine, its: LevelChange) -> bool:
    """Return whether two topics change at one moment, as far as their messages tell."""
    slack_ns = _ns(MOMENT_S + 2.0 * line.period_s)
    span, its_span = span_of(line, change), span_of(other, its)
    return span[0] - slack_ns < its_span[1] and its_span[0] < span[1] + slack_ns


def loop_or_joint(
    lines: Lines, groups: Sequence[Mapping[str, LevelChange]], start_ns: int
) -> Iterator[Finding]:
    """Yield a recording that was played in a loop, or joined from two."""
    loops: list[Mapping[str, LevelChange]] = []
    joints: list[Mapping[str, LevelChange]] = []
    for group in groups:
        again = [name for name, each in group.items() if _begins_again(lines[name], each)]
        (loops if 2 * len(again) > len(group) else joints).append(group)
    if loops:
        names = sorted(set().union(*loops))
        at_s = (min(each.at_ns for each in loops[0].values()) - start_ns) / 1e9
        length_s = -float(np.median([each.size_s for each in loops[0].values()]))
        rounds = f'; {len(loops) + 1} rounds in all' if len(loops) > 1 else ''
        yield found(
            'looped',
            WRONG,
            names,
            f'time starts again after {at_s:.1f} s, back by {lasting(length_s)} on all of them: a '
            f'recording that was played in a loop{rounds}',
            {'length_s': length_s, 'rounds': len(loops) + 1},
            spans=[_seam(lines, group) for group in loops],
        )
    for group in joints:
        size_s = float(np.median([each.size_s for each in group.values()]))
        at_ns = min(each.at_ns for each in group.values())
        sign = '+' if size_s > 0.0 else '-'
        yield found(
            'spliced',
            WRONG,
            sorted(group),
            f'the stamps of all of them jump by {sign}{lasting(size_s)} at '
            f'{(at_ns - start_ns) / 1e9:.1f} s while messages arrive as before: two recordings '
            'were joined, or the clock that all of them follow was set',
            {'step_s': size_s, 'at_s': (at_ns - start_ns) / 1e9},
            spans=[_seam(lines, group)],
        )


def _seam(lines: Lines, group: Mapping[str, LevelChange]) -> Span:
    """Return the time in which all topics go from one level to the next."""
    spans = [span_of(lines[name], each) for name, each in group.items()]
    return min(span[0] for span in spans), max(span[1] for span in spans)


def _begins_again(line: TimeLine, change: LevelChange) -> bool:
    first_ns, again_ns = int(line.stamps_ns[0]), int(line.stamps_ns[change.place])
    begin_ns, end_ns = span_of(line, change)
    silent_s = (end_ns - begin_ns) / 1e9
    near_s = max(3.0 * line.period_s, 0.5, 1.5 * silent_s)
    return change.size_s < -BACK_S and abs(again_ns - first_ns) / 1e9 < near_s


def span_of(line: TimeLine, change: LevelChange) -> Span:
    """Return the time from the message before a change to the one after it."""
    return int(line.arrivals_ns[max(change.place - 1, 0)]), change.at_ns + 1


def host_steps(
    lines: Lines, changes: Changes, start_ns: int
) -> tuple[list[Finding], dict[str, TimeLine]]:
    """Return the steps of the recording host's clock, and the lines without them.

    `changes` are of the arrivals. A topic whose delay does not change is stamped by the host: it
    shows a gap where the host was set ahead, and twice as many messages where it was set back.
    """
    findings: list[Finding] = []
    undone = dict(lines)
    for members in _one_moment(changes):
        jump_s = -float(np.median([each.size_s for each in members.values()]))
        at_ns = min(each.at_ns for each in members.values())
        if abs(jump_s) < HOST_S:
            continue
        others = [name for name in lines if name not in members and lines[name].count >= FEW]
        seen = {name: _shows(lines[name], at_ns, jump_s) for name in others}
        by_host = sorted(name for name in others if seen[name] is not False)
        if False in seen.values() or len(members) + list(seen.values()).count(True) < 2:
            continue
        verb = 'is' if len(by_host) == 1 else 'are'
        stamped = f'; {", ".join(by_host)} {verb} stamped by it' if by_host else ''
        way = 'ahead' if jump_s > 0.0 else 'back'
        findings.append(
            found(
                'host_step',
                WRONG,
                sorted(lines),
                f'the clock of the recording host was set {way} by {lasting(jump_s)} at '
                f'{(at_ns - start_ns) / 1e9:.1f} s: all receive times jump, while the stamps of '
                f'{", ".join(sorted(members))} go on evenly{stamped}',
                {'step_ms': jump_s * 1e3, 'at_s': (at_ns - start_ns) / 1e9},
                spans=[(at_ns - _ns(abs(jump_s) + 1.0), at_ns + _ns(abs(jump_s) + 1.0))],
            )
        )
        for name in lines:
            undone[name] = _without_host_step(undone[name], members.get(name), at_ns, jump_s)
    return findings, undone


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _one_moment(changes: Changes) -> list[dict[str, LevelChange]]:
    """Return the changes that happen at one time and by one amount, on as many topics."""
    flat = sorted(
        ((each.at_ns, name, each) for name, own in changes.items() for each in own),
        key=lambda item: item[0],
    )
    groups: list[dict[str, LevelChange]] = []
    for at_ns, name, change in flat:
        for group in groups:
            one = next(iter(group.values()))
            near_s = MOMENT_S + abs(change.size_s)
            same = abs(one.size_s - change.size_s) < SAME_S + SAME * abs(one.size_s)
            if name not in group and abs(one.at_ns - at_ns) / 1e9 < near_s and same:
                group[name] = change
                break
        else:
            groups.append({name: change})
    return groups


def _shows(line: TimeLine, at_ns: int, jump_s: float) -> bool | None:
    """Return whether a topic's arrivals show the host's step; None where they cannot."""
    if jump_s > 0.0:
        if jump_s < CLEAR * float(np.percentile(line.waits_s, 99)):
            return None
        near = np.abs(line.arrivals_ns[1:] - at_ns) < _ns(MOMENT_S + jump_s)
        longest_s = float(line.waits_s[near].max()) if near.any() else 0.0
        if longest_s > CLEAR * jump_s + 2.0 * line.arrival_period_s:
            return None  # silent for another reason
        return longest_s > 0.85 * jump_s
    expected = -jump_s / line.arrival_period_s
    if expected < TIGHT:
        return None
    near = np.sort(line.arrivals_ns)
    near = near[np.abs(near - at_ns) < _ns(MOMENT_S - 2.0 * jump_s)]
    most = (np.searchsorted(near, near + _ns(-jump_s)) - np.arange(len(near))).max(initial=0)
    return bool(most > CLEAR * expected + 1.0) or (None if expected < 2.0 * TIGHT else False)


def _without_host_step(
    line: TimeLine, own: LevelChange | None, at_ns: int, jump_s: float
) -> TimeLine:
    """Return a line with the host's step undone in its arrivals, and in the stamps it wrote."""
    if own is not None:
        moves = np.where(np.arange(line.count) >= own.place, _ns(jump_s), 0)
        return line.moved(arrivals_by_ns=-moves)
    if jump_s > 0.0:
        near = np.flatnonzero(np.abs(line.arrivals_ns[1:] - at_ns) < _ns(MOMENT_S + jump_s))
        at = int(near[np.argmax(line.waits_s[near])]) + 1 if len(near) else line.count
        moves = np.where(np.arange(line.count) >= at, _ns(jump_s), 0)
    else:
        mixed = (line.arrivals_ns >= at_ns - _ns(0.2)) & (
            line.arrivals_ns <= at_ns + _ns(0.2 - jump_s)
        )
        line = line.only(~mixed)
        moves = np.where(line.arrivals_ns > at_ns, _ns(jump_s), 0)
    return line.moved(-moves, -moves)


def hiccups_of(lines: Lines) -> list[Span]:
    """Return the times in which nothing at all was recorded, and should have been.

    That is the recorder's fault and not a sensor's: every topic that is fast enough is silent.
    """
    sources = sorted(
        (line for line in lines.values() if line.count >= FEW and line.arrival_period_s > 0.0),
        key=lambda line: line.arrival_period_s,
    )
    if len(sources) < 2:
        return []
    spans = []
    for silence in sources[0].silences:
        span = silence.span
        witnesses = [
            line
            for line in sources[1:]
            if SHORTEST * line.arrival_period_s * 1e9 < span[1] - span[0]
            and line.arrivals_ns[0] < span[0]
            and line.arrivals_ns[-1] > span[1]
        ]
        for line in witnesses:
            span = next(
                (both for each in line.silences if (both := overlap(span, each.span))), (0, 0)
            )
        if witnesses and span[1] - span[0] >= HICCUP_S * 1e9:
            spans.append((span[0], silence.arrival_ns))
    return spans


def overlap(one: Span, other: Span) -> Span | None:
    """Return what two spans have in common; None for nothing."""
    begin, end = max(one[0], other[0]), min(one[1], other[1])
    return (begin, end) if begin < end else None


def overlaps(gap: Event, spans: Sequence[Span]) -> bool:
    """Return whether a gap lies over one of the spans."""
    return any(overlap(gap.span, span) for span in spans)


def hiccup_finding(lines: Lines, hiccups: Sequence[Span], start_ns: int) -> Iterator[Finding]:
    """Yield the recorder's hiccups as one finding of all topics."""
    if not hiccups:
        return
    longest = max(hiccups, key=lambda span: span[1] - span[0])
    longest_s = (longest[1] - longest[0]) / 1e9
    at_s = (hiccups[0][0] - start_ns) / 1e9
    lost = any(gap for line in lines.values() for gap in line.gaps if overlaps(gap, hiccups))
    fate = (
        'what came meanwhile is missing'
        if lost
        else 'what came meanwhile was written late, and nothing is missing'
    )
    paused = longest_s > PAUSED_S and lost
    what = (
        f'nothing was recorded for {lasting(longest_s)}, from {date(longest[0])} to '
        f'{date(longest[1])}: a pause, a recorder that stood still, or two recordings put '
        f'together'
        if paused
        else f'the recorder stood still {times(len(hiccups))}, for {lasting(longest_s)} at most, '
        f'first at {at_s:.1f} s; {fate}'
    )
    yield found(
        'recorder_hiccup',
        WARNING,
        ('all topics',),
        what,
        {'times': len(hiccups), 'longest_s': longest_s},
        change='look at the parts one by one' if paused else None,
        spans=hiccups,
    )


def latency_steps(name: str, changes: Sequence[LevelChange], start_ns: int) -> Iterator[Finding]:
    """Yield arrivals that change while the stamps go on evenly, on one topic alone."""
    if changes:
        worst = max(changes, key=lambda each: abs(each.size_s))
        later = 'later' if worst.size_s < 0.0 else 'earlier'
        more = f', {times(len(changes))} in all' if len(changes) > 1 else ''
        yield found(
            'latency_step',
            WARNING,
            name,
            f'arrives {lasting(worst.size_s)} {later} from '
            f'{(worst.at_ns - start_ns) / 1e9:.1f} s on, though its stamps go on evenly{more}',
            {'step_ms': -worst.size_s * 1e3, 'at_s': (worst.at_ns - start_ns) / 1e9},
            spans=[(each.at_ns, each.at_ns) for each in changes],
        )
