"""One run has one set of measures, whichever way it is looked at."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from support.places import ROOT
from support.sweeps import small_rig

from rig_common.errors import RigError
from rig_common.quantiles import ExactQuantiles, LogHistogram
from sensor_rig.bags.recorder import record_rig
from sensor_rig.bags.writer import BagWriter
from sensor_rig.cli.main import main
from sensor_rig.inprocess import InProcessRig
from sensor_rig.measures.claims import Claim
from sensor_rig.measures.recorded import recorded_measures
from sensor_rig.measures.simulated import simulated_measures
from sensor_rig.rigfile import load_rig
from sensor_rig.running.run_summary import InputSummary, SensorSummary, Summary, run_measures
from sync_engine.streams.ledger import Outcome


@pytest.fixture(scope='module')
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording of the small rig, with its bundles, beside its rig file."""
    folder = tmp_path_factory.mktemp('measures')
    rig = load_rig(small_rig(folder))
    with BagWriter(folder / 'drive') as writer:
        record_rig(InProcessRig(rig, arrays=False), writer, 3.0, lambda done: None)
    return folder / 'drive'


def test_in_process_recorded_and_heard_agree(recording: Path) -> None:
    rig = load_rig(recording.parent / 'rig.yaml')
    live = simulated_measures(InProcessRig(rig, arrays=False), 3.0)
    synced = recorded_measures(recording, rig.sync)
    heard = recorded_measures(recording)
    assert live['bundles'] > 50 and live['body.latency_ms.p50'] == 10.0
    assert {
        'imu.offset_error_ms.p95',
        'imu.pairing_error_ms.p95',
        'latency_ms.p50',
        'coverage',
        'imu.received',
        'completeness',
        'waiting_ms.max',
    } <= heard.keys() & live.keys()
    for key in heard.keys() - {'duration_s'}:
        # sync/bundle tells milliseconds to four digits
        assert heard[key] == pytest.approx(live[key], abs=2e-4), key
        if not key.startswith(('bundles', 'complete', 'waiting')):
            assert synced[key] == pytest.approx(live[key], rel=0.05, abs=1e-3), key


def test_no_coverage_where_the_frames_of_the_reference_were_not_copied(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rig, synced = recording.parent / 'rig.yaml', recording.parent / 'synced'
    assert main(['sync', str(recording), str(synced), '--rig', str(rig)]) == 0
    heard = recorded_measures(synced)
    assert heard['completeness'] == 1.0 and 'coverage' not in heard


def test_exact_quantiles() -> None:
    exact, binned = ExactQuantiles(), LogHistogram()
    for number in range(1, 101):
        exact.add(number / 1e3)
        binned.add(number / 1e3)
    assert [exact.quantile_s(part) for part in (0.5, 0.95, 0.99, 1.0)] == [0.05, 0.095, 0.099, 0.1]
    for part in (0.5, 0.95):
        assert binned.quantile_s(part) == pytest.approx(exact.quantile_s(part), rel=0.035)
    assert exact.summary().keys() == binned.summary().keys()


@pytest.mark.parametrize(
    ('text', 'value', 'holds'),
    [
        ('a.b<2', 1.0, True),
        ('a.b < 2', 2.0, False),
        ('a <= 2', 2.0, True),
        ('a>= -1e-3', 0.0, True),
        ('a == 3', 3.0, True),
        ('a != 3', 3.0, False),
        ('a > 0', float('nan'), False),
    ],
)
def test_claims(text: str, value: float, holds: bool) -> None:
    assert Claim.parse(text).holds(value) is holds


@pytest.mark.parametrize('text', ['', 'a', 'a <', 'a < b', '< 2', 'a = 2', 'a < 1 < 2', 'a < nan'])
def test_what_is_no_claim(text: str) -> None:
    with pytest.raises(RigError, match='is not a claim'):
        Claim.parse(text)


def told(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main(['assert', *map(str, arguments)])
    seen = capsys.readouterr()
    return code, seen.out, seen.err


def test_assert_on_a_recording(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rig = recording.parent / 'rig.yaml'
    code, out, _ = told(
        capsys, recording, '--that', 'bundles > 10', 'body.received > 49', '--json'
    )
    assert code == 0 and json.loads(out)['holds'] is True
    code, out, _ = told(capsys, recording, '--rig', rig, '--that', 'bundles > 1000')
    assert code == 1 and 'NO' in out
    code, _, err = told(capsys, recording, '--that', 'bundels > 10')
    assert code == 2 and "did you mean 'bundles'" in err
    code, out, _ = told(capsys, recording, '--json')
    assert code == 0 and json.loads(out)['measures']['bundles'] > 10
    assert told(capsys, recording, '--smoothed')[0] == 2
    assert told(capsys, recording / 'nothing')[0] == 2


def summary() -> Summary:
    ledger = {**{each.value: 0 for each in Outcome}, 'received': 10, 'bundled': 8, 'buffered': 2}
    sensors = {'camera': SensorSummary(15.0, 14.9, 30.0, 34.0, 10, 1, 0.1)}
    inputs = {'camera': InputSummary(37.1, 37.0, 0.2, 'locked', ledger)}
    return Summary(
        1.0,
        None,
        None,
        0,
        sensors,
        9,
        inputs,
        run_measures(sensors, inputs, {'camera.offset_error_ms.p95': 0.4}),
    )


def test_assert_on_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / 'run.json'
    file.write_text(json.dumps(summary().as_json()))
    claims = (
        'camera.offset_error_ms.p95 < 2',
        'camera.used_fraction == 0.8',
        'bundles == 9',
        'sensors.camera.achieved_hz > 14',
        'camera.lost_fraction <= 0.1',
    )
    assert told(capsys, file, '--that', *claims)[0] == 0
    assert told(capsys, file, '--that', 'camera.offset_error_ms.p95 < 0.3')[0] == 1
    assert told(capsys, file, '--rig', 'demo')[0] == 2
    for text in ('[]', 'no json', '{"kind": "sync"}'):
        file.write_text(text)
        code, _, err = told(capsys, file, '--that', 'a < 1')
        assert code == 2 and err.count('\n') == 1


def test_the_keys_of_a_summary_are_documented() -> None:
    page = (ROOT / 'docs' / 'sweep.md').read_text()
    part = page[page.index('## The JSON of') :]
    named = set(re.findall(r'`([a-z_0-9]+)`', part))
    for kind in (Summary, SensorSummary, InputSummary):
        for each in fields(kind):
            assert each.name in named, f'docs/sweep.md does not tell of {each.name}'
