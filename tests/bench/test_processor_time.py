"""Processor time counts a process and its children, including ended ones."""

import os
import subprocess
import sys

from tests.bench.processor_time import spent_s

SPIN = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass\n"


def test_processor_time_of_a_process_is_exact():
    """Measure in a separate process, because child processes of the current process may still run."""
    child = f"{SPIN}import os\nfrom tests.bench.processor_time import spent_s\nprint(spent_s(os.getpid()), time.process_time())"
    told = subprocess.run([sys.executable, "-c", child], check=True, capture_output=True, text=True).stdout
    counted, exact = map(float, told.split())
    assert abs(counted - exact) < 0.05


def test_children_that_have_ended_are_counted():
    before = spent_s(os.getpid())
    subprocess.run([sys.executable, "-c", SPIN], check=True)
    assert 0.15 < spent_s(os.getpid()) - before < 2


def test_running_children_are_counted():
    before = spent_s(os.getpid())
    with subprocess.Popen([sys.executable, "-c", f"{SPIN}print(flush=True)\ninput()"], stdin=-1, stdout=-1) as child:
        child.stdout.readline()
        assert 0.15 < spent_s(os.getpid()) - before < 2
        child.kill()
