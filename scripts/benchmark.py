"""Measure the project's speed as ratios, side by side in one run, and check them against their bounds.

    python scripts/benchmark.py                 every section
    python scripts/benchmark.py gpca models     these sections

A section is a file in scripts/benchmarks/ with a function `run() -> list[Ratio]` (see
scripts/benchmarks/timing.py); its name is the file's name. To add one, add the file. Exit code: 0 when
every bound is kept, 1 when one is broken, 2 for an unknown section.

Measure on a quiet machine: where other programs compete for the cores, threads that wait for each other
spoil the short measurements more than the long ones. OMP_NUM_THREADS=1 keeps ratios meaningful even then.
"""

import argparse
import importlib
import math
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_SECTIONS = {"timing"}

sys.path.insert(0, str(ROOT))  # the packages beside this folder, installed or not

from scripts.benchmarks.timing import Ratio  # noqa: E402
from wsol.cores import wait_passively  # noqa: E402


def section_names() -> list[str]:
    files = (ROOT / "scripts" / "benchmarks").glob("[!_]*.py")
    return sorted(file.stem for file in files if file.stem not in NOT_SECTIONS)


def run_section(name: str) -> list[Ratio]:
    ratios: list[Ratio] = importlib.import_module(f"scripts.benchmarks.{name}").run()
    return ratios


def table_line(ratio: Ratio) -> str:
    verdict = "ok" if ratio.kept else "BROKEN"
    held = (
        f"{ratio.kind} {ratio.bound:<6g} {verdict:<6}" if math.isfinite(ratio.bound) else f"{'no bound':<22}"
    )
    return f"  {ratio.name:<58} {ratio.value:>9.4g}  {held:<22}  {ratio.detail}"


def main(arguments: list[str] | None = None) -> int:
    known = section_names()
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0], epilog=f"sections: {', '.join(known)}"
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="default: all")
    sections = parser.parse_args(arguments).sections or known
    unknown = [name for name in sections if name not in known]
    if unknown:
        parser.error(f"unknown section {', '.join(unknown)}; there are {', '.join(known)}")

    wait_passively()  # as the commands do
    all_kept = True
    for name in sections:
        print(name, flush=True)
        for ratio in run_section(name):
            all_kept &= ratio.kept
            print(table_line(ratio), flush=True)
    return 0 if all_kept else 1


if __name__ == "__main__":
    sys.exit(main())
