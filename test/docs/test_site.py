"""The documentation site: complete, without dead links, and it fetches nothing."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from support.markdown import ROOT

pytest.importorskip('mkdocs', reason='needs mkdocs-material (the extra "docs")')

from sensor_rig.cli.support.site import build_site

LINK = re.compile(r'<(?:a|link|script|img|source|iframe)\b[^>]*?\b(href|src)="([^"]*)"')
FETCHED = re.compile(r'<(?:link|script|img|source|iframe)\b[^>]*?\b(?:href|src)="(?:https?:)?//')
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope='module')
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp('site') / 'out'
    assert build_site(ROOT, output) == []
    return output


def test_every_page_is_there(site: Path) -> None:
    for page in (ROOT / 'docs').rglob('*.md'):
        name = page.relative_to(ROOT).as_posix().removesuffix('.md')
        target = (
            f'{name.removesuffix("README")}index.html'
            if page.name == 'README.md'
            else (f'{name}.html')
        )
        assert (site / target).is_file(), target


def test_no_link_is_dead(site: Path) -> None:
    dead = []
    for page in site.rglob('*.html'):
        text = page.read_text(encoding='utf-8')
        for _, link in LINK.findall(text):
            link = unquote(unescape(link))
            if re.match(r'[a-z]+:', link) or page.name == '404.html':
                continue
            file, _, anchor = link.partition('#')
            target = page.parent / file if file else page
            if target.is_dir():
                target /= 'index.html'
            inside = target.suffix != '.html' or anchor in ('', '__skip')
            if not target.is_file() or not (
                inside or f'id="{anchor}"' in target.read_text('utf-8')
            ):
                dead.append(f'{page.relative_to(site)}: {link}')
    assert dead == []


def test_it_fetches_nothing_and_can_be_searched(site: Path) -> None:
    for page in site.rglob('*.html'):
        assert not FETCHED.search(page.read_text(encoding='utf-8')), page
    for style in site.rglob('*.css'):
        assert not re.search(r'@import\s|url\(\s*["\']?https?:', style.read_text('utf-8')), style
    index = (site / 'index.html').read_text(encoding='utf-8')
    assert 'slate' in index and 'data-md-component="search"' in index
    assert list((site / 'search').glob('search_index.*'))
