"""The page of a sync run: timeline, offsets with sigma, pairing error, drops by reason."""

from __future__ import annotations

from math import isfinite

from rig_common.jsonable import JsonObject
from sensor_rig.drawing import html_page as page
from sensor_rig.drawing.plots import Plot, lanes, legend
from sensor_rig.syncing.drops import DROP_FATES, GOOD_FATES, SPARE, drops, fates
from sensor_rig.syncing.scenery_page import scenery_sections

NAN = float('nan')
DOUBT_MS = 10.0
"""Offsets more certain than this (2 sigma) are nothing to warn of."""
FAR_WORSE = 1.5
"""A true pairing this many times the estimated one means that offsets were wrong."""


def sync_page(run: JsonObject) -> str:
    """Return the HTML of a run's document (see sync_data)."""
    return page.page(
        run['title'], f'{run["source"]}, from {page.date(run["start_ns"])}', sync_sections(run)
    )


def sync_sections(run: JsonObject) -> list[str]:
    """Return the sections, for pages that show more than the sync run."""
    sections = [_tiles(run), page.section('Sensors', _sensor_table(run))]
    if run['duration_s'] > 0.0:
        sections.append(_timeline(run))
    if run['zoom']['bundles']:
        sections.append(_zoom(run))
    return [
        *sections,
        *scenery_sections(run),
        _offsets(run),
        *_mountings(run),
        *_truth(run),
        _pairing(run),
        drops(run),
        _window(run),
    ]


def unaccounted(run: JsonObject) -> int:
    """Return how many messages the ledger cannot explain (0, or there is a bug)."""
    return sum(
        abs(counts['received'] - sum(counts[fate] for fate in GOOD_FATES + DROP_FATES))
        for counts in (sensor['counts'] for sensor in run['sensors'].values())
    )


def _tiles(run: JsonObject) -> str:
    received = sum(sensor['counts']['received'] for sensor in run['sensors'].values())
    lost = unaccounted(run)
    frames = run['sensors'].get(run['reference'], {}).get('counts', {}).get('received', 0)
    unpaired = max(frames - run['bundles'], 0)
    share = run['complete'] / run['bundles'] if run['bundles'] else 0.0
    return page.tiles(
        [
            (f'{run["bundles"]}', 'bundles', 'good' if run['bundles'] else 'bad'),
            (f'{share:.1%}', 'of them complete', ''),
            (f'{unpaired}', 'reference frames without a bundle', ''),
            (f'{received}', 'messages received', ''),
            (f'{lost}', 'unaccounted for', 'bad' if lost else 'good'),
            *_pairing_tiles(run),
            (f'{_ms(run["waiting"]["p95_s"])} ms', 'p95 wait after the last member', ''),
            (f'{run["duration_s"]:.1f} s', 'length', ''),
        ]
    )


def _pairing_tiles(run: JsonObject) -> list[tuple[str, str, str]]:
    """Return how well the members fit, as far as that can be believed.

    The engine's own figure is after its correction of the clocks, and a wrong correction does not
    show in it: bad is where the offsets are less certain, or the truth is known and far worse.
    """
    paired = [sensor for sensor in run['sensors'].values() if sensor['pairing']['count']]
    if not paired:
        return []
    own_s = max((sensor['pairing']['p95_s'] for sensor in paired), default=NAN)
    sigma_ms = max(
        (sensor['last']['sigma_ms'] for sensor in paired if sensor['last']), default=NAN
    )
    true_s = max(
        (
            sensor['truth']['pairing']['p95_s']
            for sensor in paired
            if sensor['truth']['pairing']['count']
        ),
        default=NAN,
    )
    is_doubtful = 2.0 * sigma_ms > max(1e3 * own_s, DOUBT_MS)
    tiles = [
        (f'{_ms(own_s)} ms', 'worst p95 pairing, as estimated', 'bad' if is_doubtful else ''),
        (
            f'± {2.0 * sigma_ms:.3g} ms' if isfinite(sigma_ms) else 'not known',
            'least certain offset, 2 sigma',
            'bad' if is_doubtful else '',
        ),
    ]
    if true_s == true_s:
        tiles.append(
            (
                f'{_ms(true_s)} ms',
                'worst p95 pairing in truth',
                'bad' if true_s > FAR_WORSE * own_s else 'good',
            )
        )
    return tiles


