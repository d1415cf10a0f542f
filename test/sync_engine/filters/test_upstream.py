"""message_filters' own tests, as they are, with our class in place of the original.

SENSOR_RIG_MESSAGE_FILTERS names the folder `test` of message_filters' sources; none of it is kept
here. A test that only fails with our class stands in from_message_filters.md, with the reason.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.installed import ros_package

DOCUMENT = Path(__file__).parents[3] / 'docs' / 'from_message_filters.md'
FOLDER = os.environ.get('SENSOR_RIG_MESSAGE_FILTERS', '')
PROGRAM = """
import json, sys, unittest
import message_filters
folder, ours = sys.argv[1], sys.argv[2] == 'ours'
if ours:
    from sync_engine.filters import AdaptiveTimeSynchronizer
    message_filters.ApproximateTimeSynchronizer = AdaptiveTimeSynchronizer
class Result(unittest.TestResult):
    passed = []
    def addSuccess(self, test):
        self.passed.append(test.id())
result = Result()
unittest.defaultTestLoader.discover(folder).run(result)
print(json.dumps(result.passed))
"""


def passed(whose: str) -> set[str]:
    """Return the names of upstream's tests that pass with the class of `whose`."""
    done = subprocess.run(
        [sys.executable, '-c', PROGRAM, FOLDER, whose],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        timeout=120,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.skipif(
    not FOLDER, reason='SENSOR_RIG_MESSAGE_FILTERS does not name the tests of message_filters'
)
def test_what_fails_with_our_class_alone_is_documented() -> None:
    ros_package('message_filters')
    theirs, ours = passed('theirs'), passed('ours')
    assert theirs, f'no test of {FOLDER} passes with the original'
    listed = set(re.findall(r'\btest_\w+', DOCUMENT.read_text(encoding='utf-8')))
    assert {test.split('.')[-1] for test in theirs - ours} <= listed
