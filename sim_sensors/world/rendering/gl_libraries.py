"""Which GL library can render here."""

from __future__ import annotations

import os

from rig_common.probing import Trial

RENDERERS = ('egl', 'osmesa', 'glfw')
"""In the order in which they are tried."""
NEEDS_DISPLAY = 'needs a display'
_PROBE = """
import mujoco
model = mujoco.MjModel.from_xml_string(
    '<mujoco><worldbody><light pos="0 0 3"/><geom size="1" rgba="1 0 0 1"/>'
    '<camera name="c" pos="0 -4 0" xyaxes="1 0 0 0 0 1"/></worldbody></mujoco>')
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
with mujoco.Renderer(model, 32, 32) as renderer:
    renderer.update_scene(data, 'c')
    image = renderer.render()
    assert image[16, 16, 0] > image[0, 0, 0], 'the image is empty'
    from OpenGL import GL
    print(GL.glGetString(GL.GL_RENDERER).decode())
"""
_begun: dict[str, Trial] = {}


def candidates() -> tuple[str, ...]:
    """Return the GL libraries to try: the one that MUJOCO_GL names, or all."""
    wanted = os.environ.get('MUJOCO_GL', '').strip().lower()
    return (wanted,) if wanted in RENDERERS else RENDERERS


def begin_trial() -> None:
    """Begin to try the likely GL library, beside what this process does before it renders."""
    name = candidates()[0]
    if name not in _begun and _has_display(name):
        _begun[name] = Trial(_PROBE, MUJOCO_GL=name)


def try_renderer(name: str) -> tuple[bool, str]:
    """Render one image through the GL library `name`; return whether it works and on what device.

    Where it does not work, the text says why.
    """
    if not _has_display(name):
        return False, NEEDS_DISPLAY
    code, output = (_begun.pop(name, None) or Trial(_PROBE, MUJOCO_GL=name)).result()
    is_software = not code and ('llvmpipe' in output or 'softpipe' in output)
    return not code, output + ' (software)' * is_software


def _has_display(name: str) -> bool:
    return name != 'glfw' or bool({'DISPLAY', 'WAYLAND_DISPLAY'} & set(os.environ))
