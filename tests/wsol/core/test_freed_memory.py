"""Memory that tensors free stays with the process where that is asked for, and goes back afterwards."""

import subprocess
import sys

import pytest

PAGE_FAULTS = """
import resource
import torch
from wsol.freed_memory import freed_memory_kept

def faults() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        torch.ones(16 * 2**20)  # 64 MB, freed at once
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident() -> int:
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

outside = faults()
with freed_memory_kept():
    for _ in range(30):  # until the gaps that the first blocks leave are wide enough for the next
        torch.ones(16 * 2**20)
    inside = faults()
    held = resident()
print(outside, inside, held - resident(), faults())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and is for glibc")
def test_a_freed_block_is_used_again_without_new_pages_and_given_back_at_the_end() -> None:
    run = subprocess.run([sys.executable, "-c", PAGE_FAULTS], capture_output=True, text=True, check=True)
    outside, inside, given_back, afterwards = map(int, run.stdout.split())
    assert inside < outside / 10
    assert given_back > 60 * 2**20
    assert afterwards > 10 * inside
