"""`wsol doctor`: is this machine ready?"""

from __future__ import annotations

import argparse
import importlib.metadata as metadata
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from wsol.cores import usable_cores

HELP = "check this machine: versions, threads, accelerator, OpenCV, free disk"
DESCRIPTION = """\
Print what the toolkit runs on, and warn of what would trip it: two OpenCV packages in one
environment, a torch and torchvision that do not fit, too little disk or shared memory.
Exit code 1 where something must be mended first.
"""

PACKAGES = (
    "torch",
    "torchvision",
    "timm",
    "numpy",
    "scipy",
    "opencv-python-headless",
    "albumentations",
    "pillow",
    "matplotlib",
    "PyYAML",
    "safetensors",
    "tqdm",
)
OPENCV_BUILDS = (
    "opencv-python",
    "opencv-python-headless",
    "opencv-contrib-python",
    "opencv-contrib-python-headless",
)
EXTRAS = {
    "tensorboard": "curves in TensorBoard",
    "pycocotools": "reads exported COCO files",
    "onnxruntime": "ONNX",
}
LOW_DISK_GB = 5.0
LOW_SHM_GB = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dir", type=Path, default=Path(), help="folder whose disk is looked at (default: here)"
    )


def run(args: argparse.Namespace) -> int:
    from wsol.version import __version__

    print(f"wsol {__version__}, Python {platform.python_version()}, {platform.platform()}\n")
    problems = 0
    for name, value, problem in _findings(args.dir):
        print(f"  {name:<24}{value}")
        if problem:
            problems += 1
            print(f"  {'':<24}-> {problem}")
    print("\nready" if not problems else f"\n{problems} to mend (->)")
    return 1 if problems else 0


def _findings(directory: Path) -> Iterator[tuple[str, str, str | None]]:
    """(what, value, what to mend or None)."""
    for package in PACKAGES:
        version = _version(package)
        yield package, version or "missing", None if version else f"pip install {package}"
    builds = [p for p in OPENCV_BUILDS if _version(p)]
    mend = f"two packages own cv2: pip uninstall -y {' '.join(builds)}; pip install opencv-python-headless"
    yield "OpenCV builds", ", ".join(builds) or "none", mend if len(builds) > 1 else None
    for package, purpose in EXTRAS.items():
        yield f"{package} (extra)", _version(package) or f"not installed ({purpose})", None
    yield from _torch()
    disk = shutil.disk_usage(directory if directory.exists() else Path())
    free = disk.free / 1e9
    low = f"less than {LOW_DISK_GB:g} GB: a run may not fit" if free < LOW_DISK_GB else None
    yield "free disk", f"{free:.1f} GB of {disk.total / 1e9:.1f} GB", low
    shm = Path("/dev/shm")
    if sys.platform == "linux" and shm.exists():
        free = shutil.disk_usage(shm).free / 1e9
        low = (
            "loader workers share images there: use data.workers=0, or enlarge it"
            if free < LOW_SHM_GB
            else None
        )
        yield "shared memory", f"{free:.1f} GB free", low


def _torch() -> Iterator[tuple[str, str, str | None]]:
    try:
        import torch
    except Exception as error:
        yield "torch loads", "no", f"{type(error).__name__}: {error}"
        return
    try:
        import torchvision

        broken = None if torchvision.extension._has_ops() else "torchvision was built for another torch"
    except Exception as error:
        broken = f"torchvision does not load with this torch ({error}); install the pair of requirements.txt"
    yield "torch and torchvision", "a pair" if not broken else "do not fit", broken
    yield "CPU", f"{usable_cores()} cores to use, torch uses {torch.get_num_threads()} threads", None
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        yield "accelerator", ", ".join(names), None
    else:
        yield "accelerator", "none: training runs on the CPU", None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
