"""Pretrained weights: where they come from, how they get into a network, and what came of it.

A checkpoint is read without running code from it, loaded into the whole network before that is cut into
stages (so public files load under their own names), and accounted for tensor by tensor.
"""

from __future__ import annotations

import hashlib
import pickle
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlparse

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from wsol.errors import CheckpointError, ConfigError
from wsol.registry import suggest

WRAPPERS = ("state_dict", "model")
PREFIX = "module."
PLAIN = frozenset(
    {torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.bool, torch.uint8, torch.int8}
    | {torch.int16, torch.int32, torch.int64}
)


@dataclass(frozen=True)
class Normalisation:
    """What the network expects its input to be: (RGB in [0, 1] - mean) / std, and how we know."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    reason: str


IMAGENET = Normalisation(
    (0.485, 0.456, 0.406),
    (0.229, 0.224, 0.225),
    "ImageNet's mean and deviation, which all of torchvision's weights expect",
)


@dataclass(frozen=True)
class WeightsReport:
    """What was loaded into a backbone. Tensor names are those of the checkpoint."""

    origin: str
    sha256: str | None
    loaded: tuple[str, ...]
    missing: tuple[str, ...]
    left_over: tuple[str, ...]
    normalisation: Normalisation

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        n = self.normalisation
        lines = [f"weights: {self.origin}" + (f" (sha256 {self.sha256[:16]})" if self.sha256 else "")]
        if self.sha256:
            lines += [
                f"  loaded {len(self.loaded)} tensors",
                f"  missing, newly initialised: {listed(self.missing)}",
                f"  left over: {listed(self.left_over)}",
            ]
        lines.append(f"  input: (RGB/255 - {_short(n.mean)}) / {_short(n.std)}: {n.reason}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Loaded:
    """A report together with the very parameters that hold pretrained values."""

    report: WeightsReport
    parameters: tuple[nn.Parameter, ...]


@dataclass(frozen=True)
class Weights:
    """A config's wish: `imagenet`, `none` or the path of a checkpoint.

    allow_missing: layers that the checkpoint may lack, by name or by the beginning of it up to a dot.
    section: of the config that holds the wish, for messages.
    """

    source: str
    allow_missing: tuple[str, ...] = ()
    section: str = "model"

    def load(
        self,
        network: nn.Module,
        normalisation: Normalisation,
        imagenet: Callable[[], Path] | None = None,
        name_in_file: Callable[[str], str] = str,
        hint: str = "",
        by_classes: Collection[str] = (),
    ) -> Loaded:
        """Fill `network` with what the source holds.

        imagenet: where the public weights are, once they are downloaded; None if there are none.
        name_in_file: from a tensor's name in the network to its name in the checkpoint.
        hint: what to try where the checkpoint is of another network.
        by_classes: tensors that stay new where the checkpoint has them in another shape or not at all.

        Raises:
            CheckpointError: the file is absent, damaged, unsafe, of another network, or lacks a layer.
            ConfigError: there are no public weights, or `allow_missing` names a layer that is not there.
        """
        wanted = {name_in_file(name): name for name in network.state_dict()}
        for name in self.allow_missing:
            if not any(_names(name, key) for key in wanted):
                known = {key.rpartition(".")[0] for key in wanted}
                raise ConfigError(f"{self.section}.allow_missing: no layer {name!r}{suggest(name, known)}")
        if self.source == "none":
            return Loaded(WeightsReport("none", None, (), (), (), normalisation), ())

        path, origin = self._locate(imagenet)
        state = read_state_dict(path)
        tensors = network.state_dict()
        for key in [k for k, name in wanted.items() if name in by_classes and k in state]:
            if state[key].shape != tensors[wanted[key]].shape:
                del state[key]  # the last layer of another number of classes
        loaded = tuple(key for key in wanted if key in state)
        # Old checkpoints lack BatchNorm's step counter, which only matters for momentum=None.
        missing = tuple(k for k in wanted if k not in state and not k.endswith("num_batches_tracked"))
        left_over = tuple(key for key in state if key not in wanted)
        if not loaded:
            raise CheckpointError(
                f"{origin}: a checkpoint of another network: it begins with {next(iter(state))!r}, "
                f"this one with {next(iter(wanted))!r}" + (f"; {hint}" if hint else "")
            )
        forbidden = [
            k
            for k in missing
            if wanted[k] not in by_classes and not any(_names(name, k) for name in self.allow_missing)
        ]
        if forbidden:
            layers = tuple(dict.fromkeys(k.rpartition(".")[0] for k in forbidden))
            raise CheckpointError(
                f"{origin}: lacks {listed(forbidden)}; to initialise that anew, set "
                f"{self.section}.allow_missing: [{listed(layers)}]"
            )
        wrong = [key for key in loaded if state[key].shape != tensors[wanted[key]].shape]
        if wrong:
            shapes = [f"{k} {tuple(state[k].shape)} for {tuple(tensors[wanted[k]].shape)}" for k in wrong]
            raise CheckpointError(f"{origin}: wrong shapes: {listed(shapes)}")
        network.load_state_dict({wanted[key]: state[key] for key in loaded}, strict=False)
        parameters = dict(network.named_parameters())
        report = WeightsReport(origin, file_digest(path), loaded, missing, left_over, normalisation)
        return Loaded(report, tuple(parameters[wanted[k]] for k in loaded if wanted[k] in parameters))

    def _locate(self, imagenet: Callable[[], Path] | None) -> tuple[Path, str]:
        """The checkpoint on this disk, and what to call it."""
        if self.source != "imagenet":
            path = Path(self.source).expanduser()
            if not path.is_file():
                hint = suggest(self.source, ["imagenet", "none"])
                raise CheckpointError(f"{self.section}.weights: no file {self.source!r}{hint}")
            return path, self.source
        if imagenet is None:
            raise ConfigError(
                f"{self.section}.weights: this network has no public weights; set it to none or to a path"
            )
        try:
            path = imagenet()
        except Exception as error:  # urllib's, huggingface_hub's and the disk's errors have no common base
            raise CheckpointError(
                f"cannot download the ImageNet weights ({reason_of(error)}); set {self.section}.weights to a "
                "file, or to none"
            ) from error
        return path, f"imagenet ({path.name})"


def read_state_dict(path: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors or .pth file by name, without running any code from it.

    A `state_dict` or `model` entry around them and a `module.` before every name are taken off.

    Raises:
        CheckpointError: not such a file, one that inflates, tensors that are not plain numbers on the CPU,
            or a value that is not finite.
    """
    _refuse_inflating(path)
    try:
        if path.suffix == ".safetensors":
            content: Any = load_file(path)
        else:
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise CheckpointError(
            f"{path}: refused: it is damaged, or it holds more than tensors and could run code; "
            "save a state_dict alone"
        ) from None
    except Exception as error:  # on damaged bytes torch's reader raises whatever it trips over
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise CheckpointError(f"{path}: cannot be read as a checkpoint: {reason[:120]}") from None
    for wrapper in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    tensors = isinstance(content, Mapping) and all(isinstance(v, Tensor) for v in content.values())
    if not tensors or not content:
        raise CheckpointError(f"{path}: not a state dict: expected tensors by name")
    state = {str(key): value for key, value in content.items()}
    if all(key.startswith(PREFIX) for key in state):
        state = {key.removeprefix(PREFIX): value for key, value in state.items()}
    strange = [f"{k} ({why})" for k, v in state.items() if (why := _why_strange(v))]
    if strange:
        raise CheckpointError(f"{path}: tensors that no network here takes: {listed(strange)}")
    broken = [k for k, v in state.items() if v.is_floating_point() and not v.isfinite().all()]
    if broken:
        raise CheckpointError(f"{path}: NaN or infinity in {listed(broken)}")
    return state


