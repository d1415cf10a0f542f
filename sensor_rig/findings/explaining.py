"""From what was seen to its cause: equal evidence is one finding, and causes claim the rest.

Searches undo what they find on one topic before they look further, so most of what a cause does is
never seen. What is left here is what different searches saw of one thing: the same on several
topics of one source, a consequence on another topic, or a weaker explanation of the same times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from sensor_rig.bags.inspect import TopicFacts
from sensor_rig.findings.model import Finding, Severity, worst_first
from sensor_rig.findings.together import overlap

DOMAINS = frozenset(
    {
        'clock_tai',
        'clock_gps',
        'clock_gps_epoch',
        'clock_epoch',
        'clock_time_zone',
        'clock_power_up',
        'clock_other',
    }
)
CLOCK_CAUSES = DOMAINS | {
    'stamp_unit',
    'stamp_float',
    'restart',
    'wrap_around',
    'clock_step',
    'two_sources',
    'frozen_stamps',
    'time_rate',
    'looped',
    'spliced',
    'sim_time_mixed',
    'simulated_time',
    'time_back',
    'stray_stamps',
    'host_step',
}
"""Causes after which stamps of a topic cannot be compared with those of another one."""
COMPARISONS = frozenset({'clock_offset', 'camera_info_differs', 'stereo_differs', 'imu_split'})
SHARED = CLOCK_CAUSES | {
    'stamp_resolution',
    'clock_drift',
    'clock_wander',
    'future_stamps',
    'zero_stamps',
    'repeated_stamps',
    'out_of_order',
    'clock_offset',
    'latency_step',
    'host_stamps',
}
"""Findings that hold for every topic with the same stamps."""
ALIKE: dict[str, dict[str, tuple[float, float]]] = {
    **{code: {'offset_s': (0.0, 1.0)} for code in DOMAINS},
    'clock_power_up': {'offset_s': (0.0, 5.0)},
    'clock_step': {'step_ms': (0.05, 5.0), 'at_s': (0.0, 1.5)},
    'latency_step': {'step_ms': (0.05, 10.0), 'at_s': (0.0, 1.5)},
    'clock_wander': {
        'wander_ms': (0.5, 1.0),
        'drift_ppm': (0.25, 15.0),
        'at_start_ms': (0.3, 0.8),
        'at_middle_ms': (0.3, 0.8),
        'at_end_ms': (0.3, 0.8),
    },
    'future_stamps': {'delay_ms': (0.6, 2.0)},
    'restart': {'at_s': (0.0, 1.0)},
    'arrivals_in_batches': {'interval_ms': (0.15, 2.0)},
    'time_rate': {'pace': (0.01, 0.0)},
    'publish_clock': {'offset_ms': (0.0, 5.0)},
    'transport_delay': {'median_ms': (0.5, 5.0)},
    'repeated_stamps': {'repeated': (0.02, 2.0)},
    'frozen_stamps': {'longest': (0.05, 1.0)},
    'doubled_messages': {'share': (0.05, 0.02)},
    'host_stamps': {},
    'frame_empty': {},
}
"""Code -> figures that findings of several topics must share, within (a part, an amount)."""
MAIN = {'future_stamps': 'delay_ms', 'clock_step': 'step_ms', 'latency_step': 'step_ms'}
"""Code -> the figure whose largest value is said of several topics."""
TRENDS = frozenset({'clock_drift', 'clock_wander'})
DRIFT_SIGMAS = 3.0
USUAL_LATENCY_MS = 20.0
"""Of an IMU: by so much its clock may be further ahead than its future stamps show."""
UNEVEN_MS = 5000.0
"""Steps of simulated time against the host's that are no reset."""


BY_DAMAGE = frozenset(
    {
        'recorder_hiccup',
        'dropped_frames',
        'qos_loss',
        'stray_stamps',
        'time_back',
        'out_of_order',
        'frame_changes',
        'doubled_messages',
        'repeated_stamps',
        'zero_stamps',
        'clock_step',
        'latency_step',
        'throttled',
    }
)
"""What lost and altered bytes look like; in a damaged recording nobody can tell."""


def _always(cause: Finding, other: Finding) -> bool:
    return True


class Rule(NamedTuple):
    """What a cause explains."""

    causes: Set[str]
    codes: Set[str]
    by: str = 'topic'
    """`topic`: on its topics; `time`: at its time; `all`: everywhere."""
    fits: Callable[[Finding, Finding], bool] = _always


def _no_further(cause: Finding, other: Finding) -> bool:
    """Return whether time goes back no further than messages are out of order."""
    return other.evidence['largest_s'] * 1e3 < 1.5 * cause.evidence['largest_ms']