def _sensor_table(run: JsonObject) -> str:
    rows = []
    for name, sensor in run['sensors'].items():
        counts, pairing, last = sensor['counts'], sensor['pairing'], sensor['last']
        rate = sensor.get('rate_hz', NAN)  # a report.json may be older than this key
        went = fates(run, name)
        dropped = sum(went[fate] for fate in DROP_FATES)
        reference = name == run['reference']
        offset = (
            'reference'
            if reference
            else f'{last["offset_ms"]:+.3f} ± {last["sigma_ms"]:.3f}'
            if last and isfinite(last['sigma_ms'])
            else '-'
        )
        rows.append(
            (
                (name, f'{sensor["topic"]} {sensor["type"].split("/")[-1]}'),
                sensor['stamp_source'],
                '-' if rate != rate else f'{rate:.1f}',
                offset,
                last.get('state', '-'),
                '-' if reference else _ms(pairing['p50_s']),
                '-' if reference else _ms(pairing['p95_s']),
                counts['received'],
                went[SPARE],
                dropped,
            )
        )
    return page.table(
        (
            'sensor',
            'stamps',
            'Hz',
            'offset ms',
            'state',
            'pairing p50',
            'p95',
            'received',
            'spare',
            'dropped',
        ),
        rows,
    )


def _timeline(run: JsonObject) -> str:
    names = list(run['sensors'])
    plot = lanes([*names, 'bundles'], (0.0, run['duration_s']))
    rows = [run['sensors'][name]['presence'] for name in names] + [run['bundle_presence']]
    for lane, presence in enumerate(rows):
        top = max(presence['counts'], default=0) or 1
        width, y = presence['slice_s'], len(names) - lane
        for index, count in enumerate(presence['counts']):
            if count:
                plot.bar(
                    (index * width, (index + 1) * width),
                    (y - 0.35, y + 0.35),
                    lane,
                    f'{count / width:.1f} Hz',
                    opacity=0.25 + 0.75 * count / top,
                )
    return page.section(
        'Timeline',
        page.text(
            'When each stream was there; a paler stretch is a lower rate, a hole is a dropout.'
        ),
        page.figure(plot.svg('rate of every stream over the run')),
    )


def _zoom(run: JsonObject) -> str:
    zoom, names = run['zoom'], list(run['sensors'])
    moments = [bundle['stamp_s'] for bundle in zoom['bundles']]
    margin = (moments[-1] - moments[0]) * 0.1 + 0.02
    plot = lanes(
        names,
        (moments[0] - margin, moments[-1] + margin),
        xlabel='time since the start of the run (s)',
    )
    lane_of = {name: len(names) - 1 - lane for lane, name in enumerate(names)}
    for bundle in zoom['bundles']:
        points = [
            (bundle['members'][name], lane_of[name]) for name in names if name in bundle['members']
        ]
        if len(points) > 1:
            plot.polyline(points)
    for lane, name in enumerate(names):
        plot.ticks_at(zoom['messages'].get(name, ()), lane_of[name], 0.25, lane)
    return page.section(
        'The last bundles',
        page.text(
            'Every stroke is a message at its capture time on the '
            "host's clock; a line joins the members of a bundle. The "
            'straighter it stands, the better they fit.'
        ),
        page.figure(plot.svg('members of the last bundles')),
    )


