"""results.parquet: written so that equal results are equal bytes, and read back."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rig_common.errors import RigError, why
from rig_common.installing import pip_install
from sensor_rig.sweep.plan.sampling import numeric
from sensor_rig.sweep.plan.sweep_plan import Plan
from sensor_rig.sweep.running.experiment import Task

if TYPE_CHECKING:
    from sensor_rig.sweep.running.outcome import RunResult

FIXED = ('run_id', 'status', 'exit_code', 'seed', 'recording', 'point')
"""Columns in front of the factors and the measures."""
MISSING = f'a sweep needs pyarrow for its table: {pip_install("pyarrow", "psutil", "SALib")}'


def table_bytes(
    plan: Plan, rows: Sequence[Task], results: Mapping[str, RunResult], recordings: Sequence[str]
) -> bytes:
    """Return the Parquet file of runs in the order of `rows`."""
    pa, parquet = _pyarrow()
    found = [results[task.id] for task in rows]
    columns: dict[str, Any] = {
        'run_id': pa.array([task.id for task in rows], pa.string()),
        'status': pa.array([each.status.value for each in found], pa.string()),
        'exit_code': pa.array([each.exit_code for each in found], pa.int32()),
        'seed': pa.array([task.seed for task in rows], pa.int64()),
        'recording': pa.array(
            [recordings[task.recording] if task.recording >= 0 else None for task in rows],
            pa.string(),
        ),
        'point': pa.array([task.point for task in rows], pa.int32()),
    }
    for index, name in enumerate(plan.vary):
        columns[name] = _factor(pa, [task.values[index] for task in rows])
    for key in sorted({key for each in found for key in each.measures}):
        name = key if key not in columns else f'{key} (measure)'
        columns[name] = pa.array([each.measures.get(key) for each in found], pa.float64())
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink, compression='zstd')
    return sink.getvalue()


def _factor(pa: Any, values: list[Any]) -> Any:
    if numeric(values):
        return pa.array([float(value) for value in values], pa.float64())
    return pa.array(
        [value if isinstance(value, str) else json.dumps(value) for value in values], pa.string()
    )


def read_table(file: Path) -> dict[str, list[Any]]:
    """Return the columns of a table."""
    _, parquet = _pyarrow()
    try:
        columns: dict[str, list[Any]] = parquet.read_table(file).to_pydict()
    except OSError as error:
        raise RigError(f'cannot read {file}: {why(error)}') from None
    except Exception as error:
        raise RigError(f'{file} is not the table of a sweep: {error}') from None
    return columns


def require_pyarrow() -> None:
    """Say so where pyarrow is missing."""
    from importlib.util import find_spec

    if find_spec('pyarrow') is None:
        raise RigError(MISSING)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise RigError(MISSING) from None
    return pyarrow, pyarrow.parquet
