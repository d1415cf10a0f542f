"""Arrays of the pipeline: NumPy or torch, packed rows, columns."""

from sim_sensors.timing.arrays.devices import arrays_holding, arrays_of
from sim_sensors.timing.arrays.layout import Array, Layout
from sim_sensors.timing.arrays.namespace import NUMPY, Arrays, Movable
from sim_sensors.timing.arrays.rows import ALL, EnvIndex, Envs, RowChoice, Rows

__all__ = [
    'ALL',
    'NUMPY',
    'Array',
    'Arrays',
    'EnvIndex',
    'Envs',
    'Layout',
    'Movable',
    'RowChoice',
    'Rows',
    'arrays_holding',
    'arrays_of',
]