def _offsets(run: JsonObject) -> str:
    figures = []
    for index, (name, sensor) in enumerate(run['sensors'].items()):
        rows = sensor['offset']
        if len(rows) < 2:
            continue
        times, offsets, sigmas, truths = zip(*rows, strict=True)
        settled = rows[len(rows) // 5 :]
        edges = [(o - 3 * s, o + 3 * s) for _, o, s, _ in settled if s < float('inf')]
        edges += [(true, true) for *_, true in settled if true == true]
        low, high = (
            min((e[0] for e in edges), default=-1.0),
            max((e[1] for e in edges), default=1.0),
        )
        plot = Plot(
            (0.0, run['duration_s']),
            (low, high),
            xlabel='time (s)',
            ylabel='offset (ms)',
            height=170.0,
        )
        plot.band(
            times,
            [o - 2 * s for o, s in zip(offsets, sigmas, strict=True)],
            [o + 2 * s for o, s in zip(offsets, sigmas, strict=True)],
            index,
        )
        plot.line(times, offsets, index)
        caption = f'{name}: clock minus the reference, with 2 sigma'
        filtered = sensor.get('filtered') or ()
        if filtered:
            plot.polyline([(row[0], row[1]) for row in filtered], 'filtered')
            caption = (
                f'{name}: clock minus the reference, smoothed, with 2 sigma; dotted: as a '
                'live node would have known it'
            )
        if any(true == true for true in truths):
            plot.polyline(
                [(t, true) for t, true in zip(times, truths, strict=True) if true == true], 'truth'
            )
            caption += '; dashed: the truth'
        figures.append(page.figure(plot.svg(f'clock offset of {name}'), caption))
    if not figures:
        return page.section('Clock offsets', page.text(_nothing_to_draw(run)))
    return page.section('Clock offsets', *figures)


def _mountings(run: JsonObject) -> list[str]:
    """Return how the sensors are turned against the IMU, where any measures rotations."""
    rows, wrong = [], []
    for name, sensor in run['sensors'].items():
        mounting = sensor.get('mounting')
        if mounting is None:
            continue
        axis = mounting['axis_imu']
        shown = ' '.join(f'{value:+.4f}' for value in axis or mounting['quat_wxyz'])
        off = mounting['declared_off_deg']
        rows.append(
            (
                name,
                mounting['source'],
                ('axis ' if axis else '') + shown,
                f'{mounting["sigma_deg"]:.2f}',
                'yes' if mounting['observable'] else 'no',
                '-' if off is None else f'{off:.2f}',
            )
        )
        if mounting['contradiction']:
            wrong.append(mounting['contradiction'] + '.')
    if not rows:
        return []
    return [
        page.section(
            'Mounting against the IMU',
            *map(page.warning, wrong),
            page.table(
                (
                    'sensor',
                    'from',
                    'rotation to the IMU (w x y z)',
                    'sigma (deg)',
                    'shown by motion',
                    'off the declared (deg)',
                ),
                rows,
            ),
            page.text(
                'A rotation that is not declared is estimated together with the offset; it '
                'takes turns about two axes. A yaw-only cue shows where its axis points.'
            ),
        )
    ]


def _truth(run: JsonObject) -> list[str]:
    """Return how far the estimates were from the truth, where that is known."""
    rows = [
        (
            name,
            *(
                _ms(sensor['truth'][what][key])
                for what in ('offset_error', 'pairing')
                for key in ('p50_s', 'p95_s', 'max_s')
            ),
        )
        for name, sensor in run['sensors'].items()
        if name != run['reference'] and sensor['truth']['offset_error']['count']
    ]
    if not rows:
        return []
    return [
        page.section(
            'Against the truth',
            page.text(
                'The recording knows when every message was truly captured. Offset: '
                'estimate minus '
                'truth, relative to the reference, over the whole run. Pairing: true '
                'capture time of the '
                'member minus that of the reference.'
            ),
            page.table(('sensor', 'offset p50', 'p95', 'max', 'pairing p50', 'p95', 'max'), rows),
        )
    ]


def _pairing(run: JsonObject) -> str:
    drawn = [
        (name, sensor['delta'])
        for name, sensor in run['sensors'].items()
        if len(sensor['delta']) > 1
    ]
    if not drawn:
        return page.section('Pairing error', page.text(_nothing_to_draw(run)))
    reach = max(abs(delta) for _, rows in drawn for _, delta in rows) or 1.0
    plot = Plot(
        (0.0, run['duration_s']),
        (-reach, reach),
        xlabel='time (s)',
        ylabel='frame minus target (ms)',
        height=260.0,
    )
    for index, (_, rows) in enumerate(drawn):
        plot.dots([row[0] for row in rows], [row[1] for row in rows], index)
    return page.section(
        'Pairing error',
        page.text(
            'How far each member is from the reference frame, after the '
            'correction of its clock. Half a period of the member is the '
            'best that can be had without a trigger.'
        ),
        legend([name for name, _ in drawn]),
        page.figure(plot.svg('pairing error')),
    )


def _nothing_to_draw(run: JsonObject) -> str:
    if run['bundles'] < 2:
        return 'There were too few bundles to draw.'
    return (
        f'None of the {run["bundles"]} bundles has a member of its own moment besides the '
        'reference: the other streams are collected, interpolated or missing.'
    )


def _window(run: JsonObject) -> str:
    rows = run['window']
    if len(rows) < 2:
        return page.section('Window', page.text('There were too few bundles to draw.'))
    plot = Plot(
        (0.0, run['duration_s']),
        (0.0, max(row[1] for row in rows) * 1.05),
        xlabel='time (s)',
        ylabel='half-width (ms)',
        height=150.0,
    )
    plot.line([row[0] for row in rows], [row[1] for row in rows])
    return page.section(
        'Window',
        page.text('Half-width of the search, narrow in fast motion.'),
        page.figure(plot.svg('selection window')),
    )


def _ms(seconds: float) -> str:
    return '-' if seconds != seconds else f'{seconds * 1e3:.3g}'
