"""`python -m sensor_rig.nodes.emulator` is `emulator` without an installed package."""

import sys

from sensor_rig.nodes import start

if __name__ == '__main__':
    sys.exit(start('emulator'))
