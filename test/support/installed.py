"""Packages that come with a ROS installation: absent is a reason to skip, broken is not."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest


def ros_package(name: str) -> ModuleType:
    """Return the module `name`; skip the test, or the module that loads, where it is absent."""
    if find_spec(name.partition('.')[0]) is None:
        pytest.skip(
            f'{name} is not installed (it comes with a ROS installation)', allow_module_level=True
        )
    return import_module(name)


def with_packages(folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Have the ament index of `folder`, with packages of these names, be the only one."""
    for name in ('', *names):
        file = folder / 'share' / 'ament_index' / 'resource_index' / 'packages' / name
        file.touch() if name else file.mkdir(parents=True)
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(folder))
