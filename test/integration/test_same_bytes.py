"""Same seed, same bytes: a fingerprint of every stream of four shipped rigs.

A change that alters a stream on purpose renews the file beside this one and says why:

    PYTHONPATH=.:test ./rig python test/integration/test_same_bytes.py

Pictures are left out: their bytes depend on the machine's renderer. Floats depend on the versions
of MuJoCo and NumPy and on the processor's vector units, so the test skips elsewhere. OpenBLAS
chooses its kernels by the model of the processor; a process of its own fixes that choice.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_features__

from rig_common.digest import StreamDigests
from sensor_rig.inprocess import InProcessRig
from sensor_rig.rigfile import load_rig

FILE = Path(__file__).with_name('same_bytes.json')
RIGS = ('demo', 'everything', 'arm', 'quadruped')
RENDERED = ('camera', 'depth_camera', 'segmentation')
DURATION_S = 1.0


def machine() -> dict[str, str]:
    return {
        'mujoco': mujoco.__version__,
        'numpy': np.__version__,
        'machine': platform.machine(),
        'avx512': str(bool(__cpu_features__.get('AVX512_SKX'))),
    }


def digests(name: str) -> dict[str, str]:
    config = load_rig(name)
    sensors = {key: each for key, each in config.sensors.items() if each.type not in RENDERED}
    found = StreamDigests()
    for message in InProcessRig(replace(config, sensors=sensors), sync=False).run(DURATION_S):
        found.add(message.topic, message.data)
    return found.hex()


def made_now() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, 'show'],
        env={
            **os.environ,
            'OPENBLAS_CORETYPE': 'Haswell',
            'PYTHONPATH': os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def test_streams_are_those_of_the_file() -> None:
    kept: dict[str, Any] = json.loads(FILE.read_text())
    if kept['made_with'] != machine():
        pytest.skip(f'the fingerprints are of {kept["made_with"]}, this is {machine()}')
    assert made_now()['rigs'] == kept['rigs']


if __name__ == '__main__':
    if sys.argv[1:] == ['show']:
        rigs = {name: digests(name) for name in RIGS}
        print(json.dumps({'made_with': machine(), 'rigs': rigs}))
    else:
        FILE.write_text(json.dumps(made_now(), indent=2) + '\n')
