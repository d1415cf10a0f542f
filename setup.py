"""Metadata lives in setup.cfg; here is what it cannot hold."""

from pathlib import Path

from setuptools import setup

SHARED = ('launch', 'config', 'worlds', 'datasheets', 'examples')
"""Folders that are installed as they are under share/sensor_rig."""
EXECUTABLES = ('world', 'emulator', 'sync', 'degrade')
"""What `ros2 run` finds; not console scripts, because `sync` would hide the one of coreutils."""


def shared_files() -> list[tuple[str, list[str]]]:
    """Return (target folder, files) for the ament marker, package.xml and every shared folder."""
    entries = [
        ('share/ament_index/resource_index/packages', ['resource/sensor_rig']),
        ('share/sensor_rig', ['package.xml']),
        ('lib/sensor_rig', [f'resource/executables/{name}' for name in EXECUTABLES]),
    ]
    for folder in SHARED:
        by_parent: dict[str, list[str]] = {}
        for path in sorted(Path(folder).rglob('*')):
            if path.is_file() and '__pycache__' not in path.parts:
                by_parent.setdefault(path.parent.as_posix(), []).append(path.as_posix())
        entries += [(f'share/sensor_rig/{parent}', files) for parent, files in by_parent.items()]
    return entries


# `colcon build --symlink-install` builds in a folder that links to this file and the packages.
SOURCE = Path(__file__).resolve().parent

# From setup.cfg python_requires would become an object whose text colcon cannot read back.
setup(
    data_files=shared_files(),
    python_requires='>=3.10',
    long_description=(SOURCE / 'README.md').read_text(encoding='utf-8'),
)
