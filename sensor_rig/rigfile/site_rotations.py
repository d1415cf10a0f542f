"""The rotations of the sites of a model, where its XML gives them as quaternions.

The model is not compiled for this: the sync node must start without a simulator. What only the
compiler knows (a site of an included file, of a class, one given by other angles) stays unknown,
and the sync engine estimates the rotation from motion.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from rig_common.paths import find_shared
from rig_common.quaternions import Quaternion

_OTHER_WAYS = {'axisangle', 'xyaxes', 'zaxis', 'euler', 'fromto', 'class'}


def site_rotations(model: str, base_dir: Path) -> dict[str, Quaternion]:
    """Return the rotation (w, x, y, z) against its body of every site that says so."""
    given = Path(model).expanduser()
    beside = given if given.is_absolute() else base_dir / given
    file = beside if beside.is_file() else find_shared('worlds', *given.parts)
    if file is None or file.suffix.lower() == '.urdf':
        return {}
    try:
        root = ElementTree.parse(file).getroot()
    except (OSError, ElementTree.ParseError):
        return {}  # reported when the model is loaded
    if root.find('.//default//site') is not None or root.find('.//include') is not None:
        return {}
    found = {}
    for site in root.iterfind('.//worldbody//site'):
        quat = site.get('quat', '1 0 0 0').split()
        if site.get('name') and not _OTHER_WAYS & set(site.attrib) and len(quat) == 4:
            w, x, y, z = (float(value) for value in quat)
            norm = (w * w + x * x + y * y + z * z) ** 0.5
            if norm > 0.0:
                found[site.get('name', '')] = (w / norm, x / norm, y / norm, z / norm)
    return found
