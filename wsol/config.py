"""What a run is made of: nested frozen dataclasses, read strictly from YAML.

::

    extends: base.yaml
    data:  {name: cub, root: data/CUB_200_2011, image_size: 224}
    model: {backbone: vgg16, drop: {name: adl, gamma: 0.8}, attention: gpca}

A `Component` is a thing chosen by name. It is written as that name, or as a mapping with `name` and its
options, and the options are checked against what the component takes (see `wsol.registry`). Where a file or
`--set` changes the name of a component, the options of the former one go with it.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

import yaml

from wsol.convert import convert, shown
from wsol.errors import ConfigError
from wsol.registry import (
    ATTENTIONS,
    BACKBONES,
    DATASETS,
    DROPS,
    HEADS,
    PROTOCOLS,
    SCHEDULES,
    Registry,
    suggest,
)
from wsol.yamlfile import KeyPath, Located, parse_override, read_yaml

D = TypeVar("D")
Problems = Iterator[tuple[str, str]]  # (field, what is wrong with it)


def out_of_range(record: Any, **bounds: tuple[float, float]) -> Problems:
    """The named numbers of `record` that are not within (least, largest)."""
    for name, (least, largest) in bounds.items():
        if not least <= getattr(record, name) <= largest:
            yield name, f"{getattr(record, name)} is outside {least:g} to {largest:g}"


@dataclass(frozen=True)
class Component:
    """A thing chosen by name with its own options. Subclasses add the fields that every choice shares."""

    registry: ClassVar[Registry]

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, **settings: Any) -> Self:
        """The component as code writes it: `Drop.of("adl", gamma=0.9, placement="paper")`."""
        own = {f.name for f in fields(cls)} - {"options"}
        return cls(
            name=name,
            options={k: v for k, v in settings.items() if k not in own},
            **{k: v for k, v in settings.items() if k in own},
        )


@dataclass(frozen=True)
class Backbone(Component):
    registry = BACKBONES
    name: str = "vgg16"


@dataclass(frozen=True)
class Drop(Component):
    """A drop block and the stages it follows: a named placement, or a list of stage names."""

    registry = DROPS
    name: str = "none"
    placement: Literal["paper", "original"] | tuple[str, ...] = "paper"


@dataclass(frozen=True)
class Head(Component):
    registry = HEADS
    name: str = "cam"


@dataclass(frozen=True)
class Attention(Component):
    registry = ATTENTIONS
    name: str = "identity"


@dataclass(frozen=True)
class Schedule(Component):
    """The learning rate over the run, after a linear warm-up."""

    registry = SCHEDULES
    name: str = "step"
    warmup_epochs: float = 0.0

    def problems(self) -> Problems:
        yield from out_of_range(self, warmup_epochs=(0, 1e6))


@dataclass(frozen=True)
class Data(Component):
    """A data set and how its images become tensors."""

    registry = DATASETS
    name: str = "cub"
    root: Path = Path("data/CUB_200_2011")
    image_size: int = 224  # side of the square that the network sees
    resize: int = 256  # side before the random crop in training
    val_share: float = 0.0  # of the training images of each class, held out to choose thresholds
    val_seed: int = 0
    workers: int = 2
    on_bad_image: Literal["stop", "skip"] = "stop"

    def problems(self) -> Problems:
        size = (32, 4096)
        yield from out_of_range(self, image_size=size, resize=size, val_share=(0, 0.9), workers=(0, 512))
        if self.resize < self.image_size:
            yield "resize", f"{self.resize} is smaller than image_size {self.image_size}: no crop fits"


@dataclass(frozen=True)
class Model:
    """A backbone of named stages, drop blocks after some of them, and a head with its attention."""

    backbone: Backbone = Backbone()
    weights: str = "imagenet"  # imagenet | none | a path
    allow_missing: tuple[str, ...] = ()  # layers that the weights file may lack, by name or prefix
    drop: Drop = Drop()
    head: Head = Head()
    attention: Attention = Attention()


@dataclass(frozen=True)
class Train:
    """The paper's recipe is the default: SGD for 100 epochs, the rate divided by 10 at epoch 80."""

    epochs: int = 100
    batch_size: int = 32  # images of one optimizer step, over all processes and accumulated parts
    lr: float = 0.01
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 5e-4
    head_lr: float = 1.0  # multiplies lr for the layers that are not pretrained
    bias_lr: float = 1.0  # multiplies lr for the biases of those layers, on top of head_lr
    schedule: Schedule = Schedule(options={"milestones": (80,), "factor": 0.1})
    clip_norm: float | None = None  # the gradient's largest norm
    accumulate: int = 1  # parts that a batch is computed in, one after the other, to save memory
    seed: int = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"
    amp: Literal["none", "bf16", "fp16"] = "none"
    channels_last: bool = False
    compile: bool = False  # torch.compile: slow to start, faster after
    sync_bn: bool = False  # batch norm over the images of all processes
    validate_every: int = 1  # epochs, where data.val_share leaves images to validate on
    checkpoint_every: int | None = None  # steps, beside the checkpoint after every epoch

    def problems(self) -> Problems:
        yield from out_of_range(
            self, epochs=(1, 1e6), batch_size=(1, 1e6), lr=(0, 1e3), momentum=(0, 1), weight_decay=(0, 1)
        )
        yield from out_of_range(
            self, head_lr=(0, 1e3), bias_lr=(0, 1e3), seed=(0, 2**32 - 1), validate_every=(1, 1e6)
        )
        if self.batch_size % self.accumulate if self.accumulate > 0 else True:
            yield "accumulate", f"a batch of {self.batch_size} does not split into {self.accumulate} parts"
        if self.clip_norm is not None and not self.clip_norm > 0:
            yield "clip_norm", f"{self.clip_norm} is not above 0"
        if self.checkpoint_every is not None and self.checkpoint_every < 1:
            yield "checkpoint_every", f"{self.checkpoint_every} is less than one step"
        if self.nesterov and self.momentum == 0:
            yield "nesterov", "needs a momentum above 0"


