"""`python -m sensor_rig` is the command line."""

import sys

from sensor_rig.cli.main import main

if __name__ == '__main__':
    sys.exit(main())
