"""docs/findings.md, made from what each kind of finding declares.

`PYTHONPATH=test ./rig python test/support/findings_page.py` writes the page again.
"""

from __future__ import annotations

from pathlib import Path

from sensor_rig.findings.declared import GROUPS
from sensor_rig.findings.kinds import KINDS, FindingKind

PAGE = Path(__file__).resolve().parents[2] / 'docs' / 'findings.md'
HEAD = """# My recording says X: do Y

One part for each finding of [`rig inspect`](inspect.md): what it means for fusion, what to do, and
how to see it without this tool. The page is made from what the searches declare; `not_checked` in
the output comes from the same lines ("needs").

"""


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
    needs += [need.value for need in kind.needs]
    looked_for = f'Looked for on {kind.of.value}'
    looked_for += f'; needs {", ".join(needs)}.' if needs else '.'
    return (
        f'### `{kind.code}`\n\n{kind.says}.\n\n'
        f'- What it does: {kind.effect}.\n'
        f'- Do: {kind.change}.\n'
        f'- See for yourself: {kind.confirm}\n'
        f'- {looked_for}\n\n'
    )


if __name__ == '__main__':
    PAGE.write_text(page(), encoding='utf-8')
