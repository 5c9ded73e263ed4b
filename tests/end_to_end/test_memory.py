"""What `wsol localize --classifier` and `wsol discover` hold in memory does not grow over 5,000 photos."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import red_discs

PHOTOS = 5_000
EARLY = 1_000  # by then, every part of the work has run
KEPT = 16 * 2**20  # bytes, for the boxes and names of 4,000 photos; their pixels alone have 110 MB

# Runs a command in a process of its own, and prints how many bytes it held, at most, while it read the first
# EARLY photos and while it read the last ones. Nearly all of the time goes into overlays, so one in ten is
# drawn: if these were kept, that would be 300 MB.
CODE = """
import importlib, itertools, resource, sys
from pathlib import Path
import torch
from PIL import Image
from tests.helpers import red_discs
from wsol.cli import main
from wsol.localization.localized import Localization

torch.set_num_threads(1)
red_discs.register()
draw, number = Localization.overlay, itertools.count()
Localization.overlay = lambda one: Image.new("RGB", (9, 9)) if next(number) % 10 else draw(one)
module = importlib.import_module(sys.argv[1])
read, held = module.read_photos, []

def watched(photos):
    now = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    held.extend([now] * len(photos))
    return read(photos)

module.read_photos = watched
early = int(sys.argv[2])
code = main(sys.argv[3:])
assert code == 0, code
assert len(held) >= 5 * early, len(held)
print(max(held[:early]), max(held[-early:]))
"""

SMALL = "tests.helpers.classifiers:SmallNet"
LOCALIZE = ["--classifier", SMALL, "--image-size", "64", "--method", "layercam"]
DISCOVER = ["--backbone", "colours", "--weights", "none", "--size", "96"]


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("wsol.api.localizing", ["localize", *LOCALIZE, "--topk", "1"]),
        ("wsol.localization.discovery", ["discover", *DISCOVER]),
    ],
    ids=["localize", "discover"],
)
def test_memory_stays_constant_over_5000_photos(tmp_path: Path, module: str, command: list[str]) -> None:
    first = sorted(red_discs.write_photos(tmp_path / "some", 20))
    (tmp_path / "photos").mkdir()
    for i in range(PHOTOS):
        (tmp_path / "photos" / f"{i:04d}.png").hardlink_to(tmp_path / "some" / first[i % len(first)])
    arguments = [module, str(EARLY), *command, str(tmp_path / "photos"), "--out", str(tmp_path / "found")]
    ended = subprocess.run(
        [sys.executable, "-c", CODE, *arguments, "--device", "cpu"],
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    early, late = map(int, ended.stdout.splitlines()[-1].split())
    assert late - early < KEPT, f"{early:,} bytes over the first photos, {late:,} over the last"
