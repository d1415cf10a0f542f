"""Which GL library can render here."""

from __future__ import annotations

import os

from rig_common.probing import run_python

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


def try_renderer(name: str) -> tuple[bool, str]:
    """Render one image through the GL library `name`; return whether it works and on what device.

    Where it does not work, the text says why.
    """
    if name == 'glfw' and not {'DISPLAY', 'WAYLAND_DISPLAY'} & set(os.environ):
        return False, NEEDS_DISPLAY
    code, output = run_python(_PROBE, MUJOCO_GL=name)
    if code != 0:
        return False, output
    return True, output + (' (software)' if 'llvmpipe' in output or 'softpipe' in output else '')