def _refuse_inflating(path: Path) -> None:
    """Raise where a .pth file, which is a zip archive, holds more than its own bytes.

    `torch.save` compresses nothing. A file that does can be a thousand times larger in memory, so its
    table of contents is read before any tensor is made.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            inside = sum(member.file_size for member in archive.infolist())
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return  # no zip archive: what reads it says what is wrong
    if inside > path.stat().st_size:
        raise CheckpointError(
            f"{path}: refused: its {path.stat().st_size:,} bytes would inflate to {inside:,}; torch.save "
            "does not compress, so save it again with that"
        )


def _why_strange(tensor: Tensor) -> str:
    """Why a tensor of a file cannot be a weight; '' where it can."""
    if tensor.device.type != "cpu":
        return f"without values: on the device {tensor.device.type}"
    if tensor.layout != torch.strided:
        return str(tensor.layout).removeprefix("torch.")
    if tensor.dtype not in PLAIN:
        return str(tensor.dtype).removeprefix("torch.")
    if tensor.numel() * tensor.itemsize > tensor.untyped_storage().nbytes():
        return f"shape {tuple(tensor.shape)}, but only {tensor.untyped_storage().nbytes():,} bytes stored"
    return ""


def download(url: str) -> Path:
    """The file at `url`, kept in torch's cache and checked against the hash in its name if it has one."""
    path = Path(torch.hub.get_dir()) / "checkpoints" / Path(urlparse(url).path).name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        hashed = torch.hub.HASH_REGEX.search(path.name)
        torch.hub.download_url_to_file(url, str(path), hashed[1] if hashed else None)
    return path


def reason_of(error: BaseException) -> str:
    """Why a download failed, in one line: of urllib's errors the reason inside of them.

    >>> from urllib.error import URLError
    >>> reason_of(URLError(OSError(-2, "Name or service not known")))
    'Name or service not known'
    """
    inner = error.reason if isinstance(error, URLError) and not isinstance(error, HTTPError) else error
    text = getattr(inner, "strerror", None) or str(inner)
    return (str(text).splitlines() or [type(error).__name__])[0]


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def listed(names: Iterable[str], most: int = 4) -> str:
    """`a, b, c, d and 7 more`, or `nothing`."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more or "nothing"


def _names(name: str, key: str) -> bool:
    """Whether `name` means the tensor `key`: its own name, or that of a module that holds it."""
    return key == name or key.startswith(name + ".")


def _short(values: Sequence[float]) -> str:
    return "/".join(f"{v:g}" for v in values)
