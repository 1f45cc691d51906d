"""Several threads may use the types: a process prepares in one thread and answers in another."""

from __future__ import annotations

import subprocess
import sys

THREADS = """
import sys, threading
from webhook.schema.decode import create_type_check
from webhook.schema.types import Fields

def ask(of, start):
    start.wait()
    assert create_type_check(of)({})

sys.setswitchinterval(1e-6)
for number in range(100):
    inner = Fields({f"inner-{number}-{field}": "text" for field in range(6)})
    of = Fields({f"outer-{number}": Fields({f"middle-{field}": inner for field in range(6)})})
    start = threading.Barrier(4)
    threads = [threading.Thread(target=ask, args=(of, start)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_that_decode_a_new_type_together_do_not_crash_the_process() -> None:
    ended = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
