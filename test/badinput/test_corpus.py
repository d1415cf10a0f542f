"""Every broken rig file of the corpus gets exactly the sentence its first line says.

To add a case, add a file to rigs/: `# says: <the sentence>`, then the mistake. `{folder}` stands
for rigs/, `{parent}` for the folder around it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.processes import Processes

from rig_common.errors import RigError
from sensor_rig.cli.check import check_against_model
from sensor_rig.rigfile import load_rig

RIGS = Path(__file__).with_name('rigs')
BROKEN = sorted(path for path in RIGS.glob('*.yaml') if path.stem != 'good')


def expected(file: Path) -> str:
    first = file.read_text(encoding='utf-8').partition('\n')[0]
    return (
        first.removeprefix('# says: ')
        .replace('{folder}', str(RIGS))
        .replace('{parent}', str(RIGS.parent))
    )


def sentence_about(file: Path) -> str:
    with pytest.raises(RigError) as caught:
        check_against_model(load_rig(file))
    return str(caught.value)


def test_what_the_broken_files_extend_is_valid() -> None:
    check_against_model(load_rig(RIGS / 'good.yaml'))


@pytest.mark.parametrize('file', BROKEN, ids=[path.stem for path in BROKEN])
def test_a_mistake_gets_its_sentence(file: Path) -> None:
    assert sentence_about(file) == expected(file)


@pytest.mark.parametrize(
    'name',
    [
        'wrong_body',
        'mesh_is_missing',
        'jitter_above_delay',
        'given_twice',
        'not_yaml',
        'rate_above_physics',
    ],
)
def test_check_prints_the_sentence_alone_and_exits_with_2(processes: Processes, name: str) -> None:
    file = RIGS / f'{name}.yaml'
    process = processes.rig('check', str(file))
    assert process.wait() == 2
    assert process.output == f'error: {expected(file)}\n'


@pytest.mark.skipif(os.geteuid() == 0, reason='root may read every file')
def test_a_file_one_may_not_read(tmp_path: Path) -> None:
    file = tmp_path / 'secret.yaml'
    file.write_bytes((RIGS / 'good.yaml').read_bytes())
    file.chmod(0)
    assert sentence_about(file) == f'cannot read {file}: permission denied'


def test_files_that_are_none(tmp_path: Path) -> None:
    assert sentence_about(tmp_path / 'gone.yaml') == (
        f'cannot read {tmp_path / "gone.yaml"}: no such file or directory'
    )
    assert sentence_about(tmp_path) == f'cannot read {tmp_path}: is a directory'
    binary = tmp_path / 'binary.yaml'
    binary.write_bytes(bytes(range(256)))
    assert sentence_about(binary) == f'{binary}:2: not a text file in UTF-8'
    assert sentence_about(Path('/dev/zero')) == (
        'cannot read /dev/zero: it is a pipe or a device, not a file'
    )


def test_a_deep_file_and_a_long_one_end_quickly(tmp_path: Path) -> None:
    head = '/**:\n  ros__parameters:\n'
    deep = tmp_path / 'deep.yaml'
    deep.write_text(f'{head}    a: {"{a: " * 200}1{"}" * 200}\n')
    assert sentence_about(deep) == f'{deep}:3: maps are nested more than 32 deep'
    wide = tmp_path / 'wide.yaml'
    wide.write_text(head + ''.join(f'    key_{n}: 1\n' for n in range(40_000)))
    assert sentence_about(wide) == (
        "wide.yaml:3: unknown key 'key_0'; allowed are extends, links, seed, sensors, streams, "
        'sync, world (and 99 more problems)'
    )


def all_about(file: Path) -> list[str]:
    """Return every sentence about a file, from its line number on."""
    with pytest.raises(RigError) as caught:
        check_against_model(load_rig(file))
    return [each.sentence.partition('.yaml:')[2] for each in caught.value.mistakes]


SEVERAL = """/**:
  ros__parameters:
    extends: good.yaml
    sensors:
      imu: {rate_hz: -5.0, clock: {offset_ms: 3.0}}
      mag: {typ: magnetometer}
      cam: {type: camra}
      lidar: {extends: base.yaml, num_rays: 0}
    world: {timestep_s: 0.0}
    sync: {window: {min_ms: fast}}
    senors: {x: 1}
"""


def test_all_mistakes_of_a_file_are_said_with_their_lines(tmp_path: Path) -> None:
    for name in ('good.yaml', 'cart.xml'):
        (tmp_path / name).write_bytes((RIGS / name).read_bytes())
    (tmp_path / 'base.yaml').write_text(
        '/**:\n  ros__parameters:\n    type: lidar2d\n    max_range_m: -1.0\n'
    )
    several = tmp_path / 'several.yaml'
    several.write_text(SEVERAL)
    assert [each[:40] for each in all_about(several)] == [
        '5: sensors.imu.rate_hz is -5.0; it shoul',
        "5: sensors.imu.clock: unknown key 'offse",
        "6: sensors.mag: unknown key 'typ'; did y",
        "7: sensors.cam.type: sensor type 'camra'",
        '8: sensors.lidar.num_rays is 0; it shoul',
        '9: world.timestep_s is 0.0; it should be',
        "10: sync.window.min_ms is 'fast'; it sho",
        "11: unknown key 'senors'; did you mean '",
        '4: sensors.lidar.max_range_m is -1.0; it',  # in base.yaml
    ]


def test_all_that_does_not_fit_the_model_is_said(tmp_path: Path) -> None:
    several = RIGS / 'good.yaml'
    text = several.read_text().replace('imu_mount', 'imu_mont').replace('body: cart', 'body: kart')
    (tmp_path / 'cart.xml').write_bytes((RIGS / 'cart.xml').read_bytes())
    (tmp_path / 'rig.yaml').write_text(text)
    assert [each[:44] for each in all_about(tmp_path / 'rig.yaml')] == [
        "9: sensor 'imu': mount.site is 'imu_mont', w",
        "14: sensor 'mag': mount.body is 'kart', whic",
    ]


def test_all_values_that_ros_would_not_take_are_said(tmp_path: Path) -> None:
    file = tmp_path / 'rig.yaml'
    file.write_text(
        '/**:\n  ros__parameters:\n    a: null\n    b: [0.3, 0, [1], {x: 2}]\n'
        '    c: []\n    d: {e: , f: [[1]]}\n    g: 1\n'
    )
    assert [each[:14] for each in all_about(file)] == [
        '3: a is null, ',
        '4: b mixes dec',
        '5: c is an emp',
        '6: d.e has no ',
        '6: d.f is a li',
    ]


@pytest.mark.parametrize(
    ('text', 'meant'),
    [
        (
            'sensors: {imu: {extends: datasheets/imu_bosch_bmi08.yaml}}',
            "did you mean 'datasheets/imu_bosch_bmi088.yaml'?",
        ),
        ('sensors: {imu: {extends: imu_bosch_bmi088.yml}}', 'there is no such file'),
        ('extends: goood.yaml', "did you mean 'good.yaml'?"),
        ('sensors: {imu: {faults: {a: {kind: stuk}}}}', "did you mean 'stuck'?"),
        ('sensors: {imu: {trigger: magg}}', "did you mean 'mag'?"),
        ('world: {driver: figure_ate}', "did you mean 'figure_eight'?"),
        ('streams: {a: {topics: [/a], type: lidar}}', "did you mean 'lidar"),
    ],
)
def test_what_was_meant(tmp_path: Path, text: str, meant: str) -> None:
    for name in ('good.yaml', 'cart.xml'):
        (tmp_path / name).write_bytes((RIGS / name).read_bytes())
    base = '' if text.startswith('extends') else 'extends: good.yaml\n    '
    (tmp_path / 'rig.yaml').write_text(f'/**:\n  ros__parameters:\n    {base}{text}\n')
    assert meant in sentence_about(tmp_path / 'rig.yaml')
