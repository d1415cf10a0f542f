"""Films the drawings of the live page while a clock steps: without ROS, drawn by a browser."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from rig_common.errors import RigError, UnavailableError, why
from rig_common.installing import install_extra
from rig_common.times import NS_PER_S
from sensor_rig.inprocess import InProcessRig
from sensor_rig.page import parts
from sensor_rig.page.history import History, Mark, Occurrence, OffsetPoint
from sensor_rig.page.offsets import offsets
from sensor_rig.page.timeline_lanes import timeline
from sensor_rig.rigfile import RigConfig
from sim_sensors.timing.faults import FaultConfig

FORMATS = ('.webp', '.gif')
BROWSERS = ('chromium', 'chromium-browser', 'google-chrome')
MARGIN_PX, SCALE = 10, 1.5
"""Around the drawings; pixels of the film for one of the page, so that its text stays sharp."""
PATIENCE_MS = 120_000
FRAME_S, LAST_FRAME_S = 0.2, 2.5


class Frame(NamedTuple):
    """One picture and the simulated time that it shows."""

    time_s: float
    picture: Image.Image


def require_browser() -> str:
    """Return the browser of this machine; raise where the drawings cannot be filmed."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        raise UnavailableError(
            f'filming the page needs playwright; install it with: {install_extra("film")}'
        ) from None
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise UnavailableError(
            f'filming the page needs a browser, one of {", ".join(BROWSERS)}; '
            f'on Debian, "apt install chromium" brings it'
        )
    return browser


def film_clock_step(
    config: RigConfig,
    sensor: str,
    step_ms: float,
    *,
    lead_s: float,
    seconds: float,
    advance: Callable[[float], None] = lambda _: None,
) -> list[Frame]:
    """Run a rig; film `seconds` from `lead_s` on. At a quarter of them the clock steps, for good.

    All times are simulated ones.
    """
    browser = require_browser()
    run = _Run(config, sensor, lead_s + seconds / 4, step_ms / 1e3)
    run.go_on(lead_s, advance)
    frames = []
    with _page(browser) as page:
        while run.now_s < lead_s + seconds:
            run.go_on(FRAME_S, advance)
            page.set_content(f'<body style="margin: {MARGIN_PX}px">{run.drawings()}</body>')
            shot = page.screenshot(full_page=True, timeout=PATIENCE_MS)
            frames.append(Frame(run.now_s, Image.open(io.BytesIO(shot)).convert('RGB')))
    return frames


class _Run:
    """A rig without ROS, and its history as the live page keeps it."""

    def __init__(self, config: RigConfig, sensor: str, at_s: float, step_s: float) -> None:
        self._rig = InProcessRig(config.with_world(num_envs=1), arrays=False)
        fault = FaultConfig(kind='clock_step', at_s=at_s, offset=step_s)
        self._rig.pipelines[sensor].inject(fault)
        self._history = History(
            self._rig.sensors,
            planned=[Occurrence(at_s, fault.what.in_words(step_s), sensor)],
        )
        self._errors_ms: dict[str, float] = {}
        self._reference = '' if config.sync is None else config.sync.reference_sensor_id

    @property
    def now_s(self) -> float:
        """Simulated time since the start."""
        return max(self._rig.elapsed_ns, 0) / NS_PER_S

    def go_on(self, seconds: float, advance: Callable[[float], None]) -> None:
        """Simulate for `seconds`."""
        end_ns = max(self._rig.elapsed_ns, 0) + round(seconds * NS_PER_S)
        while self._rig.elapsed_ns < end_ns:
            self._tick()
        self._history.advance(self._rig.elapsed_ns)
        advance(seconds)

    def _tick(self) -> None:
        rig, start_ns = self._rig, self._rig.world.time_base.start_ns
        for message in rig.step():
            sample = message.sample
            self._history.add_mark(
                sample.sensor,
                Mark(sample.capture_ns - start_ns, sample.stamp_ns - start_ns, rig.elapsed_ns),
            )
            self._errors_ms[sample.sensor] = (sample.stamp_ns - sample.capture_ns) / 1e6
        for bundle in rig.bundles:
            self._history.advance(rig.elapsed_ns)
            self._history.add_bundle(
                {
                    name: member.stamp_ns - start_ns
                    for name, member in bundle.members.items()
                    if not (member.missing or member.collected)
                }
            )
            for name, member in bundle.members.items():
                if name != self._reference and {name, self._reference} <= set(self._errors_ms):
                    self._history.add_offset(
                        name,
                        OffsetPoint(
                            self.now_s,
                            member.offset_ns / 1e6,
                            member.offset_sigma_s * 1e3,
                            self._errors_ms[name] - self._errors_ms[self._reference],
                        ),
                    )

    def drawings(self) -> str:
        """Return the timeline and the offsets, as they stand on the page."""
        history = self._history
        lines = {name: list(line) for name, line in history.offsets.items()}
        return timeline(history) + offsets(
            lines, self._reference, self.now_s, min(max(self.now_s, 10.0), 20.0), history.events()
        )


def save(frames: list[Frame], out: Path) -> None:
    """Write the film, as fast as simulated time went; the suffix of `out` says the format."""
    shown = [
        frame
        for frame, later in zip(frames, [*frames[1:], None], strict=True)
        if later is None or later.time_s > frame.time_s
    ]
    lasts_ms = [round(1e3 * (after.time_s - frame.time_s)) for frame, after in pairwise(shown)]
    pictures = [frame.picture for frame in shown]
    if out.suffix.lower() == '.gif':
        pictures = [each.quantize(128, dither=Image.Dither.NONE) for each in pictures]
    options: dict[str, Any] = {'quality': 70, 'method': 6} if out.suffix.lower() == '.webp' else {}
    try:
        pictures[0].save(
            out,
            save_all=True,
            append_images=pictures[1:],
            loop=0,
            duration=[*lasts_ms, round(1e3 * LAST_FRAME_S)],
            **options,
        )
    except OSError as error:
        raise RigError(f'{out} cannot be written: {why(error)}') from None


@contextmanager
def _page(browser: str) -> Iterator[Any]:
    """Give an empty page of a browser, as wide as the drawings."""
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser, args=['--no-sandbox'])
        try:
            screen: Any = {'width': parts.WIDTH + 2 * MARGIN_PX, 'height': 620}
            yield started.new_page(viewport=screen, device_scale_factor=SCALE)
        except Error as error:
            raise RigError(
                f'the browser did not do what the film needs: {str(error).splitlines()[0]}'
            ) from None
        finally:
            started.close()
