"""Where things are in the source tree."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SMALL_RIG = ROOT / 'test' / 'launch' / 'rig.yaml'
"""A small rig that starts quickly; the launch tests and many others run it."""
ROVER_YARD = ROOT / 'worlds' / 'rover_yard.xml'