def _no_larger(cause: Finding, other: Finding) -> bool:
    """Return whether time goes back as far as stamps are ahead, or wander."""
    size_ms = max(abs(other.evidence.get(key, 0.0)) for key in ('delay_ms', 'wander_ms'))
    return size_ms < 1.5e3 * cause.evidence['largest_s']


def _runs_ahead(cause: Finding, other: Finding) -> bool:
    """Return whether a clock gets as far ahead by its drift, in the time that is told."""
    longest_s = max((end - begin for begin, end in cause.spans), default=0) / 1e9
    return -other.evidence['delay_ms'] < 1e-3 * cause.evidence['drift_ppm'] * longest_s


def _is_small(cause: Finding, other: Finding) -> bool:
    """Return whether a step is one that an uneven pace makes."""
    return abs(other.evidence['step_ms']) < UNEVEN_MS


def _same_clock(cause: Finding, other: Finding) -> bool:
    """Return whether motion tells all of it that some topics are stamped in the future."""
    return set(other.topics) <= set(cause.topics) and _is_as_far_ahead(other, cause)


def _is_as_far_ahead(future: Finding, offset: Finding) -> bool:
    """Return whether motion shows a clock as far ahead as its future stamps do."""
    return _ahead_ms(future, offset) > -0.5 * future.evidence['delay_ms']


def _is_that_far_ahead(future: Finding, offset: Finding) -> bool:
    """Return whether future stamps, and a usual latency, tell all of an offset."""
    left_ms = _ahead_ms(future, offset) + future.evidence['delay_ms']
    return _is_as_far_ahead(future, offset) and left_ms < USUAL_LATENCY_MS


def _ahead_ms(future: Finding, offset: Finding) -> float:
    """Return how far motion shows the clock of future stamps to be ahead of the other."""
    ahead_ms = offset.evidence.get('offset_ms', 0.0)
    if set(future.topics) & set(offset.topics):
        return ahead_ms
    return -ahead_ms if set(future.topics) & set(offset.related) else 0.0


CLAIMS = (
    Rule({'damaged'}, BY_DAMAGE, 'all'),
    Rule(
        {'host_step'},
        {'recorder_hiccup', 'out_of_order', 'time_back', 'clock_step', 'latency_step'},
        'time',
    ),
    Rule({'host_step'}, {'clock_wander', 'clock_drift', 'clock_other'}),
    Rule({'looped', 'spliced'}, {'time_back', 'clock_step', 'wrap_around', 'restart'}),
    Rule({'sim_time_mixed', 'simulated_time'}, DOMAINS | {'time_rate'}),
    Rule({'sim_time_mixed', 'simulated_time'}, {'clock_drift', 'clock_wander', 'latency_step'}),
    Rule({'sim_time_mixed', 'simulated_time'}, {'clock_step'}, fits=_is_small),
    Rule({'out_of_order'}, {'time_back'}, fits=_no_further),
    Rule({'time_back'}, {'future_stamps', 'clock_wander'}, fits=_no_larger),
    Rule({'clock_drift'}, {'future_stamps'}, fits=_runs_ahead),
    Rule({'time_rate'}, {'clock_other', 'clock_drift', 'clock_wander'}),
    Rule(
        {'time_rate', 'sim_time_mixed', 'simulated_time'},
        {'point_times_long', 'point_times_unit', 'rate_not_declared'},
    ),
    Rule(CLOCK_CAUSES | {'zero_stamps', 'stamp_resolution'}, COMPARISONS),
    Rule(
        {'two_sources'},
        {'frame_changes', 'time_back', 'out_of_order', 'repeated_stamps', 'latency_step'},
    ),
    Rule({'frame_changes'}, {'copied_topic'}),
    Rule({'restart', 'wrap_around'}, {'clock_power_up'}),
    Rule({'camera_info_differs'}, {'future_stamps'}),
    Rule({'clock_offset', 'stamp_point'}, {'future_stamps'}, fits=_same_clock),
    Rule({'repeated_stamps'}, {'doubled_messages'}),
    Rule({'looped', 'spliced'}, {'recorder_hiccup'}, 'time'),
    Rule({'stamp_float', 'stamp_resolution'}, {'repeated_stamps', 'frozen_stamps'}),
    Rule({'stamp_float', 'stamp_resolution'}, {'host_stamps', 'clock_wander', 'throttled'}),
    Rule({'arrivals_in_batches'}, {'repeated_stamps', 'host_stamps', 'latency_step'}),
    Rule({'recorder_hiccup'}, {'latency_step', 'clock_step'}, 'time'),
    Rule({'frozen_stamps'}, {'clock_step', 'latency_step', 'clock_wander'}),
    Rule({'throttled'}, {'rate_not_declared'}),
    Rule({'point_times_long'}, {'stamp_point'}),
)


