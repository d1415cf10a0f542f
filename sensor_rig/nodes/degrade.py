"""`python -m sensor_rig.nodes.degrade` is `degrade` without an installed package."""

import sys

from sensor_rig.nodes import start

if __name__ == '__main__':
    sys.exit(start('degrade'))
