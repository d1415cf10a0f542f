"""Where every message of a sync run went, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rig_common.jsonable import JsonObject
from sensor_rig.drawing import html_page as page
from sensor_rig.drawing.plots import lanes, legend
from sync_engine.streams.ledger import DROPPED, MEANING, USED, Outcome

GOOD_FATES = (*(each.value for each in USED), 'buffered')
DROP_FATES = tuple(each.value for each in DROPPED)
SPARE, UNMATCHED = 'spare', Outcome.UNMATCHED.value
"""Spare is what comes beyond one per reference frame: no bundle can take it."""
WHY = {
    'bundled': 'a member of a bundle',
    'collected': 'handed over with all others since the last bundle',
    'consumed': 'used for the window or a clock, by a stream that is no member',
    'buffered': 'still waiting at the end',
    SPARE: 'its stream is faster than the reference, so not every message has a bundle',
    'duplicate': 'the same sensor had sent the same stamp before',
    **{fate.value: words for fate, words in MEANING.items()},
    UNMATCHED: 'a better partner was taken, or its bundle could not be made',
}
WHY_MISSING = {
    'no_data': 'the stream was silent, or never there',
    'deadline': 'nothing near enough had come when the deadline passed',
    'out_of_window': 'the nearest frame lay outside of the window',
    'taken_by_next': 'the nearest frame was nearer to the next reference frame',
    'gap_too_long': 'interpolation would have bridged too long a gap, or has one side only',
    'not_interpolable': 'its type, or its two neighbours, cannot be interpolated',
}


def fates(run: JsonObject, name: str) -> dict[str, int]:
    """Return where a sensor's messages went, with what is `spare` taken out of `unmatched`."""
    sensors = run['sensors']
    counts = {fate: sensors[name]['counts'][fate] for fate in (*GOOD_FATES, *DROP_FATES)}
    beyond = sensors[name]['counts']['received'] - sensors[run['reference']]['counts']['received']
    counts[SPARE] = min(max(beyond, 0), counts[UNMATCHED])
    counts[UNMATCHED] -= counts[SPARE]
    return counts


def drops(run: JsonObject) -> str:
    """Return the section on where every message went, with a reason beside every count."""
    went = {name: fates(run, name) for name in run['sensors']}
    reasons = [fate for fate in DROP_FATES if any(counts[fate] for counts in went.values())]
    rows = []
    for name, counts in went.items():
        received = run['sensors'][name]['counts']['received']
        rows += [
            (
                name,
                fate,
                counts[fate],
                f'{counts[fate] / max(received, 1):.1%}',
                page.Words(WHY[fate]),
            )
            for fate in (*GOOD_FATES, SPARE, *DROP_FATES)
            if counts[fate]
        ]
    parts = [page.table(('sensor', 'fate', 'messages', 'share', page.Words('why')), rows)]
    missing = [
        (name, reason, count, page.Words(WHY_MISSING.get(reason, '')))
        for name, sensor in run['sensors'].items()
        for reason, count in sensor['missing'].items()
    ]
    if missing:
        parts.append(
            page.table(('missing in a bundle', 'reason', 'bundles', page.Words('why')), missing)
        )
    if reasons:
        parts = [legend(reasons), page.figure(_drop_bars(run, reasons, went)), *parts]
    return page.section('Where every message went', *parts)


def _drop_bars(
    run: JsonObject, reasons: Sequence[str], went: Mapping[str, Mapping[str, int]]
) -> str:
    names = list(went)
    shares = {
        name: [
            went[name][reason] / max(run['sensors'][name]['counts']['received'], 1) * 100.0
            for reason in reasons
        ]
        for name in names
    }
    plot = lanes(
        names,
        (0.0, max(*map(sum, shares.values()), 1e-3)),
        xlabel='share of the messages received (%)',
    )
    for lane, name in enumerate(names):
        start, y = 0.0, len(names) - 1 - lane
        for index, share in enumerate(shares[name]):
            if share:
                plot.bar(
                    (start, start + share),
                    (y - 0.3, y + 0.3),
                    index,
                    f'{reasons[index]}: {share:.2f} %',
                )
            start += share
    return plot.svg('drops by reason')
