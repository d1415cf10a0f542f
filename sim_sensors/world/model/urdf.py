"""URDF models: `package://` and `file://` of their meshes turned into files.

MuJoCo's own reader drops the path of every mesh and looks beside the model. Here the addresses are
resolved first: packages by the search paths of the rig file, by a package folder that holds the
URDF itself, and by the ament index and ROS_PACKAGE_PATH of the environment.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

from rig_common.errors import RigError
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.model.model_folder import require_inside, well_formed

KNOWN = ('.stl', '.obj', '.msh')
"""Mesh formats that MuJoCo reads."""


def resolved_urdf(file: Path, config: WorldConfig, base_dir: Path | None) -> str:
    """Return the XML of a URDF file whose meshes are absolute paths."""
    root = _robot(file)
    for mesh in root.iter('mesh'):
        name = mesh.get('filename', '')
        if name:
            mesh.set('filename', str(_mesh_file(name, file, config, base_dir)))
    settings = root.find('mujoco')
    if settings is None:
        settings = ElementTree.SubElement(root, 'mujoco')
    compiler = settings.find('compiler')
    if compiler is None:
        compiler = ElementTree.SubElement(settings, 'compiler')
    # Fixed links stay bodies, so that sensors can be mounted on them.
    for key, value in {'fusestatic': 'false', 'discardvisual': 'false'}.items():
        compiler.attrib.setdefault(key, value)
    compiler.attrib.update(strippath='false', meshdir='')
    return ElementTree.tostring(root, encoding='unicode')


def files_of_urdf(file: Path, config: WorldConfig, base_dir: Path | None) -> set[Path]:
    """Return the files that MuJoCo reads for a URDF model, itself included."""
    names = [mesh.get('filename', '') for mesh in _robot(file).iter('mesh')]
    return {file, *(_mesh_file(name, file, config, base_dir) for name in names if name)}


def _robot(file: Path) -> ElementTree.Element:
    root = well_formed(file)
    if root.tag != 'robot':
        raise RigError(
            f'world.model {file.name} is not a URDF: its root is <{root.tag}>, not <robot>'
        )
    return root


def _mesh_file(name: str, file: Path, config: WorldConfig, base_dir: Path | None) -> Path:
    address = urlparse(name)
    if address.scheme == 'package':
        found = _in_package(
            address.netloc, unquote(address.path).lstrip('/'), file, config, base_dir
        )
    elif address.scheme in ('', 'file'):
        path = Path(unquote(address.path) if address.scheme else name)
        found = (file.parent / path).resolve()
        if not config.allow_outside_files:
            require_inside(found, file.parent, 'mesh')
    else:
        raise RigError(
            f'world.model {file.name}: the mesh {name!r} has an address that is '
            f'neither package:// nor file://'
        )
    if not found.is_file():
        raise RigError(f'world.model {file.name}: there is no mesh file {found}')
    if found.suffix.lower() not in KNOWN:
        raise RigError(
            f'world.model {file.name}: the mesh {found} is a {found.suffix} file; '
            f'MuJoCo reads {", ".join(KNOWN)}, so convert it'
        )
    return found


def _in_package(
    package: str, inside: str, file: Path, config: WorldConfig, base_dir: Path | None
) -> Path:
    """Return a file of `package` in the first place that has it, or else where it should be."""
    places = [folder for folder in _places(package, file, config, base_dir) if folder.is_dir()]
    for folder in places:
        found = (folder / inside).resolve()
        require_inside(found, folder.resolve(), 'mesh')
        if found.is_file() or folder == places[-1]:
            return found
    raise RigError(
        f'world.model {file.name}: the package {package!r} is in none of '
        f'world.package_paths, the folders above the model and the ament index '
        f'(AMENT_PREFIX_PATH, ROS_PACKAGE_PATH)'
    )


def _places(
    package: str, file: Path, config: WorldConfig, base_dir: Path | None
) -> Iterator[Path]:
    """Yield the folders that `package` may be."""
    for given in config.package_paths:
        folder = (base_dir or Path.cwd()) / Path(given).expanduser()
        yield folder / package
        if folder.name == package:
            yield folder
    for above in file.parents:
        if above.name == package:
            yield above
    for prefix in filter(None, os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)):
        yield Path(prefix) / 'share' / package
    for place in filter(None, os.environ.get('ROS_PACKAGE_PATH', '').split(os.pathsep)):
        yield Path(place) / package
