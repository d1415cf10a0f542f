"""How long a rig takes to be well again after a fault: printed, and kept where that is asked for.

`tools/recoveries` asks for it and makes the table of docs/reliability.md from what is kept.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

FILE_VARIABLE = 'RIG_RECOVERIES'
"""Names the file that gets a line of JSON for every recovery."""


def note_recovery(fault: str, bundles: int, seconds: float) -> None:
    """Say that `bundles` came within `seconds` (wall time) of a fault or its end."""
    print(f'{fault}: {bundles} bundles within {seconds:.2f} s')
    file = os.environ.get(FILE_VARIABLE)
    if file:
        with Path(file).open('a', encoding='utf-8') as lines:
            lines.write(
                json.dumps({'fault': fault, 'bundles': bundles, 'seconds': seconds}) + '\n'
            )
