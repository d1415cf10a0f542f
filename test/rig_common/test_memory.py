"""Large messages reuse the memory of those before them."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import resource, sys
from rig_common.memory import keep_freed_memory

if sys.argv[1] == 'kept' and not keep_freed_memory():
    sys.exit(3)

def take_messages(count):
    for _ in range(count):
        image, cloud = bytearray(921_600), bytearray(3_000_000)
        image[::4096], cloud[::4096] = b'1' * 225, b'1' * 733

take_messages(5)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
take_messages(100)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(way: str) -> int:
    done = subprocess.run(
        [sys.executable, '-c', PROGRAM, way], check=False, capture_output=True, text=True
    )
    if done.returncode == 3:
        pytest.skip('the C library has no mallopt')
    assert not done.returncode, done.stderr
    return int(done.stdout)


def test_large_messages_reuse_the_memory_of_those_before():
    assert page_faults('kept') < 0.1 * page_faults('usual')


GIVING_BACK = """
import sys
from pathlib import Path

from rig_common.memory import keep_freed_memory, return_freed_memory

def resident_pages():
    return int(Path('/proc/self/statm').read_text().split()[1])

if not keep_freed_memory():
    sys.exit(3)
models = [b'1' * (4 << 20) for _ in range(10)]
full = resident_pages()
models.clear()
kept = resident_pages()
assert return_freed_memory()
print(full - kept, full - resident_pages())
"""


@pytest.mark.skipif(not Path('/proc/self/statm').is_file(), reason='there is no /proc here')
def test_memory_of_what_has_ended_is_handed_back():
    done = subprocess.run(
        [sys.executable, '-c', GIVING_BACK], check=False, capture_output=True, text=True
    )
    if done.returncode == 3:
        pytest.skip('the C library has no mallopt')
    assert not done.returncode, done.stderr
    at_once, told = map(int, done.stdout.split())
    assert at_once < 1000 < 9000 < told  # of some 10,000 pages
