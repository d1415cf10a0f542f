"""A long run in lockstep with faults, which measures what must not grow and what must go on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rig_common.memory import return_freed_memory
from rig_common.ros.executor import Spinner, ros_context, stop_on_signals
from rig_common.times import NS_PER_S
from sensor_rig.rigfile import RigConfig
from sensor_rig.running.ros.disturbances import LONGEST_FAULT_S, Disturbances
from sensor_rig.running.ros.one_process import OneProcess
from sensor_rig.running.vitals import Vitals, sample

SAMPLES = 300
"""Samples of a whole run."""
SILENCE_S = 6 * LONGEST_FAULT_S
"""Simulated time without a bundle that no run of bad luck explains."""


@dataclass
class SoakReport:
    """What a soak run came to."""

    simulated_s: float = 0.0
    wall_s: float = 0.0
    bundles: int = 0
    longest_silence_s: float = 0.0
    """Longest simulated time without a bundle."""
    faults: Counter[str] = field(default_factory=Counter)
    vitals: Vitals = field(default_factory=Vitals)
    wrong: list[str] = field(default_factory=list)

    @property
    def violations(self) -> list[str]:
        """Return everything that must not be."""
        return [*self.wrong, *self.vitals.violations()]

    def as_dict(self) -> dict[str, Any]:
        """Return plain facts for `--json`."""
        first, last = self.vitals.samples[0], self.vitals.samples[-1]
        return {
            'simulated_s': self.simulated_s,
            'wall_s': self.wall_s,
            'bundles': self.bundles,
            'longest_silence_s': self.longest_silence_s,
            'faults': dict(sorted(self.faults.items())),
            'rss_mib': [first.rss_mib, last.rss_mib],
            'rss_slope_mib_per_h': self.vitals.slope_mib_per_h(),
            'threads': [first.threads, last.threads],
            'files': [first.files, last.files],
            'longest_queue': max(s.queued for s in self.vitals.samples),
            'violations': self.violations,
        }


class Soak:
    """One soak run; `run` it inside a ROS context."""

    def __init__(
        self,
        rig: RigConfig,
        spinner: Spinner,
        seconds: float,
        seed: int,
        advance: Callable[[float], None],
    ) -> None:
        """Run `rig` for `seconds` of simulated time; `advance(seconds)` shows progress."""
        self.report = SoakReport()
        self._nodes = OneProcess(rig, spinner)
        self._disturbances = Disturbances(rig, self._nodes, seed)
        self._spinner = spinner
        self._seconds, self._show = seconds, advance
        self._next_sample_s = 0.0
        self._last_ns = 0
        self._last_bundle_s = 0.0
        self._made = 0

    def run(self) -> SoakReport:
        """Run to the end, or until the spinner is stopped."""
        begun = time.monotonic()
        try:
            self._spinner.drive(self._advance)
            self._note()
        finally:
            self.report.wall_s = time.monotonic() - begun
            self.report.faults = self._disturbances.done
            self._nodes.close()
        return self.report

    def _advance(self) -> float:
        wait_s = self._nodes.world.advance()
        self._count_time()
        report = self.report
        self._count_bundles()
        if report.simulated_s >= self._next_sample_s:
            self._note()
            self._next_sample_s = report.simulated_s + self._seconds / SAMPLES
        if report.simulated_s >= self._seconds or report.wrong:
            self._spinner.stop()
            return 0.0
        self._disturbances.attend(report.simulated_s)
        return wait_s

    def _count_time(self) -> None:
        """Add up simulated time; a reset or a new world starts at zero again."""
        now_ns = max(self._nodes.world.world.time_ns, 0)
        passed_s = max(now_ns - self._last_ns, 0) / NS_PER_S
        self._last_ns = now_ns
        self.report.simulated_s += passed_s
        self._show(passed_s)

    def _count_bundles(self) -> None:
        sync, report = self._nodes.sync, self.report
        if sync is None:
            return
        made = sync.engine.bundles_made
        if made != self._made:
            report.bundles += made - self._made if made > self._made else made
            self._made = made
            self._last_bundle_s = report.simulated_s
        report.longest_silence_s = max(
            report.longest_silence_s, report.simulated_s - self._last_bundle_s
        )
        if report.simulated_s - self._last_bundle_s > SILENCE_S:
            report.wrong.append(
                f'no bundle came between {self._last_bundle_s:.1f} s and '
                f'{report.simulated_s:.1f} s of simulated time'
            )

    def _note(self) -> None:
        """Take a sample and check what has to be true at every moment."""
        nodes, report = self._nodes, self.report
        queued = max(
            (channel.on_the_way for channel in nodes.emulator.channels.values()), default=0
        )
        if nodes.sync is not None:
            engine = nodes.sync.engine
            buffered = engine.buffered()
            queued = max(queued, *buffered.values())
            lost = engine.ledger.imbalance(buffered)
            if lost:
                report.wrong.append(
                    f'messages without an account at {report.simulated_s:.1f} s: {lost}'
                )
            limit = engine.config.buffer.max_size
            if queued > limit:
                report.wrong.append(f'a queue holds {queued} messages; {limit} are allowed')
        report.vitals.samples.append(sample(report.simulated_s, queued))


def soak(
    rig: RigConfig,
    seconds: float,
    seed: int,
    advance: Callable[[float], None] = lambda seconds: None,
) -> SoakReport:
    """Soak a rig in this process, in lockstep and as fast as it goes."""
    rig = rig.with_world(lockstep=True, real_time_factor=0.0)
    # Every node that is made and destroyed leaks some 95 KiB in rclpy through this service.
    with ros_context(['--ros-args', '-p', 'start_type_description_service:=false']) as context:
        return_freed_memory()
        spinner = Spinner(context)
        with stop_on_signals(spinner.stop):
            return Soak(rig, spinner, seconds, seed, advance).run()
