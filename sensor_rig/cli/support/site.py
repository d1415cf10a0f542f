"""The documentation site, made by MkDocs from the pages of the source tree.

MkDocs reads one folder of pages. The tree has them at its root, in docs/, datasheets/ and
bench/results/, so they are copied into a temporary folder in the same places: links stay as they
are. Pages of sensors and results, which come and go, are added to the navigation here.
"""

from __future__ import annotations

import logging
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from rig_common.errors import RigError

FOLDERS = {'docs': '*', 'datasheets': '*.md', 'bench/results': '*.md', 'examples': '*'}
"""What is copied beside the pages of the root, and which files of it."""


def build_site(root: Path, output: Path) -> list[str]:
    """Build the site of the tree `root` into the folder `output`; return what MkDocs warns of."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import MkDocsException

    if output.exists() and not (output / 'index.html').exists() and any(output.iterdir()):
        raise RigError(f'{output} holds something else; choose another folder')
    warnings = _Warnings()
    with tempfile.TemporaryDirectory(prefix='sensor_rig_site_') as folder:
        pages = Path(folder)
        _copy_pages(root, pages)
        log = logging.getLogger('mkdocs')
        log.addHandler(warnings)
        try:
            config = load_config(
                str(root / 'mkdocs.yml'), docs_dir=str(pages), site_dir=str(output)
            )
            config.nav = _completed(config.nav, pages)
            build(config)
        except (MkDocsException, OSError) as error:
            raise RigError(f'the site cannot be built: {error}') from None
        finally:
            log.removeHandler(warnings)
    return warnings.said


class _Warnings(logging.Handler):
    """Keeps what MkDocs warns of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def _copy_pages(root: Path, pages: Path) -> None:
    for page in root.glob('*.md'):
        shutil.copy(page, pages)
    shutil.copy(root / 'LICENSE', pages)
    for folder, files in FOLDERS.items():
        for file in (root / folder).rglob(files):
            if file.is_file() and '__pycache__' not in file.parts:
                target = pages / file.relative_to(root)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, target)


def _completed(nav: Any, pages: Path) -> object:
    """Return the navigation with a page for every sensor and every kept run of benchmarks."""

    def named(folder: str) -> list[dict[str, str]]:
        found = sorted(path for path in (pages / folder).glob('*.md') if path.name != 'README.md')
        return [{_title(path): path.relative_to(pages).as_posix()} for path in found]

    for part in nav:
        for title, entries in part.items():
            if title == 'Simulated rigs':
                sensors = next(each['Sensors'] for each in entries if 'Sensors' in each)
                sensors += named('docs/sensors')
            if title == 'Project':
                entries.append({'Kept results': named('bench/results')})
    known = set(re.findall(r'[\w/]+\.md', str(nav)))
    left = [each for each in named('docs') if not known & set(each.values())]
    return [*nav, {'More': left}] if left else nav


def _title(page: Path) -> str:
    found = re.search(r'^# (.+)$', page.read_text(encoding='utf-8'), re.MULTILINE)
    title = found[1].replace('`', '') if found else page.stem
    return f'{title} (quick)' if page.stem.endswith('-quick') else title
