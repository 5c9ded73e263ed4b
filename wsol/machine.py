"""Is this machine ready? Versions, threads, accelerator, OpenCV, free disk; and what must be fixed first."""

from __future__ import annotations

import importlib.metadata as metadata
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from wsol.cores import bf16_instructions, usable_cores

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
# Packages that are used where they are installed: what for, and the extra that brings them.
EXTRAS = {
    "tensorboard": ("curves in TensorBoard", "tensorboard"),
    "pycocotools": ("reads exported COCO files", "coco"),
    "onnxruntime": ("ONNX", "onnx"),
    "huggingface_hub": ("packs on the Hugging Face Hub", "hub"),
}
LOW_DISK_GB = 5.0
LOW_SHM_GB = 1.0


def inspect_machine(directory: Path) -> Iterator[tuple[str, str, str | None]]:
    """(what, value, what to fix or None)."""
    for package in PACKAGES:
        version = _version(package)
        yield package, version or "missing", None if version else f"pip install {package}"
    builds = [p for p in OPENCV_BUILDS if _version(p)]
    mend = f"two packages own cv2: pip uninstall -y {' '.join(builds)}; pip install opencv-python-headless"
    yield "OpenCV builds", ", ".join(builds) or "none", mend if len(builds) > 1 else None
    for package, (purpose, extra) in EXTRAS.items():
        missing = f"not installed ({purpose}: pip install 'wsol[{extra}]')"
        yield f"{package} (extra)", _version(package) or missing, None
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
    bf16 = bf16_instructions()
    missing = "none: train.amp=bf16 would be slow" if bf16 is not None else "this torch cannot tell"
    yield "CPU in bf16", ", ".join(bf16 or ()) or missing, None
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
