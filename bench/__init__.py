"""Benchmarks that print ratios; each has run(quick) -> dict.

What they share with the tests (synthetic streams, runs of the engine) is in test/support.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / 'test'))
