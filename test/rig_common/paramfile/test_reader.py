"""What the reader accepts, and the sentence it says about what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rig_common.errors import RigError
from rig_common.paramfile import reader as paramfile

HEAD = '/**:\n  ros__parameters:\n'


def parse(body: str) -> paramfile.ParameterFile:
    """Parse `body`, whose first line is line 3 of the file."""
    return paramfile.parse(
        HEAD + ''.join(f'    {line}\n' for line in body.splitlines()), Path('rig.yaml')
    )


def test_nested_maps_lists_and_dotted_names() -> None:
    document = parse(
        'seed: 7\nworld: {model: yard.xml, timestep_s: 1e-3}\n'
        'world.driver: none\nlist: [0.0, 1.5]\nnames: [a, "1"]'
    )
    assert document.values == {
        'seed': 7,
        'world': {'model': 'yard.xml', 'timestep_s': 0.001, 'driver': 'none'},
        'list': [0.0, 1.5],
        'names': ['a', '1'],
    }
    assert document.lines['world.driver'] == 5
    assert document.lines['world.model'] == 4
    assert paramfile.flatten(document.values) == {
        'seed': 7,
        'world.model': 'yard.xml',
        'world.timestep_s': 0.001,
        'world.driver': 'none',
        'list': [0.0, 1.5],
        'names': ['a', '1'],
    }


REFUSED = {
    'nested list': ('a: 1\nb: {c: [[1, 2]]}', 4, 'b.c is a list of lists'),
    'list of maps': ('a: [{x: 1}]', 3, 'a is a list of maps'),
    'mixed list': ('a: [0.3, 0]', 3, 'a mixes decimals and whole numbers (0.3 and 0)'),
    'mixed texts': ('a: [x, 1]', 3, 'a mixes texts and whole numbers'),
    'bools are not ints': ('a: [1, true]', 3, 'a mixes whole numbers and booleans'),
    'colon in brackets': ('a: [x, 1:30]', 3, "'1:30' has a colon inside brackets"),
    'colon in braces': ('a: {b: x:y}', 3, "'x:y' has a colon inside brackets"),
    'colon in a key': ("a: {b: ['x'], c:d: 1}", 3, "'c:d' has a colon inside brackets"),
    'empty value': ('a: 1\nb:', 4, 'b has no value'),
    'empty list': ('a: []', 3, 'a is an empty list'),
    'empty map': ('a: {b: {}}', 3, 'a.b is an empty map'),
    'null': ('a: null', 3, 'a is null'),
    'tilde in a list': ('a: [~]', 3, 'a is ~'),
    'alias': ('a: &x 1\nb: *x', 4, 'b is a YAML alias (*x)'),
    'alias as key': ('a: &x y\n*x : 1', 4, 'YAML aliases'),
    'alias in a list': ('a: &x 1\nb: [*x]', 4, 'b is a YAML alias'),
    'merge key': ('a: &x {y: 1}\nb: {<<: *x}', 4, 'merge keys'),
    'duplicate': ('a: {b: 1}\nc: 2\na: {d: 3}', 5, 'a was given before, on line 3'),
    'duplicate through a dot': ('a: {b: 1}\na.b: 2', 4, 'a.b was given before, on line 3'),
    'value and group': ('a: 1\na.b: 2', 4, 'a was given a value on line 3'),
    'group after value': ('a.b: 1\na: 2', 4, 'a was given before, on line 3'),
    'dotted group': ('a.b: {c: 1}', 3, 'a.b holds a map and has a dot'),
    'empty name part': ('a..b: 1', 3, "'a..b' cannot be a parameter name"),
    'list as key': ('? [1]\n: 1', 3, 'a key should be a plain name'),
    'tag': ('a: !!float 1', 3, 'a has the YAML tag'),
    'tagged list': ('a: !!python/object/apply:os.system ["true"]', 3, 'a has the YAML tag'),
    'tagged map': ('a: !!omap {b: 1}', 3, 'a has the YAML tag'),
    'nul': ('a: "x\\0y"', 3, 'NUL'),
    'open list': ('a: [1, 2', 3, 'the list that opens here is not closed'),
    'open map': ('a: {b: 1', 3, 'the map that opens here is not closed'),
    'open quote': ('a: "b', 3, 'the quote that opens here is not closed'),
    'no colon': ('a: 1\nb 2\nc: 3', 5, 'a key without a colon'),
    'indentation': ('a:\n  b: 1\n   c: 2', 5, 'second colon'),
    'tab': ('a:\n\tb: 1', 4, 'not valid YAML'),
}


def test_a_delay_may_be_null_as_ros_reads_it() -> None:
    assert parse('a: {delay_range_s: null, b.delay_range_s: ~}').values == {
        'a': {'delay_range_s': 'null', 'b': {'delay_range_s': '~'}}
    }


@pytest.mark.parametrize('case', REFUSED)
def test_refusals_name_file_line_and_key(case: str) -> None:
    body, line, sentence = REFUSED[case]
    with pytest.raises(RigError) as caught:
        parse(body)
    assert str(caught.value).startswith(f'rig.yaml:{line}: ')
    assert sentence in str(caught.value)
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize(
    'text',
    [
        '',
        '# nothing\n',
        '---\n',
        '[]',
        '{}',
        'text',
        '/**:',
        '/**: 3',
        '/**: {}',
        '/**: {ros__parameters: }',
        '/**: {ros__parameters: {}}',
        '/**: {ros__parameters: [1]}',
        '/**: {ros__params: {a: 1}}',
        'world: {ros__parameters: {a: 1}}',
        '/**: {ros__parameters: {a: 1}, b: {ros__parameters: {c: 1}}}',
        '/**: {ros__parameters: {a: 1}}\n/node: {ros__parameters: {a: 2}}',
        '/**: {ros__parameters: {a: 1}}\n---\n/**: {ros__parameters: {b: 1}}',
        '*x',
        '/**: *x',
        '? {a: 1}\n: 2',
        '\0',
        '%YAML 9.9\n---\na: 1',
        '@',
        'a: "\\ud800"',
    ],
)
def test_what_is_no_parameter_file_gets_one_sentence(text: str) -> None:
    with pytest.raises(RigError) as caught:
        paramfile.parse(text, Path('rig.yaml'))
    assert str(caught.value).startswith('rig.yaml')
    assert '\n' not in str(caught.value)


def test_colons_are_fine_outside_of_brackets_and_in_quotes() -> None:
    assert parse('a: 1:30\nb: ["1:30"]').values == {'a': '1:30', 'b': ['1:30']}


def test_alias_bomb_costs_nothing() -> None:
    bomb = 'a0: &a0 [x, x]\n' + '\n'.join(
        f'a{n}: &a{n} [{", ".join([f"*a{n - 1}"] * 9)}]' for n in range(1, 30)
    )
    with pytest.raises(RigError, match='alias'):
        parse(bomb)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(RigError, match='nested more than 32 deep'):
        parse('a: ' + '{a: ' * 500 + '1' + '}' * 500)
    with pytest.raises(RigError, match=r'nested more than 32 deep|not valid YAML'):
        parse('a: ' + '{a: ' * 100_000 + '1' + '}' * 100_000)
    with pytest.raises(RigError, match=r'list of lists|not valid YAML'):
        parse('a: ' + '[' * 100_000)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    binary = tmp_path / 'binary.yaml'
    binary.write_bytes(b'/**:\n  ros__parameters:\n    a: "\xff"\n')
    with pytest.raises(RigError, match=r'binary\.yaml:3: not a text file in UTF-8'):
        paramfile.read(binary)
    huge = tmp_path / 'huge.yaml'
    huge.write_text(HEAD + '    a: 1\n' + '# x\n' * 300_000)
    with pytest.raises(RigError, match='larger than 1 MiB'):
        paramfile.read(huge)
    with pytest.raises(RigError, match=r'cannot read .*: no such file'):
        paramfile.read(tmp_path / 'absent.yaml')
    with pytest.raises(RigError, match=r'cannot read .*: is a directory'):
        paramfile.read(tmp_path)
    with pytest.raises(RigError, match='it is a pipe or a device, not a file'):
        paramfile.read('/dev/zero')


def test_a_byte_order_mark_is_read_and_a_pipe_is_refused(tmp_path: Path) -> None:
    marked = tmp_path / 'bom.yaml'
    marked.write_text(HEAD + '    a: 1\n', encoding='utf-8-sig')
    assert paramfile.read(marked) == {'a': 1}
    reader, writer = os.pipe()
    os.write(writer, (HEAD + '    a: 2\n').encode())
    os.close(writer)
    with pytest.raises(RigError, match='it is a pipe or a device, not a file'):
        paramfile.read(f'/dev/fd/{reader}')
    os.close(reader)