@dataclass(frozen=True)
class Eval:
    protocol: str = "gpca"

    def problems(self) -> Problems:
        if self.protocol not in PROTOCOLS.entries():
            known = suggest(self.protocol, PROTOCOLS.entries())
            yield "protocol", f"unknown protocol {self.protocol!r}{known}"


@dataclass(frozen=True)
class Config:
    data: Data = Data()
    model: Model = Model()
    train: Train = Train()
    eval: Eval = Eval()


def load_config(path: Path | str, overrides: Sequence[str] = ()) -> Config:
    """The config in a YAML file with `--set` overrides on top, checked whole before anything else runs."""
    located = _read_extended(Path(path), ())
    for text in overrides:
        keys, value = parse_override(text)
        nested: Any = value
        for key in reversed(keys):
            nested = {key: nested}
        places = {keys[: i + 1]: f"--set {text}" for i in range(len(keys))}
        located = _merge(located, Located(nested, places))
    return _build(Config, located, ())


def config_from_dict(values: Mapping[str, Any]) -> Config:
    """A config from nested plain values, checked like a file."""
    return _build(Config, Located(dict(values)), ())


def config_to_dict(config: Any) -> dict[str, Any]:
    """The resolved config as nested plain values that load back equal."""
    result: dict[str, Any] = {}
    for f in fields(config):
        value = getattr(config, f.name)
        if f.name == "options" and isinstance(config, Component):
            result.update({k: _plain(v) for k, v in value.items()})
        else:
            result[f.name] = config_to_dict(value) if is_dataclass(value) else _plain(value)
    return result


def dump_config(config: Config) -> str:
    """The resolved config as YAML."""
    return yaml.safe_dump(config_to_dict(config), sort_keys=False, width=100)


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return value


