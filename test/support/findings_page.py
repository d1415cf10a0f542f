"""docs/findings.md, made from what each kind of finding declares.

`PYTHONPATH=.:test ./rig python test/support/findings_page.py` writes the page again.
"""

from __future__ import annotations

from pathlib import Path

from sensor_rig.findings.declared import GROUPS
from sensor_rig.findings.kinds import KINDS, FindingKind, Need, Of

PAGE = Path(__file__).resolve().parents[2] / 'docs' / 'findings.md'
HEAD = """# My recording says X: do Y

One part for each finding of [`rig inspect`](inspect.md): what it means for fusion, what to do, and
how to see it without this tool. Each is looked for on stamped topics, unless it says otherwise;
"needs" is what a recording must have for it. Receive times count where they are no copies of the
stamps. What is missing is listed as `not_checked`.

"""
WORDS = {Need.ARRIVALS: 'receive times'}
"""What is said once in the head is short below."""


def page() -> str:
    """Return the whole page."""
    contents = ['| | |\n|---|---|\n']
    parts = []
    for title, codes in GROUPS.items():
        links = ', '.join(f'[`{code}`](#{code})' for code in codes)
        contents.append(f'| {title} | {links} |\n')
        parts.append(f'## {title}\n\n')
        parts += [part(KINDS[code]) for code in codes]
    return HEAD + ''.join(contents) + '\n' + ''.join(parts).rstrip() + '\n'


def part(kind: FindingKind) -> str:
    """Return the part of one kind."""
    needs = [f'{kind.messages} messages'] if kind.messages > 1 else []
    needs += [f'{kind.seconds:g} s'] if kind.seconds else []
    needs += [WORDS.get(need, need.value) for need in kind.needs]
    where = [] if kind.of is Of.STAMPED else [f'on {kind.of.value}']
    where += [f'needs {", ".join(needs)}'] if needs else []
    last = '; '.join(where)
    return (
        f'### `{kind.code}`\n\n{kind.says}.\n\n'
        f'- Effect: {kind.effect}.\n'
        f'- Do: {kind.change}.\n'
        f'- Check: {kind.confirm}\n' + (f'- {last[0].upper()}{last[1:]}.\n' if last else '') + '\n'
    )


if __name__ == '__main__':
    PAGE.write_text(page(), encoding='utf-8')