def explained(findings: Sequence[Finding], facts: Sequence[TopicFacts]) -> list[Finding]:
    """Return the causes, with the codes of what each explains; what explains most comes first."""
    left = _consequences(_merged(_with_companions(findings, facts)))
    causes: list[Finding] = []
    while left:
        sizes = {id(each): len(_claimed(each, left)) for each in left}
        best = max(left, key=lambda each: (sizes[id(each)], each.severity))
        claimed = _claimed(best, left)
        left = [each for each in left if each is not best and each not in claimed]
        codes = {code for each in claimed for code in (each.code, *each.explains)}
        causes.append(replace(best, explains=tuple(sorted({*best.explains, *codes}))))
    return worst_first(causes)


def _consequences(findings: Sequence[Finding]) -> list[Finding]:
    """Make offsets no causes that follow from a clock which is ahead of the host."""
    ahead = [each for each in findings if each.code == 'future_stamps']
    return [
        replace(each, severity=Severity.INFO)
        if each.code == 'clock_offset'
        and any(_is_that_far_ahead(f, each) and not _same_clock(each, f) for f in ahead)
        else each
        for each in findings
    ]


def _claimed(cause: Finding, others: Sequence[Finding]) -> list[Finding]:
    return [each for each in others if each is not cause and _explains(cause, each)]


def _explains(cause: Finding, other: Finding) -> bool:
    return any(
        cause.code in claim.causes
        and other.code in claim.codes
        and claim.fits(cause, other)
        and (
            claim.by == 'all'
            or (claim.by == 'topic' and set(cause.topics) & {*other.topics, *other.related})
            or (claim.by == 'time' and _at_its_time(cause, other))
        )
        for claim in CLAIMS
    )


def _at_its_time(cause: Finding, other: Finding) -> bool:
    return bool(other.spans) and all(
        any(overlap(mine, (begin - 1, end + 1)) for mine in cause.spans)
        for begin, end in other.spans
    )


def _with_companions(findings: Sequence[Finding], facts: Sequence[TopicFacts]) -> list[Finding]:
    """Name all topics that share their stamps with the one on which something was found."""
    companions: dict[str, list[str]] = {}
    for topic in facts:
        if topic.shares_stamps_with:
            companions.setdefault(topic.shares_stamps_with, []).append(topic.name)
    return [
        replace(
            each,
            topics=tuple(
                dict.fromkeys(
                    [*each.topics, *(c for t in each.topics for c in companions.get(t, ()))]
                )
            ),
        )
        if each.code in SHARED
        else each
        for each in findings
    ]


def _merged(findings: Sequence[Finding]) -> list[Finding]:
    """Make one finding of those that say the same of several topics."""
    kept: list[Finding] = []
    for each in findings:
        for place, other in enumerate(kept):
            if _alike(each, other):
                kept[place] = _both(other, each)
                break
        else:
            kept.append(each)
    return [_of_one_clock(each) if each.code in TRENDS else each for each in kept]


def _of_one_clock(found: Finding) -> Finding:
    """Say of clocks that run alike that it may be the one clock which they are compared with."""
    if len(found.spans) < 2:
        return found
    what = f'{found.what}; all of them alike, so it may be the clock of the host that runs so'
    change = 'look whether NTP slews the host (`chronyc tracking`), or PTP the clock they share'
    return replace(found, what=what, change=change)


def _alike(one: Finding, other: Finding) -> bool:
    if one.code != other.code:
        return False
    if one.what == other.what or set(one.topics) == set(other.topics):
        return True
    if one.code == 'clock_drift':
        slack = DRIFT_SIGMAS * max(one.evidence['sigma_ppm'], other.evidence['sigma_ppm'], 0.5)
        return abs(one.evidence['drift_ppm'] - other.evidence['drift_ppm']) < slack
    if one.code not in ALIKE:
        return False
    return all(
        abs(one.evidence[key] - other.evidence[key])
        <= max(part * abs(other.evidence[key]), amount)
        for key, (part, amount) in ALIKE[one.code].items()
    )


def _both(one: Finding, other: Finding) -> Finding:
    size = MAIN.get(one.code, '')
    worse = max(one, other, key=lambda each: (each.severity, abs(each.evidence.get(size, 0.0))))
    return replace(
        worse,
        topics=tuple(dict.fromkeys([*one.topics, *other.topics])),
        related=tuple(dict.fromkeys([*one.related, *other.related])),
        spans=(*one.spans, *other.spans),
    )
