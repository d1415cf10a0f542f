"""From the name of a model to a compiled MuJoCo model with the rig's sensors in it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from pathlib import Path

import mujoco

from rig_common.errors import RigError
from rig_common.paths import find_shared, shared_names
from rig_common.times import NS_PER_S, seconds_to_ns
from sim_sensors.interface import AnySensor
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.model import additions, native_delay
from sim_sensors.world.model.model_folder import files_of_model, require_own_folder
from sim_sensors.world.model.urdf import files_of_urdf, resolved_urdf

SUFFIXES = ('.xml', '.mjcf', '.urdf')
AUTORESET_OFF = int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)


def find_model(name: str, base_dir: Path | None) -> Path:
    """Return the file of model `name`: absolute, in `base_dir`, or one of ours in worlds/."""
    given = Path(name).expanduser()
    places = [given] if given.is_absolute() else [(base_dir or Path.cwd()) / given]
    if not given.is_absolute():
        shipped = find_shared('worlds', *given.parts)
        places += [shipped] if shipped is not None else []
    for place in places:
        if place.is_file():
            if place.suffix.lower() not in SUFFIXES:
                raise RigError(
                    f'world.model is {name!r}; it should be an MJCF file (.xml) or a '
                    f'URDF file (.urdf)'
                )
            return place.resolve()
    where = (
        'there is no such file'
        if given.is_absolute()
        else (f'it is neither in {places[0].parent} nor shipped in worlds/')
    )
    raise RigError(f'world.model is {name!r}; {where}{_near_model(given, places[0].parent)}')


def _near_model(given: Path, folder: Path) -> str:
    """Return what may be meant by a missing model: one of like name, else what is shipped."""
    shipped = shared_names('worlds', '.xml')
    beside = [each for each in folder.glob('*') if each.suffix.lower() in SUFFIXES]
    names = {each.stem: each.name for each in beside} | {stem: f'{stem}.xml' for stem in shipped}
    near = difflib.get_close_matches(given.stem, names, n=1)
    if near:
        return f'; did you mean {names[near[0]]!r}?'
    return f'; shipped are {", ".join(names[stem] for stem in shipped)}'


def model_files(config: WorldConfig, base_dir: Path | None = None) -> set[Path]:
    """Return every file that compiling the model of `config` reads."""
    file = find_model(config.model, base_dir)
    if file.suffix.lower() == '.urdf':
        return files_of_urdf(file, config, base_dir)
    return files_of_model(file)


def whole_timestep_ns(timestep_s: float) -> int:
    """Return the physics step in ns; it must be whole, since all time is integer."""
    step_ns = seconds_to_ns(timestep_s)
    if step_ns < 1 or abs(step_ns - timestep_s * NS_PER_S) > 1e-6:
        raise RigError(
            f'world.timestep_s is {timestep_s!r}; it must be a whole number of nanoseconds'
        )
    return step_ns


def compile_model(
    config: WorldConfig, sensors: Iterable[AnySensor], base_dir: Path | None = None
) -> mujoco.MjModel:
    """Return the model of `config` with every sensor mounted."""
    spec, file = read_spec(config, base_dir)
    try:
        return compile_spec(spec, config, sensors)
    except ValueError as error:
        raise RigError(
            _missing_asset(spec, file)
            or f'world.model {file.name} with its sensors: {one_line(error)}'
        ) from None


def read_spec(config: WorldConfig, base_dir: Path | None) -> tuple[mujoco.MjSpec, Path]:
    """Return the model of `config` as it is written, and its file."""
    file = find_model(config.model, base_dir)
    if not config.allow_outside_files and file.suffix.lower() != '.urdf':
        require_own_folder(file)
    try:
        spec = (
            mujoco.MjSpec.from_file(str(file))
            if file.suffix.lower() != '.urdf'
            else (mujoco.MjSpec.from_string(resolved_urdf(file, config, base_dir)))
        )
    except ValueError as error:
        raise RigError(f'world.model {file.name}: {one_line(error)}') from None
    except RuntimeError:  # all that MuJoCo's reader says where memory ends
        raise RigError(
            f'world.model {file.name}: MuJoCo cannot read it; a height field, mesh or picture in '
            f'it needs more memory than there is'
        ) from None
    return spec, file


def compile_spec(
    spec: mujoco.MjSpec, config: WorldConfig, sensors: Iterable[AnySensor]
) -> mujoco.MjModel:
    """Return `spec` compiled, with what `config` adds and every sensor mounted."""
    step_ns = whole_timestep_ns(config.timestep_s)
    additions.add(spec, config)
    spec.option.timestep = step_ns / NS_PER_S
    # An unstable step must be seen: MuJoCo then resets, which `World` notices and reports.
    spec.option.disableflags = int(spec.option.disableflags) & ~AUTORESET_OFF
    for sensor in sensors:
        mounted = len(spec.sensors)
        sensor.mount(spec)
        native_delay.compile_into(sensor, spec.sensors[mounted:], step_ns)
    if config.control_delay_backend == 'mujoco':
        native_delay.check_control(spec, config)
        native_delay.delay(spec.actuators, config.control_delay_s, step_ns)
    model: mujoco.MjModel = spec.compile()
    if additions.add_start(spec, model, config):
        model = spec.compile()
    return model


def one_line(error: Exception) -> str:
    """Return MuJoCo's message without its line breaks."""
    text = ', '.join(part.strip() for part in str(error).splitlines() if part.strip())
    return text.removeprefix('Error: ').removeprefix('XML Error: ')


def _missing_asset(spec: mujoco.MjSpec, file: Path) -> str:
    """Return the sentence for the first asset that is not there; empty where all are."""
    for kind, directory, name in _assets(spec):
        place = file.parent / directory / (Path(name).name if spec.strippath else name)
        if not place.exists():
            return f'world.model {file.name}: there is no {kind} file {place}'
    return ''


def _assets(spec: mujoco.MjSpec) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, directory, file) of everything the compiler will open."""
    meshes, textures = spec.meshdir or '', spec.texturedir or ''
    for kind, directory, items in (
        ('mesh', meshes, spec.meshes),
        ('hfield', meshes, spec.hfields),
        ('skin', meshes, spec.skins),
    ):
        for item in items:
            if item.file:
                yield kind, directory, item.file
    for texture in spec.textures:
        for name in (texture.file, *texture.cubefiles):
            if name:
                yield 'texture', textures, name
