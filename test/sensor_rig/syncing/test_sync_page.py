"""The report of a sync run: its data, its page, the command."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from rig_common.jsonable import with_nan
from sensor_rig.cli.main import main
from sensor_rig.syncing.drops import DROP_FATES, GOOD_FATES, drops, fates
from sensor_rig.syncing.scenery import MOST_PICTURES
from sensor_rig.syncing.scenery_page import laid, scenery_sections
from sensor_rig.syncing.series import Decimated
from sensor_rig.syncing.sync_page import sync_page, unaccounted

RIG = """/**:
  ros__parameters:
    seed: 7
    world: {model: rover_yard.xml, timestep_s: 0.001, real_time_factor: 0.0, driver: figure_eight}
    sensors:
      imu: {type: imu, rate_hz: 100.0, delay_range_s: [0.001, 0.002], mount: {body: rover}}
      wheels:
        type: wheel_odometry
        rate_hz: 20.0
        delay_range_s: [0.005, 0.006]
        clock: {offset_s: 0.037}
      pose: {type: pose, rate_hz: 10.0, delay_range_s: [0.015, 0.016], mount: {body: rover}}
    sync:
      inputs: {pose: {cue: odometry}, wheels: {cue: odometry}, imu: {collect: true}}
      reference_sensor_id: pose
      required_sensors: [pose, wheels]
      imu_sensor_id: imu
"""
VOID = {'meta', 'br', 'path', 'rect', 'circle'}


class Balance(HTMLParser):
    """Raises where tags do not close in order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID or tag in ('path', 'rect', 'circle'):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    """A recording, its rig, and the data of its report."""
    folder = tmp_path_factory.mktemp('report')
    (folder / 'rig.yaml').write_text(RIG)
    main(
        [
            'record',
            str(folder / 'bag'),
            '--rig',
            str(folder / 'rig.yaml'),
            '--seconds',
            '8',
            '--no-sync',
        ]
    )
    assert (
        main(['sync', str(folder / 'bag'), str(folder / 'out'), '--rig', str(folder / 'rig.yaml')])
        == 0
    )
    return folder


def test_the_data_explains_every_message_and_knows_the_truth(run):
    document = with_nan(json.loads((run / 'out' / 'report.json').read_text()))
    assert unaccounted(document) == 0
    wheels = document['sensors']['wheels']
    assert wheels['truth']['offset_error']['count'] == document['bundles'] > 60
    assert wheels['truth']['offset_error']['p95_s'] < 0.010
    *_, (_, offset_ms, sigma_ms, true_ms) = wheels['offset']
    assert true_ms == pytest.approx(37.0, abs=0.1)
    assert abs(offset_ms - true_ms) < 4 * sigma_ms
    assert wheels['truth']['pairing']['p95_s'] <= 0.0255  # half a period of the wheels


def test_the_page_is_balanced_and_stands_alone(run):
    text = (run / 'out' / 'report.html').read_text()
    checker = Balance()
    checker.feed(re.sub(r'<!doctype[^>]*>', '', text))
    assert [tag for tag in checker.open if tag not in VOID] == []
    assert not re.search(r'(src|href)=', text)
    for word in ('Against the truth', 'dashed: the truth', 'prefers-color-scheme', 'locked'):
        assert word in text


def test_the_headline_doubts_what_is_wrong(run):
    document = with_nan(json.loads((run / 'out' / 'report.json').read_text()))
    assert '<b class="bad">' not in sync_page(document)
    wheels = document['sensors']['wheels']
    own_s = wheels['pairing']['p95_s']
    wheels['truth']['pairing']['p95_s'] = 3.0 * own_s
    assert f'<b class="bad">{3e3 * own_s:.3g} ms</b><span>worst p95 pairing in truth' in (
        sync_page(document)
    )
    wheels['truth']['pairing']['count'] = 0
    assert 'pairing in truth' not in sync_page(document)
    wheels['last']['sigma_ms'] = 30.0
    assert '<b class="bad">± 60 ms</b>' in sync_page(document)


def test_rates_and_last_bundles_are_in_the_time_of_the_run(run):
    document = with_nan(json.loads((run / 'out' / 'report.json').read_text()))
    assert document['sensors']['imu']['rate_hz'] == pytest.approx(100.0, abs=0.1)
    assert document['sensors']['pose']['rate_hz'] == pytest.approx(10.0, abs=0.1)
    moments = [bundle['stamp_s'] for bundle in document['zoom']['bundles']]
    assert 6.0 < moments[0] < moments[-1] <= document['duration_s']


def test_the_page_escapes_what_it_is_given(run):
    document = with_nan(json.loads((run / 'out' / 'report.json').read_text()))
    document['title'] = '<script>alert(1)</script>'
    document['sensors']['<i>'] = document['sensors'].pop('imu')
    page = sync_page(document)
    assert '<script>' not in page
    assert '<i>' not in page.replace('<i class', '')


def test_the_command_makes_the_page_of_a_recording_and_of_a_run(run, capsys):
    out = run / 'page.html'
    assert (
        main(
            ['report', str(run / 'bag'), '--rig', str(run / 'rig.yaml'), '-o', str(out), '--json']
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)['bundles'] > 60
    again = run / 'again.html'
    assert main(['report', str(run / 'out'), '-o', str(again)]) == 0
    assert again.read_text() == (run / 'out' / 'report.html').read_text()


def test_mistakes_are_one_sentence(run, tmp_path, capsys):
    assert main(['report', str(run / 'bag')]) == 2
    assert 'say with --rig' in capsys.readouterr().err
    assert main(['report', str(tmp_path / 'nope')]) == 2
    assert capsys.readouterr().err == f'error: there is no run at {tmp_path / "nope"}\n'
    (tmp_path / 'report.json').write_text('{"kind": "other"}')
    assert main(['report', str(tmp_path)]) == 2
    assert 'not the data of a sync report' in capsys.readouterr().err
    (tmp_path / 'report.json').write_text('nonsense')
    assert main(['report', str(tmp_path)]) == 2


def test_a_faster_stream_has_spare_messages_which_are_no_drops() -> None:
    nothing = dict.fromkeys((*GOOD_FATES, *DROP_FATES), 0)
    run = {
        'reference': 'lidar',
        'sensors': {
            'lidar': {
                'counts': {**nothing, 'received': 10, 'bundled': 9, 'unmatched': 1},
                'missing': {},
            },
            'camera': {
                'counts': {**nothing, 'received': 15, 'bundled': 9, 'unmatched': 6},
                'missing': {'deadline': 1},
            },
        },
    }
    assert (fates(run, 'lidar')['spare'], fates(run, 'lidar')['unmatched']) == (0, 1)
    assert (fates(run, 'camera')['spare'], fates(run, 'camera')['unmatched']) == (5, 1)
    shown = drops(run)
    for words in (
        'faster than the reference',
        'a better partner was taken',
        'when the deadline passed',
    ):
        assert words in shown


@pytest.mark.parametrize('clock_s', [0.0, 0.3, -5000.0])
def test_a_path_lies_on_the_true_one_however_its_sensor_is_mounted(clock_s: float) -> None:
    """The yaw of an odometry is that of its sensor, which may look to the side."""
    times = [0.05 * k for k in range(80)]
    true = [(t, 3.0 + math.cos(t), math.sin(t), t + math.pi / 2) for t in times]
    turned = [(t + clock_s, -math.sin(t), math.cos(t), t + 2.0) for t in times]
    moved = laid(turned, true)
    if clock_s == 0.3:  # its times are late, so only the shape lies there
        assert max(abs(math.hypot(x - 3.0, y) - 1.0) for x, y in moved) < 0.2
    else:
        assert moved == [pytest.approx(row[1:3], abs=1e-9) for row in true]


def test_no_tile_and_no_excuse_is_made_up_where_nothing_is_paired(run) -> None:
    """A rig whose only partner is collected has bundles, and no pairing."""
    document = with_nan(json.loads((run / 'out' / 'report.json').read_text()))
    for sensor in document['sensors'].values():
        sensor['pairing'] = {**sensor['pairing'], 'count': 0}
        sensor['delta'], sensor['offset'] = [], []
        sensor['truth']['pairing']['count'] = 0
    page = sync_page(document)
    assert 'nan' not in page.lower().replace('nanosec', '')
    assert 'too few bundles' not in page
    assert f'None of the {document["bundles"]} bundles' in page


def test_a_report_shows_paths_and_pictures() -> None:
    circle = [(0.1 * k, math.cos(0.1 * k), math.sin(0.1 * k), 0.1 * k) for k in range(60)]
    made = ''.join(
        scenery_sections(
            {
                'scenery': {
                    'paths': {'/truth/odom': circle, '/wheels/odom': circle},
                    'camera': '/camera/image_raw',
                    'pictures': ['AAAA'],
                }
            }
        )
    )
    assert 'Trajectory' in made and 'class="truth"' in made and '/wheels/odom' in made
    assert 'data:image/jpeg;base64,AAAA' in made
    assert scenery_sections({}) == [], 'data of an older report'


def test_a_few_messages_stand_for_many() -> None:
    few: Decimated[bytes] = Decimated(2 * MOST_PICTURES)
    for index in range(1000):
        few.add(bytes([index // 4]))
    kept = [raw[0] for (raw,) in few.rows]
    assert MOST_PICTURES <= len(kept) <= 2 * MOST_PICTURES
    assert len({b - a for a, b in pairwise(kept)}) == 1, 'evenly spread'
