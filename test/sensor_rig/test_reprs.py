"""What people print is one short line."""

from __future__ import annotations

from sensor_rig.inprocess import open_rig

LONGEST = 400


def test_what_comes_out_of_a_rig_prints_shortly() -> None:
    rig = open_rig('demo', skip_unavailable=True)
    shown: dict[str, str] = {'rig': repr(rig), 'config': repr(rig.config)}
    while not rig.bundles or len(shown) < 5:
        for message in rig.step():
            shown[message.topic] = repr(message)
            shown['sample'] = repr(message.sample)
    shown['bundle'] = repr(rig.bundles[0])
    shown['member'] = repr(next(iter(rig.bundles[0].members.values())))
    shown['reading'] = repr(rig.read('imu'))
    assert max(map(len, shown.values())) < LONGEST
    assert not [text for text in shown.values() if '\n' in text or "b'" in text]
    assert shown['imu/data_raw'].startswith('Message(imu/data_raw, sensor_msgs/msg/Imu, ')
    assert shown['bundle'].startswith('Bundle(')
    assert shown['reading'].startswith('Reading([1, ')
    assert shown['config'].startswith('RigConfig(demo.yaml; world: rover_yard.xml; sensors: ')