def _read_extended(path: Path, chain: tuple[Path, ...]) -> Located:
    """A file on top of the ones that it extends."""
    resolved = path.resolve()
    if resolved in chain:
        raise ConfigError(f"{path}: extends itself ({' -> '.join(p.name for p in (*chain, resolved))})")
    located = read_yaml(path)
    base = located.value.pop("extends", None)
    if base is None:
        return located
    if not isinstance(base, str):
        raise ConfigError(f"{located.place(('extends',))}: extends: expected a file name, got {shown(base)}")
    return _merge(_read_extended(path.parent / base, (*chain, resolved)), located)


def _merge(base: Located, top: Located) -> Located:
    """`top` over `base`, key by key; a component whose name changes loses the options it had."""
    merged = _merge_values(base.value, top.value, Config)
    return Located(merged, {**base.places, **top.places})


def _merge_values(base: Any, top: Any, cls: type | None) -> Any:
    component = cls is not None and issubclass(cls, Component)
    if component:
        base = {"name": base} if isinstance(base, str) else base
        top = {"name": top} if isinstance(top, str) else top
    if not isinstance(base, dict) or not isinstance(top, dict):
        return top
    if component and "name" in top and top["name"] != base.get("name", top["name"]):
        shared = {f.name for f in fields(cls)} if is_dataclass(cls) else set()
        base = {k: v for k, v in base.items() if k in shared}
    children = typing.get_type_hints(cls) if cls is not None else {}
    result = dict(base)
    for key, value in top.items():
        child = children.get(key)
        child = child if isinstance(child, type) and is_dataclass(child) else None
        result[key] = _merge_values(base[key], value, child) if key in base else value
    return result


def _build(cls: type[D], located: Located, path: KeyPath) -> D:
    """An instance of the dataclass `cls` from the values at `path`."""
    values: Any = located.value
    for key in path:
        values = values[key]
    component = issubclass(cls, Component)
    if component and isinstance(values, str):
        values = {"name": values}
    dotted = ".".join(path)
    if not isinstance(values, dict):
        what = "a name or a mapping" if component else "a mapping"
        raise ConfigError(f"{located.place(path)}: {dotted}: expected {what}, got {shown(values)}")
    hints = typing.get_type_hints(cls)
    known = {f.name for f in fields(cls)} - {"options"}  # type: ignore[arg-type]
    settings: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in values.items():
        here = (*path, key)
        if key not in known:
            rest[key] = value
        elif is_dataclass(hints[key]):
            settings[key] = _build(hints[key], located, here)
        else:
            settings[key] = convert(value, hints[key], f"{located.place(here)}: {'.'.join(here)}")
    if issubclass(cls, Component):
        settings.setdefault("name", cls.__dataclass_fields__["name"].default)
        settings["options"] = _options(cls, settings["name"], rest, known, located, path)
    elif rest:
        key = next(iter(rest))
        raise ConfigError(
            f"{located.place((*path, key))}: unknown key {'.'.join((*path, key))!r}{suggest(key, known)}"
        )
    instance = cls(**settings)
    for key, reason in getattr(instance, "problems", tuple)():
        here = (*path, key)
        raise ConfigError(f"{located.place(here)}: {'.'.join(here)}: {reason}")
    return instance


def _options(
    cls: type, name: str, given: Mapping[str, Any], shared: set[str], located: Located, path: KeyPath
) -> dict[str, Any]:
    """The component's own options, each of the type that its signature declares."""
    registry: Registry = cls.registry  # type: ignore[attr-defined]
    try:
        takes = registry.options(name)
    except ConfigError as error:
        raise ConfigError(f"{located.place((*path, 'name'))}: {'.'.join(path)}: {error}") from None
    options: dict[str, Any] = {}
    for key, value in given.items():
        here = (*path, key)
        where = f"{located.place(here)}: {'.'.join(here)}"
        if key not in takes:
            hint = suggest(key, {*takes, *shared})
            raise ConfigError(f"{where}: {registry.kind} {name!r} takes no option {key!r}{hint}")
        options[key] = convert(value, takes[key].annotation, where)
    missing = [o.name for o in takes.values() if o.required and o.name not in options]
    if missing:
        raise ConfigError(
            f"{located.place(path)}: {'.'.join(path)}: {registry.kind} {name!r} needs {', '.join(missing)}"
        )
    return options
