"""One self-contained HTML page: no script, no network, readable in light and dark and on paper."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from html import escape

STYLE = """
:root { color-scheme: light dark; --bg: #ffffff; --fg: #1d2733; --soft: #5f6b77; --line: #dfe4e8;
  --tile: #f4f6f8; --bad: #b3261e; --good: #1b7a3d; --c0: #0f6cbd; --c1: #d1495b; --c2: #1b7a3d;
  --c3: #8e3aa8; --c4: #a8710a; --c5: #007f8c; --c6: #c2570c; --c7: #66727f; }
@media (prefers-color-scheme: dark) { :root { --bg: #14171a; --fg: #e4e8ec; --soft: #9aa5b1;
  --line: #343b43; --tile: #1d2227; --bad: #ff8a80; --good: #6fd08c; --c0: #5eb1ff; --c1: #ff9d5c;
  --c2: #6fd08c; --c3: #d491ee; --c4: #e5b84b; --c5: #4fd0dd; --c6: #ff8a80; --c7: #9aa5b1; } }
body { background: var(--bg); color: var(--fg); font: 15px/1.5 system-ui, sans-serif;
  max-width: 1040px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
p { margin: .4rem 0; } p.soft, td.soft { color: var(--soft); }
.tiles { display: flex; flex-wrap: wrap; gap: .7rem; margin: 1rem 0; }
.tile { background: var(--tile); border-radius: 8px; padding: .5rem .9rem; min-width: 7.5rem; }
.tile b { display: block; font-size: 1.3rem; }
.tile span { color: var(--soft); font-size: .85rem; }
.bad { color: var(--bad); } .good { color: var(--good); }
.pictures { display: flex; flex-wrap: wrap; gap: .6rem; }
.pictures img { width: 15rem; max-width: 100%; border-radius: 6px; }
.wide { overflow-x: auto; } small { color: var(--soft); }
table { border-collapse: collapse; width: 100%; font-size: .84rem; }
th, td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid var(--line);
  white-space: nowrap; font-variant-numeric: tabular-nums; }
th { font-weight: 600; color: var(--soft); } th:first-child, td:first-child { text-align: left; }
svg { width: 100%; height: auto; display: block; } svg text { font: 11px system-ui, sans-serif; }
.text { fill: var(--soft); } .axis { stroke: var(--soft); fill: none; }
.grid { stroke: var(--line); stroke-width: .7; fill: none; }
.link { stroke: var(--soft); stroke-width: 1.2; fill: none; }
.filtered { stroke: var(--fg); stroke-width: 1; stroke-dasharray: 1 3; fill: none; }
.truth { stroke: var(--fg); stroke-width: 1.2; stroke-dasharray: 5 4; fill: none; }
.line { fill: none; stroke-width: 1.4; } .band { opacity: .18; stroke: none; }
.legend span { margin-right: 1rem; white-space: nowrap; font-size: .88rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; border-radius: 3px;
  margin-right: .35rem; vertical-align: -1px; }
figure { margin: .6rem 0 1.2rem; } figcaption { color: var(--soft); font-size: .88rem; }
th.words, td.words { text-align: left; }
td.words { white-space: normal; min-width: 11rem; color: var(--soft); }
@media (max-width: 640px) { body { margin: 1rem auto; padding: 0 .7rem; }
  .tile { flex: 1 1 40%; min-width: 0; } figure { overflow-x: auto; }
  figure svg { min-width: 640px; } svg text { font-size: 15px; } }
footer { color: var(--soft); margin-top: 3rem; font-size: .85rem; }
""" + '\n'.join(
    f'.line.c{i} {{ stroke: var(--c{i}); }} .fill.c{i}, .band.c{i} {{ fill: var(--c{i}); }} '
    f'i.c{i} {{ background: var(--c{i}); }}'
    for i in range(8)
)


def page(title: str, subtitle: str, sections: Iterable[str]) -> str:
    """Return the whole document."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><style>{STYLE}</style></head><body>'
        f'<header><h1>{escape(title)}</h1><p class="soft">{escape(subtitle)}</p></header>\n'
        + '\n'.join(sections)
        + '\n<footer>Made by sensor_rig. Times in ms unless said otherwise.</footer>'
        '</body></html>\n'
    )


def svg_file(drawing: str) -> str:
    """Return a drawing of a page as an SVG file of its own."""
    head, _, rest = drawing.partition('>')
    style = f'<style>{STYLE} svg {{ background: var(--bg); }}</style>'
    return f'{head} xmlns="http://www.w3.org/2000/svg">{style}{rest}'


def section(heading: str, *parts: str) -> str:
    """Return a section with its heading."""
    return f'<section><h2>{escape(heading)}</h2>{"".join(parts)}</section>'


def text(sentence: str) -> str:
    """Return a paragraph of explanation."""
    return f'<p class="soft">{escape(sentence)}</p>'


def warning(sentence: str) -> str:
    """Return a paragraph that must not be missed."""
    return f'<p class="bad">{escape(sentence)}</p>'


def figure(svg: str, caption: str = '') -> str:
    """Return a plot with its caption."""
    return f'<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>'


def tiles(entries: Sequence[tuple[str, str, str]]) -> str:
    """Return figures that matter most: (value, what it is, '' | 'good' | 'bad')."""
    return (
        '<div class="tiles">'
        + ''.join(
            f'<div class="tile"><b class="{mood}">{escape(value)}</b>'
            f'<span>{escape(name)}</span></div>'
            for value, name, mood in entries
        )
        + '</div>'
    )


class Words(str):
    """A cell of a table that is a sentence: it wraps."""


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; the first column names the row. A cell (text, more) has a second line."""

    def cell(value: object, tag: str = 'td') -> str:
        if isinstance(value, tuple):
            return f'<td>{escape(value[0])}<br><small>{escape(value[1])}</small></td>'
        kind = ' class="words"' if isinstance(value, Words) else ''
        return f'<{tag}{kind}>{escape(str(value))}</{tag}>'

    head = ''.join(cell(column, 'th') for column in columns)
    body = ''.join(f'<tr>{"".join(map(cell, row))}</tr>' for row in rows)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


LAST_DATE_NS = 250_000_000_000 * 10**9
"""Python's dates end with the year 9999."""


def date(time_ns: int) -> str:
    """Return a host time as a date in UTC, or as seconds where it counts from a start."""
    if time_ns < 10**17:  # before 1973: simulated time
        return f'{time_ns / 1e9:.3f} s'
    if time_ns > LAST_DATE_NS:
        return f'{time_ns / 1e9:.0f} s after 1970'
    moment = datetime.datetime.fromtimestamp(time_ns / 1e9, datetime.timezone.utc)
    return moment.strftime('%Y-%m-%d %H:%M:%S UTC')
