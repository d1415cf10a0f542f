"""Everything that the documentation names exists: links, files, commands, options, keys."""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from support.markdown import PAGES, ROOT, anchors, blocks, links, named, words
from support.rig_file_page import FOLDER, MODELS, with_fresh_tables

from sensor_rig.cli.support import registry

FOLDERS = (
    'bench',
    'config',
    'datasheets',
    'docs',
    'examples',
    'launch',
    'resource',
    'sensor_rig',
    'sim_sensors',
    'sync_engine',
    'test',
    'worlds',
)
COMMAND = re.compile(r'(?:^|[\s"(])(?:\./rig|rig|sensor-rig) +([a-z][a-z-]*)((?: [^#|>&"\n]*)?)')
FILES = ('.md', '.html', '.json', '.yaml', '.png', '.bag', '.csv')
FOREIGN = {'ros2', 'colcon', 'docker', 'pip', 'rosdep', 'git', 'pytest'}


def texts(page: Path) -> list[str]:
    """Return every line of code on a page, in blocks and in backticks."""
    lines = [
        re.sub(r'(^|\s)#.*', '', line)
        for block in blocks(page)
        for line in block.text.splitlines()
    ]
    return [*lines, *words(page)]


@pytest.mark.parametrize('page', PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if re.match(r'[a-z]+:', link):
            continue
        file, _, anchor = link.partition('#')
        target = page.parent / file if file else page
        assert target.exists(), f'{named(page)} links to {link}'
        if anchor:
            assert anchor in anchors(target), f'{named(page)}: {link} has no such heading'


def expanded(name: str) -> list[str]:
    """Return the names that `a/{b,c}.py` stands for."""
    parts = [part.split(',') for part in re.split(r'[{}]', name)]
    return [
        ''.join(choice)
        for choice in product(
            *([','.join(part)] if index % 2 == 0 else part for index, part in enumerate(parts))
        )
    ]


@pytest.mark.parametrize('page', PAGES, ids=named)
def test_files_are_there(page: Path) -> None:
    for word in words(page):
        if re.fullmatch(rf'({"|".join(FOLDERS)})/[\w./{{}},*-]*', word) and not re.search(
            r'\.\.\.|\bfoo\b', word
        ):
            for name in expanded(word):
                assert list(ROOT.glob(name.rstrip('/'))), f'{named(page)} names {word}'


@cache
def options_of(command: str) -> frozenset[str]:
    found = registry.find(command)
    assert found is not None, f'there is no command {command!r}'
    parser: argparse.ArgumentParser = registry.parser_of(found)
    options = {option for action in parser._actions for option in action.option_strings}
    return frozenset(options | ({'-k', '-n'} if getattr(found, 'PASSES_ON', False) else set()))


@pytest.mark.parametrize('page', PAGES, ids=named)
def test_commands_and_options_exist(page: Path) -> None:
    for text in texts(page):
        for command, rest in COMMAND.findall(text):
            if command in ('python', 'shell', 'ros-env'):  # of the script ./rig itself
                continue
            for option in re.findall(r'(?<=\s)--?[a-z][\w-]*', rest):
                assert option in options_of(command), f'{named(page)}: {command} {option}'
            assert registry.find(command) is not None, f'{named(page)}: {text}'


@pytest.mark.parametrize('page', PAGES, ids=named)
def test_modules_executables_and_launch_files_exist(page: Path) -> None:
    for text in texts(page):
        for module in re.findall(r'python3? -m ([\w.]+)', text):
            assert importlib.util.find_spec(module) is not None, f'{named(page)}: {module}'
        for script in re.findall(r'python3? ([\w/]+\.py)', text):
            assert (ROOT / script).exists(), f'{named(page)}: {script}'
        for executable in re.findall(r'ros2 run sensor_rig (\w+)', text):
            assert (ROOT / 'resource' / 'executables' / executable).is_file(), (
                f'{named(page)}: {executable}'
            )
        for file, rest in re.findall(r'ros2 launch sensor_rig (\S+)([^#]*)', text):
            source = (ROOT / 'launch' / file).read_text()
            if 'whole_rig' in source:
                source = (ROOT / 'sensor_rig' / 'running' / 'ros' / 'launching.py').read_text()
            for argument in re.findall(r'(?<!\S)(\w+):=', rest):
                assert f"'{argument}'" in source, f'{named(page)}: {file} has no {argument}'


@cache
def identifiers() -> frozenset[str]:
    """Return every name in the sources: classes, keys, functions, strings."""
    listed = subprocess.run(
        ['git', 'ls-files', '--cached', '--others', '--exclude-standard'],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    files = [ROOT / name for name in listed.splitlines()] or ROOT.rglob('*')
    found: set[str] = set()
    for file in files:
        found.update((file.stem, file.parent.name))
        if file.suffix in ('.py', '.yaml', '.xml', '.cfg', '.toml') or file.name in ('rig', 'run'):
            if file.is_file():
                found.update(re.findall(r'\w+', file.read_text(encoding='utf-8')))
    return frozenset(found)


@pytest.mark.parametrize('page', PAGES, ids=named)
def test_keys_and_names_occur_in_the_sources(page: Path) -> None:
    """A key that was renamed is found here: `rate_hz`, `clock.offset_s`, `stamp_at`."""
    for word in words(page):
        if re.fullmatch(r'[a-z]\w*(\.[a-z]\w*)*', word) and ('_' in word or '.' in word):
            if word.split('.')[0] in FOREIGN or word.endswith(FILES):
                continue
            missing = [
                part for part in word.split('.') if len(part) > 3 and part not in identifiers()
            ]
            assert not missing, f'{named(page)} names {word}'


@pytest.mark.parametrize('name', MODELS)
def test_rig_file_reference_is_up_to_date(name: str) -> None:
    assert (FOLDER / name).read_text(encoding='utf-8') == with_fresh_tables(name), (
        'write it again: PYTHONPATH=test ./rig python test/support/rig_file_page.py'
    )


def test_every_page_is_in_the_index() -> None:
    index = ROOT / 'docs' / 'README.md'
    linked = {(index.parent / link.partition('#')[0]).resolve() for link in links(index)}
    listed = {
        (page.parent / link.partition('#')[0]).resolve()
        for page in [ROOT / 'docs/sensors/README.md', ROOT / 'docs/rig_file.md']
        for link in links(page)
    }
    for page in (ROOT / 'docs').rglob('*.md'):
        if page.parent.name != 'sensors' or page.name == 'README.md':
            assert page.resolve() in linked | {index.resolve()} | listed, named(page)


def test_every_command_is_in_the_table_of_commands() -> None:
    page = (ROOT / 'docs' / 'getting_started.md').read_text(encoding='utf-8')
    rows = re.findall(r'^\| (.+?) \|', page.partition('\n## Commands\n')[2], re.M)
    named_there = {name for row in rows for name in re.findall(r'`([a-z-]+)`', row)}
    assert {command.NAME for command in registry.commands()} <= named_there
