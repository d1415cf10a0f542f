"""Runs the tutorials as written; their figures come from these runs.

A block fenced as `text` shows lines that the commands above it print, cut at `...`. The test
compares them, and `PYTHONPATH=test ./rig python test/support/tutorials.py` writes them, and the
pictures, again. A line whose words have changed is edited by hand.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent

from support.markdown import ROOT

TUTORIALS = tuple(ROOT / 'docs' / f'tutorial_{name}.md' for name in ('bag', 'robot'))
PICTURES = {
    'findings.html': 'tutorial_findings.png',
    'repaired/report.html': 'tutorial_report.png',
    'results/tolerance.html': 'tutorial_tolerance.png',
    'my_rig.png': 'tutorial_mount.jpg',
    'sensors.png': 'tutorial_gallery.jpg',
}
"""What the commands make, and its picture in docs/images."""
SAVED = re.compile(r'Save this as `([\w.]+)`:\n\n')
COMMAND = re.compile(r'    \./rig (.+?)(?: +# exit code (\d))?$')
NUMBER = re.compile(r'[+-]?\d+(?:\.\d+)?')


def saved_files(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each file that the page asks to save."""
    for match in SAVED.finditer(text):
        rest = text[match.end() :]
        fenced = re.match(r'```\w*\n(.*?)^```$', rest, re.S | re.M)
        indented = takewhile(lambda line: line[:4] in ('    ', '\n'), rest.splitlines(True))
        yield match[1], fenced[1] if fenced else dedent(''.join(indented))


def run_page(page: Path, folder: Path, leave_out: tuple[str, ...] = ()) -> str:
    """Run the commands of a page in `folder`, beside the shipped worlds; return the page with the
    figures of this run. Lines with a word of `leave_out` are about files of the reader's.
    """
    (folder / 'worlds').symlink_to(ROOT / 'worlds')
    text = page.read_text(encoding='utf-8')
    for name, content in saved_files(text):
        (folder / name).write_text(content)
    lines, printed, fence, count = [], '', '', 0
    for line in text.splitlines():
        if line.startswith('```'):
            fence, printed = ('', '') if fence == 'text' else (line[3:], printed)
        elif fence == 'text':
            line = renewed(line, printed)
        elif not fence and (command := COMMAND.match(line)):
            if not any(word in line for word in leave_out):
                printed += output(command[1], int(command[2] or 0), folder)
                count += 1
        lines.append(line)
    assert count >= 4
    return '\n'.join(lines) + '\n'


def output(line: str, code: int, folder: Path) -> str:
    """Return what a command line prints, which has to end with exit code `code`."""
    done = subprocess.run(
        ['/bin/sh', '-c', f'{shlex.quote(sys.executable)} -m sensor_rig {line}'],
        cwd=folder,
        # A wide terminal breaks no line, and fixed kernels give the same digits everywhere.
        env={'MUJOCO_GL': '', **os.environ, 'COLUMNS': '500', 'OPENBLAS_CORETYPE': 'Haswell'},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == code, f'{line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}'
    return done.stdout


def renewed(line: str, printed: str) -> str:
    """Return a line of the page with the numbers that it has in `printed`."""
    words, dots, _ = line.partition(' ...')
    parts = (re.escape(part) for part in NUMBER.split(' '.join(words.split())))
    shape = re.compile(r' *' + NUMBER.pattern.join(parts).replace(r'\ ', ' +'))
    rows = (each.removeprefix(' ') for each in printed.splitlines())  # of a table, or plain lines
    found = next(filter(None, map(shape.match, rows)), None)
    assert found, f'no line like this is printed any more: {line}\n{printed}'
    return found[0] + dots


def main() -> None:
    """Run both tutorials; write their figures and their pictures."""
    from PIL import Image

    from support.browser import browser_page

    for page in TUTORIALS:
        with TemporaryDirectory() as name:
            folder = Path(name)
            page.write_text(run_page(page, folder), encoding='utf-8')
            for source, picture in PICTURES.items():
                target = ROOT / 'docs' / 'images' / picture
                if not (folder / source).exists():
                    continue
                if source.endswith('.html'):
                    with browser_page(1100, 690) as window:
                        window.goto((folder / source).as_uri())
                        window.screenshot(path=str(target))
                    Image.open(target).quantize(128).save(target, optimize=True)
                else:
                    drawn = Image.open(folder / source).convert('RGB')
                    drawn.thumbnail((1400, 1400))
                    drawn.save(target, quality=85)


if __name__ == '__main__':
    main()
