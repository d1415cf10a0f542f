"""The log of a daemon that disciplines a clock: how far off its corrections leave the clock."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from rig_common.arrays import Floats
from rig_common.errors import RigError
from rig_common.validation import validated
from sensor_rig.fit.statistics import Estimate, mean_estimate, order_of, weakened
from sensor_rig.fit.times import FEWEST
from sim_sensors.timing.clock_config import DisciplineConfig

LINUXPTP = re.compile(r'\b(?:master|phc|sys) offset\s+(?P<ns>-?\d+)\s+s(?P<state>\d)')
"""ptp4l, phc2sys and ts2phc, one correction a line; state 2 is locked."""
SINCE_BOOT = re.compile(r'\[(\d+\.\d+)\]')
LINUXPTP_SUMMARY = re.compile(r'\brms\s+\d+\s+max\s+\d+\s+freq')
"""What the same print with summary_interval above 0: no single corrections."""
PMC = re.compile(
    r'send_stamp_ns\W+(?P<time>\d{16,19})'
    r'|stepsRemoved\W+(?P<steps>\d+)\W+offsetFromMaster[^\w-]+(?P<ns>-?[\d.]+)'
)
"""Answers to GET CURRENT_DATA_SET, as text or JSON."""
CHRONY = {'Freq ppm': (3, 6), "Std dev'n": (0, 4), 'LP RP': (0, 11)}
"""chrony's tracking.log, statistics.log and measurements.log by a part of their banner: fields
that say which lines belong together (0: the source's address), and the offset, s."""
CHRONY_LINE = re.compile(r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ')


@dataclass(frozen=True)
class Corrections:
    """What a log says: one offset for each correction."""

    name: str
    time_s: Floats
    """When, s [n]; empty where the log has no times."""
    offset_s: Floats
    """Clock minus its master, s [n]; of either sign, which does not matter here."""


@dataclass(frozen=True)
class ServoFit:
    """The keys of a clock's servo, fitted."""

    corrections: Corrections
    period_s: float
    sigma_s: Estimate
    correlations: tuple[float, ...]
    notes: tuple[str, ...]

    def config(self) -> DisciplineConfig:
        """Return the servo as a rig file has it."""
        return validated(DisciplineConfig, self.keys(), self.corrections.name)

    def keys(self) -> dict[str, Any]:
        """Return the keys of `clock.servo`."""
        found: dict[str, Any] = {
            'kind': 'ptp',
            'period_s': float(f'{self.period_s:.4g}'),
            'sigma_s': float(f'{self.sigma_s.value:.4g}'),
        }
        if self.correlations:
            found['correlations'] = list(self.correlations)
        return found


def read_log(file: Path) -> Corrections | None:
    """Return the corrections of a log; None where the file is no log that is known."""
    try:
        text = file.read_text(encoding='utf-8', errors='replace')
    except OSError:
        return None  # the reader of traces says why
    for reader in (_linuxptp, _pmc, _chrony):
        rows = reader(text)
        if rows:
            times = [time for time, _ in rows if time is not None]
            return Corrections(
                file.stem,
                np.array(times if len(times) == len(rows) else [], float),
                np.array([offset for _, offset in rows], float),
            )
    if LINUXPTP_SUMMARY.search(text):
        raise RigError(
            f'{file} has summaries (rms, max) and no single corrections; '
            'run ptp4l or phc2sys with a summary interval of 0 (-u 0, or summary_interval 0)'
        )
    return None


Rows = list[tuple[float | None, float]]


def _linuxptp(text: str) -> Rows:
    found: Rows = []
    for line in text.splitlines():
        match = LINUXPTP.search(line)
        if match and match['state'] == '2':
            time = SINCE_BOOT.search(line)
            found.append((float(time[1]) if time else None, int(match['ns']) / 1e9))
    return found


def _pmc(text: str) -> Rows:
    found: Rows = []
    asked_s = None
    for match in PMC.finditer(text):
        if match['time']:
            asked_s = int(match['time']) / 1e9
        elif match['steps'] != '0':  # the master itself is no step away
            found.append((asked_s, float(match['ns']) / 1e9))
    return found


def _chrony(text: str) -> Rows:
    columns = next((place for banner, place in CHRONY.items() if banner in text), None)
    if columns is None:
        return []
    rows = [line.split() for line in text.splitlines() if CHRONY_LINE.match(line)]
    rows = [row for row in rows if len(row) > columns[1]]
    if not columns[0]:  # one source of several: the one with the most lines
        (source, _), *_ = Counter(row[2] for row in rows).most_common(1) or [('', 0)]
        rows = [row for row in rows if row[2] == source]
    found: Rows = []
    for row in rows:
        try:
            at = datetime.fromisoformat(f'{row[0]} {row[1]}').replace(tzinfo=timezone.utc)
            found.append((at.timestamp(), float(row[columns[1]])))
        except ValueError:
            continue  # a torn line
    return found


def fit_servo(corrections: Corrections, skip_s: float = 0.0) -> ServoFit:
    """Return how often the clock is corrected, and what is left of its error each time."""
    time_s, offset_s = corrections.time_s, corrections.offset_s
    notes = ['offsets of the log are taken for what a correction leaves of the error']
    if len(time_s):
        kept = time_s - time_s[0] >= skip_s
        time_s, offset_s = time_s[kept], offset_s[kept]
    if len(offset_s) < FEWEST:
        raise RigError(
            f'{corrections.name} has {len(offset_s)} corrections of a locked clock; '
            f'a fit needs {FEWEST} or more'
        )
    period_s = float(np.median(np.diff(time_s))) if len(time_s) else 0.0
    if not period_s > 0.0:
        period_s = 1.0
        notes.append('the log has no times; a second between corrections is assumed')
    follows = np.ones(len(offset_s), np.bool_)
    if len(time_s):
        follows[1:] = np.abs(np.diff(time_s) / period_s - 1.0) < 0.5
    centred = offset_s - offset_s.mean()
    variance = mean_estimate(centred**2)
    sigma = Estimate(*(float(np.sqrt(max(each, 0.0))) for each in variance))
    if not sigma.value:
        raise RigError(f'{corrections.name} has the same offset in every correction')
    if abs(offset_s.mean()) > sigma.value:
        notes.append(f'a constant {offset_s.mean() * 1e6:.3g} us of it is left out')
    servo = {'kind': 'ptp', 'sigma_s': sigma.value}
    lags = weakened(
        order_of(centred, follows),
        (-1.0, 1.0),
        lambda found: validated(DisciplineConfig, {**servo, 'correlations': found}, 'servo'),
    )
    return ServoFit(
        Corrections(corrections.name, time_s, offset_s),
        period_s,
        sigma,
        tuple(lags),
        tuple(notes),
    )
