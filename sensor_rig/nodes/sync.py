"""`python -m sensor_rig.nodes.sync` is `sync` without an installed package."""

import sys

from sensor_rig.nodes import start

if __name__ == '__main__':
    sys.exit(start('sync'))
