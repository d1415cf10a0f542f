"""Markdown pages as tests look at them: blocks of code, words in backticks, links, headings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob('*.md'), *(ROOT / 'docs').rglob('*.md'), *(ROOT / 'datasheets').glob('*.md')]
)


@dataclass(frozen=True)
class Block:
    """A block of code."""

    language: str
    """What stands behind the fence; empty for an indented block."""
    text: str


def blocks(page: Path) -> list[Block]:
    """Return the fenced and indented blocks of a page, in order."""
    found: list[Block] = []
    lines = page.read_text(encoding='utf-8').splitlines()
    at = 0
    while at < len(lines):
        fence = re.match(r'```(\w*)$', lines[at])
        start = at + 1 if fence else at
        if fence:
            at = lines.index('```', start)
            found.append(Block(fence[1], '\n'.join(lines[start:at])))
        elif lines[at].startswith('    ') and (at == 0 or not lines[at - 1].strip()):
            while at < len(lines) and (lines[at].startswith('    ') or not lines[at].strip()):
                at += 1
            found.append(Block('', '\n'.join(line[4:] for line in lines[start:at]).rstrip()))
            continue
        at += 1
    return found


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return re.sub(r'^```.*?^```$', '', page.read_text(encoding='utf-8'), flags=re.M | re.S)


def words(page: Path) -> list[str]:
    """Return what stands in backticks."""
    return re.findall(r'`([^`\n]+)`', prose(page))


def links(page: Path) -> list[str]:
    """Return where the page links to and which pictures it shows."""
    return re.findall(r'\]\(([^)\s]+)\)', prose(page))


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of the page's headings."""
    titles = re.findall(r'^#+ (.+)$', prose(page), flags=re.M)
    return {re.sub(r'[^\w\- ]', '', title.lower()).replace(' ', '-') for title in titles}


def named(page: Path) -> str:
    """Return a page's path for the name of a test."""
    return page.relative_to(ROOT).as_posix()
