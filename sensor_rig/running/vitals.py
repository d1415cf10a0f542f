"""What a long run must not let grow: memory, threads, open files, children, queues.

Read from /proc, so there is nothing to install; elsewhere than on Linux `sample` says so.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from rig_common.errors import RigError

MIB = 1 << 20
SELF = Path('/proc/self')
SLACK_FILES = 8
SLACK_THREADS = 2
SETTLED_S = 1800.0
"""Simulated time after which every kind of node has been restarted some times."""
MAX_GROWTH = 0.05
"""Fraction of the memory that may be gained between the first and the last third of a run."""
MIN_GROWTH_MIB = 24.0
"""Smaller changes may come from the allocator alone (a restarted world loads its model before the
pages of the old one are used again)."""


@dataclass(frozen=True)
class Vital:
    """This process at one moment."""

    simulated_s: float
    rss_mib: float
    """Memory in use, MiB."""
    threads: int
    """All of the process: Python's and the middleware's."""
    files: int
    """Open file descriptors."""
    children: int
    queued: int
    """The longest queue of the run."""


def sample(simulated_s: float, queued: int) -> Vital:
    """Look at this process now."""
    try:
        pages = int((SELF / 'statm').read_text().split()[1])
        threads = len(list((SELF / 'task').iterdir()))
        files = len(list((SELF / 'fd').iterdir()))
    except OSError:
        raise RigError('a soak run measures itself in /proc, which this system lacks') from None
    return Vital(
        simulated_s, pages * os.sysconf('SC_PAGE_SIZE') / MIB, threads, files, _children(), queued
    )


def _children() -> int:
    children = 0
    for task in (SELF / 'task').iterdir():
        try:
            children += len((task / 'children').read_text().split())
        except OSError:  # the thread has just ended, or the kernel does not tell
            continue
    return children


@dataclass
class Vitals:
    """The samples of a run and the judgement on them."""

    samples: list[Vital] = field(default_factory=list)

    def slope_mib_per_h(self) -> float:
        """Return the median slope of memory over simulated time (Theil-Sen), MiB/h.

        The first half hour of a run of more than an hour, the first third of others, is left out.
        """
        first = len(self.samples) // 3
        if self.samples and self.samples[-1].simulated_s > 2 * SETTLED_S:
            first = next(i for i, s in enumerate(self.samples) if s.simulated_s >= SETTLED_S)
        kept = thinned(self.samples[first:])
        slopes = [
            (b.rss_mib - a.rss_mib) / (b.simulated_s - a.simulated_s)
            for i, a in enumerate(kept)
            for b in kept[i + 1 :]
            if b.simulated_s > a.simulated_s
        ]
        return 3600.0 * median(slopes) if slopes else 0.0

    def growth_mib(self) -> float:
        """Return the median memory of the last third minus that of the middle third, MiB."""
        third = len(self.samples) // 3
        if not third:
            return 0.0
        middle, last = self.samples[third : 2 * third], self.samples[2 * third :]
        return median(s.rss_mib for s in last) - median(s.rss_mib for s in middle)

    def violations(self) -> list[str]:
        """Return what grew, one sentence each."""
        if len(self.samples) < 3:
            return []
        first, last = self.samples[len(self.samples) // 3], self.samples[-1]
        found = []
        growth, allowed = self.growth_mib(), max(MIN_GROWTH_MIB, MAX_GROWTH * first.rss_mib)
        if growth > allowed:
            found.append(
                f'memory grew by {growth:.1f} MiB between the second and the last third '
                f'of the run ({self.slope_mib_per_h():.1f} MiB per simulated hour); '
                f'{allowed:.1f} MiB are allowed'
            )
        for what, before, after, slack in (
            ('threads', first.threads, last.threads, SLACK_THREADS),
            ('open files', first.files, last.files, SLACK_FILES),
            ('child processes', first.children, last.children, 0),
        ):
            if after > before + slack:
                found.append(f'{what} went from {before} to {after}')
        return found


def thinned(samples: Sequence[Vital], count: int = 200) -> list[Vital]:
    """Return at most `count` of the samples, evenly."""
    step = max(1, len(samples) // count)
    return list(samples[::step])
