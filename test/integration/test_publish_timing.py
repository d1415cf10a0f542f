"""What the rig file says about rate, latency, clock and loss is what a subscriber sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from support.ros_rigs import MS, LockstepRun, write_rig
from support.start import START_NS

from rig_common.cdr import read_stamp_ns
from rig_common.msgs import read_time_reference
from sim_sensors.interface.sensor import Sample

SECONDS = 60
BAROMETER = {'type': 'barometer', 'mount': {'body': 'plate'}}
SENSORS: dict[str, Any] = {
    'fixed': {**BAROMETER, 'rate_hz': 20.0, 'delay_range_s': [0.0125, 0.0125]},
    'prompt': {**BAROMETER, 'rate_hz': 7.5},
    'jittery': {**BAROMETER, 'rate_hz': 15.0, 'delay_range_s': [0.05, 0.05], 'jitter_s': 0.05},
    'skewed': {
        **BAROMETER,
        'rate_hz': 12.5,
        'phase_s': 0.007,
        'delay_range_s': [0.004, 0.004],
        'clock': {'offset_s': -0.25, 'drift_ppm': 100.0},
    },
    'shaky': {**BAROMETER, 'rate_hz': 10.0, 'clock': {'offset_s': 1.0, 'stamp_jitter_s': 0.0005}},
    'host': {
        **BAROMETER,
        'rate_hz': 10.0,
        'delay_range_s': [0.03, 0.03],
        'jitter_s': 0.01,
        'clock': {'stamp_at': 'arrival', 'offset_s': 5.0},
    },
    'lossy': {**BAROMETER, 'rate_hz': 40.0, 'loss': {'probability': 0.1, 'burst_mean': 3.0}},
}


class Seen:
    """Times of one sensor's messages as a subscriber knows them, and the emulator's record."""

    def __init__(self, run: LockstepRun, name: str, samples: list[Sample]) -> None:
        truth = run.recorder.heard[f'truth/time/{name}']
        messages = run.recorder.heard[f'{name}/pressure']
        pairs = [read_time_reference(raw) for raw in truth.messages]
        self.capture_ns = np.array([pair[0] for pair in pairs]) - START_NS
        self.stamp_ns = np.array([read_stamp_ns(raw) for raw in messages.messages]) - START_NS
        self.arrival_ns = np.array(messages.arrivals_ns)
        self.samples = samples
        assert (self.stamp_ns + START_NS == [pair[2] for pair in pairs]).all()
        assert len(samples) == len(self.stamp_ns)

    @property
    def latency_ns(self) -> NDArray[np.int64]:
        return np.asarray(self.arrival_ns - self.capture_ns)

    @property
    def record_ns(self) -> NDArray[np.int64]:
        """Latency in the emulator's own record, to the nanosecond."""
        return np.array([each.arrival_ns - each.capture_ns for each in self.samples])


@pytest.fixture(scope='module')
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Seen]]:
    rig = write_rig(tmp_path_factory.mktemp('timing'), SENSORS)
    with LockstepRun(rig) as run:
        samples: dict[str, list[Sample]] = {name: [] for name in SENSORS}
        for name, channel in run.emulators[0].channels.items():
            keep = samples[name].append
            add = channel.stats.add
            channel.stats.add = lambda sample, now, keep=keep, add=add: (  # type: ignore
                keep(sample),
                add(sample, now),
            )
        run.run(SECONDS + 0.2)
        yield {name: Seen(run, name, samples[name]) for name in SENSORS}


def grid(time_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first physics step at or after each time."""
    return np.asarray(-(-time_ns // MS) * MS)


@pytest.mark.parametrize('name', [name for name in SENSORS if name != 'lossy'])
def test_rates_are_exact(seen: dict[str, Seen], name: str) -> None:
    sensor = SENSORS[name]
    times = np.sort(seen[name].capture_ns)
    k = np.arange(len(times))
    exact_ns = k * 1e9 / sensor['rate_hz'] + sensor.get('phase_s', 0.0) * 1e9
    assert np.abs(times - exact_ns).max() <= MS / 2
    assert (times < SECONDS * 1e9).sum() == SECONDS * sensor['rate_hz']


@pytest.mark.parametrize('name', SENSORS)
def test_arrival_is_seen_at_the_step_that_follows_it(seen: dict[str, Seen], name: str) -> None:
    stream = seen[name]
    assert (
        stream.latency_ns == grid(stream.capture_ns + stream.record_ns) - stream.capture_ns
    ).all()
    assert (np.diff(stream.arrival_ns) >= 0).all()


def test_constant_latency_is_exact(seen: dict[str, Seen]) -> None:
    assert set(seen['fixed'].record_ns) == {12_500_000}
    assert set(seen['fixed'].latency_ns) == {13 * MS}
    assert set(seen['prompt'].latency_ns) == {0}
    assert set(seen['skewed'].latency_ns) == {4 * MS}


def test_jitter_is_uniform(seen: dict[str, Seen]) -> None:
    jitter_s = (seen['jittery'].record_ns - 50 * MS) / 1e9
    assert jitter_s.min() >= 0.0
    assert jitter_s.max() < 0.05
    assert stats.kstest(jitter_s, stats.uniform(0.0, 0.05).cdf).pvalue > 0.001


def test_stamps_are_the_sensor_clock_s(seen: dict[str, Seen]) -> None:
    skewed = seen['skewed']
    expected = skewed.capture_ns - 250 * MS + np.rint(skewed.capture_ns * 100e-6).astype(int)
    assert (skewed.stamp_ns == expected).all()
    shaky = seen['shaky']
    errors_s = (shaky.stamp_ns - shaky.capture_ns - 1000 * MS) / 1e9
    assert stats.kstest(errors_s, stats.norm(0.0, 0.0005).cdf).pvalue > 0.001


def test_host_stamps_are_the_arrival_s(seen: dict[str, Seen]) -> None:
    host = seen['host']
    assert (host.stamp_ns - host.capture_ns == host.record_ns).all()
    assert (host.arrival_ns == grid(host.stamp_ns)).all()


def test_loss_has_its_fraction_and_its_bursts(seen: dict[str, Seen]) -> None:
    k = np.rint(seen['lossy'].capture_ns * 40.0 / 1e9).astype(int)
    captures = SECONDS * 40
    lost = np.setdiff1d(np.arange(captures), k)
    # Losses come in runs of mean 3, so they vary like a third as many independent ones.
    sigma = np.sqrt(0.1 * 0.9 / captures * (2 * 3 - 1))
    assert abs(len(lost) / captures - 0.1) < 4 * sigma
    runs = np.split(lost, np.flatnonzero(np.diff(lost) > 1) + 1)
    assert np.mean([len(run) for run in runs]) == pytest.approx(
        3.0, abs=4 * 2.5 / len(runs) ** 0.5
    )
