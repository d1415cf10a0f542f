"""What three-axis sensors share: values per axis and the matrix between true and sensed axes."""

from __future__ import annotations

from typing import Annotated

import mujoco
import numpy as np
from pydantic import BeforeValidator, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from rig_common.arrays import AnyArray, Floats
from sim_sensors.timing.arrays import arrays_holding
from sim_sensors.timing.units import NonNegative


def _spread(value: object) -> object:
    """Let one number stand for all three axes."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (value, value, value)
    return value


class OrOne:
    """Says in a JSON Schema that one number may stand for the list."""

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        axes = handler(core)
        return {'anyOf': [axes['prefixItems'][0], axes]}


PerAxis = Annotated[tuple[float, float, float], BeforeValidator(_spread), OrOne()]
"""x, y, z; one number stands for all three."""

NonNegativePerAxis = Annotated[
    tuple[NonNegative, NonNegative, NonNegative], BeforeValidator(_spread), OrOne()
]
"""x, y, z, none below zero; one number stands for all three."""


def sensitivity(scale_error: PerAxis, cross_axis: float, misalignment_rad: PerAxis) -> Floats:
    """Return the [3, 3] matrix from true to sensed axes.

    The triad is turned by the rotation vector `misalignment_rad` against its housing, each axis
    picks up the fraction `cross_axis` of the other two, and each gain is off by `scale_error`.
    """
    quat, triad = np.array([1.0, 0.0, 0.0, 0.0]), np.empty(9)
    mujoco.mju_quatIntegrate(quat, np.asarray(misalignment_rad, float), 1.0)
    mujoco.mju_quat2Mat(triad, quat)
    mixed = np.eye(3) + cross_axis * (1.0 - np.eye(3))
    gain = np.diag(1.0 + np.asarray(scale_error, float))
    return np.asarray(gain @ mixed @ triad.reshape(3, 3).T)


def quantise(values: AnyArray, step: float | Floats) -> None:
    """Round `values` [n, width] to multiples of `step`, one for all or [width], in place.

    A single 0 leaves them.
    """
    if isinstance(step, float) and step <= 0.0:
        return
    values /= step
    arrays_holding(values).round_in_place(values)
    values *= step
