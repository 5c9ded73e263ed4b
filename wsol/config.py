"""What a run is made of: nested frozen dataclasses with defaults; `wsol.config_file` reads them from YAML.

A `Component` is a thing chosen by name, with options that `wsol.registry` knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from wsol.registry import (
    ATTENTIONS,
    BACKBONES,
    DATASETS,
    DROPS,
    HEADS,
    MAP_METHODS,
    NETWORKS,
    OPTIMIZERS,
    PROTOCOLS,
    SCHEDULES,
    TAPS,
    TRANSFORMS,
    Registry,
    suggest,
)

Problems = Iterator[tuple[str, str]]  # (field, what is wrong with it)
Flip = Literal["left-right", "both"]  # in which directions training images are flipped at random
MapKind = Literal["class", "topk", "combined"]  # what a map at test is made of: `wsol.models.class_ranking`


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
    placement: str | tuple[str, ...] = "paper"


@dataclass(frozen=True)
class Tap(Component):
    """A drop block or an attention after stages: a named placement, a stage, or a list of stages."""

    registry = TAPS
    name: str = "none"
    after: str | tuple[str, ...] = "paper"


@dataclass(frozen=True)
class Head(Component):
    """A head, and what its map at test is made of."""

    registry = HEADS
    name: str = "cam"
    maps: MapKind | None = (
        None  # of the class asked for, of the best classes, or of all; None: the head's own
    )
    topk: int | None = None  # how many of the best classes, where maps are `topk`; None for all

    @property
    def map_kind(self) -> MapKind:
        """`maps`, or what is usual for this head."""
        usual: MapKind = getattr(self.registry.get(self.name), "usual_maps", "class")
        return self.maps or usual

    def problems(self) -> Problems:
        if not self.knows_classes and self.map_kind != "class":
            yield "maps", f"{self.name} knows no classes: its one map cannot be made of several classes' maps"
        if self.topk is None:
            return
        if self.topk < 1:
            yield "topk", f"{self.topk} classes make no map: take at least 1"
        if self.map_kind != "topk":
            yield "topk", f"needs `maps: topk`, and the maps here are {self.map_kind!r}"

    @property
    def needs_labels(self) -> bool:
        """Whether it needs exactly one label for each image in training."""
        return bool(getattr(self.registry.get(self.name), "needs_labels", False))

    @property
    def knows_classes(self) -> bool:
        """Whether it tells the classes of the data set apart; see `wsol.models.heads.head.Head`."""
        return bool(getattr(self.registry.get(self.name), "knows_classes", True))

    @property
    def cut(self) -> float | None:
        """Where it cuts its raw map itself; None where thresholds do."""
        cut: float | None = getattr(self.registry.get(self.name), "cut", None)
        return cut

    @property
    def fitted(self) -> bool:
        """Whether it is fitted in one pass over the images, without labels and without gradients."""
        return bool(getattr(self.registry.get(self.name), "fitted", False))

    @property
    def guided(self) -> bool:
        """Whether it learns from the maps of another run, not from labels."""
        return bool(getattr(self.registry.get(self.name), "guided", False))


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
        try:
            self.registry.create(self.name, total=1.0, **self.options)
        except ValueError as error:
            yield "name", f"{self.name}: {error}"


@dataclass(frozen=True)
class Optimizer(Component):
    """What turns gradients into steps; learning rate and weight decay are the training's own."""

    registry = OPTIMIZERS
    name: str = "sgd"

    def problems(self) -> Problems:
        import torch  # imported here: a config without an optimizer does not need it

        try:
            groups = [{"params": [torch.nn.Parameter(torch.zeros(1))]}]
            self.registry.create(self.name, groups=groups, lr=1.0, **self.options)
        except ValueError as error:
            yield "name", f"{self.name}: {error}"


@dataclass(frozen=True)
class Rates:
    """The learning rate of each kind of parameter, as a multiple of lr. Pretrained weights use lr itself."""

    new: float = 1.0  # weights of layers that are not pretrained
    new_bias: float = 1.0  # biases of those layers
    pretrained_bias: float = 1.0
    # By the name of a parameter or of a part of the model: {raw_theta: 30, layer4: 10}. It goes first.
    named: Mapping[str, float] = field(default_factory=dict)

    def problems(self) -> Problems:
        bounds = (0, 1e4)
        yield from out_of_range(self, new=bounds, new_bias=bounds, pretrained_bias=bounds)
        for name, rate in self.named.items():
            if not 0 <= rate <= bounds[1]:
                yield "named", f"{name}: {rate} is outside 0 to {bounds[1]:g}"


@dataclass(frozen=True)
class Transform(Component):
    """A change of the training images of a batch, and perhaps of their labels."""

    registry = TRANSFORMS
    name: str = "has"

    @property
    def mixes_labels(self) -> bool:
        """Whether an image has several labels after it."""
        return bool(getattr(self.registry.get(self.name), "mixes_labels", False))

    def problems(self) -> Problems:
        try:
            grey = self.registry.taken(self.name, {"mean": (0.5, 0.5, 0.5)})
            self.registry.create(self.name, **grey, **self.options)
        except ValueError as error:
            yield "name", f"{self.name}: {error}"


@dataclass(frozen=True)
class Data(Component):
    """A data set and how its images become tensors."""

    registry = DATASETS
    name: str = "cub"
    root: Path = Path("data/CUB_200_2011")
    image_size: int = 224  # side of the square that the network sees
    resize: int = 256  # side before the random crop in training
    pad: int = 0  # pixels of black border around the resized image, before the random crop in training
    flip: Flip = "left-right"  # half of the training images; both: half of them up-down too
    val_share: float = 0.0  # of the training images of each class, held out to choose thresholds
    val_seed: int = 0
    workers: int = 2
    on_bad_image: Literal["stop", "skip"] = "stop"

    def problems(self) -> Problems:
        size = (32, 4096)
        yield from out_of_range(self, image_size=size, resize=size, val_share=(0, 0.9), workers=(0, 512))
        yield from out_of_range(self, pad=(0, self.image_size - 1))
        if self.resize < self.image_size:
            yield "resize", f"{self.resize} is smaller than image_size {self.image_size}: no crop fits"


@dataclass(frozen=True)
class Model:
    """A backbone of named stages, taps after some of them, and a head with its attention."""

    backbone: Backbone = Backbone()
    weights: str = "imagenet"  # imagenet | none | a path
    allow_missing: tuple[str, ...] = ()  # layers that the weights file may lack, by name or prefix
    drop: Drop = Drop()  # the short form of a tap
    taps: tuple[Tap, ...] = ()  # in the order in which they act, after `drop`
    head: Head = Head()
    attention: Attention = Attention()  # in the head, before the pooling


@dataclass(frozen=True)
class Train:
    """The paper's recipe is the default: SGD for 100 epochs, the rate divided by 10 at epoch 80."""

    epochs: int = 100
    batch_size: int = 32  # images of one optimizer step, over all processes and accumulated parts
    lr: float = 0.01
    optimizer: Optimizer = Optimizer()
    rates: Rates = Rates()  # multiples of lr
    weight_decay: float = 5e-4
    freeze: str | None = None  # the stage up to which the backbone stays as it was loaded
    transforms: tuple[Transform, ...] = ()  # of the batches, in the order in which they act
    schedule: Schedule = Schedule(options={"milestones": (80,), "factor": 0.1})
    clip_norm: float | None = None  # the gradient's largest norm
    accumulate: int = 1  # parts that a batch is computed in, one after the other, to save memory
    seed: int = 0
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: int | None = None  # of torch on the CPU; one for each core by default
    amp: Literal["none", "bf16", "fp16", "auto"] = "none"  # auto: bf16 where it is faster
    channels_last: bool = False
    compile: bool = False  # torch.compile: slow to start, faster after
    sync_bn: bool = False  # batch norm over the images of all processes
    validate_every: int = 1  # epochs, where data.val_share leaves images to validate on
    checkpoint_every: int | None = None  # steps, beside the checkpoint after every epoch

    def problems(self) -> Problems:
        yield from out_of_range(self, epochs=(1, 1e6), batch_size=(1, 1e6), lr=(0, 1e3), weight_decay=(0, 1))
        yield from out_of_range(self, seed=(0, 2**32 - 1), validate_every=(1, 1e6))
        if self.batch_size % self.accumulate if self.accumulate > 0 else True:
            yield "accumulate", f"a batch of {self.batch_size} does not split into {self.accumulate} parts"
        if self.clip_norm is not None and not self.clip_norm > 0:
            yield "clip_norm", f"{self.clip_norm} is not above 0"
        if self.threads is not None and self.threads < 1:
            yield "threads", f"{self.threads} is less than one thread"
        if self.checkpoint_every is not None and self.checkpoint_every < 1:
            yield "checkpoint_every", f"{self.checkpoint_every} is less than one step"
        mixing = [t.name for t in self.transforms if t.mixes_labels]
        if len(mixing) > 1:
            yield "transforms", f"{' and '.join(mixing)} both mix labels: take one of them"


@dataclass(frozen=True)
class Eval:
    protocol: str = "gpca"  # of a network `classes`, unless the config says another
    checkpoint: Literal["best", "last"] = "best"  # best: the epoch that classifies held-out images best

    @property
    def measures_boxes(self) -> bool:
        """Whether the protocol measures boxes, or classes alone."""
        return bool(PROTOCOLS.create(self.protocol).boxes)

    def problems(self) -> Problems:
        if self.protocol not in PROTOCOLS.entries():
            known = suggest(self.protocol, PROTOCOLS.entries())
            yield "protocol", f"unknown protocol {self.protocol!r}{known}"


@dataclass(frozen=True)
class Classifier:
    """A plain classifier and the method that makes its maps. It stands for `model`: nothing is trained."""

    name: str  # torchvision:NAME, timm:NAME or module:function
    method: str = "cam"
    layer: str = "auto"  # whose features the maps are made of
    weights: str = "imagenet"  # imagenet | none | a path
    variant: str | None = None  # keras, for a ResNet converted from there
    mean: tuple[float, float, float] | None = None  # of the input, RGB in [0, 1]; None for the network's own
    std: tuple[float, float, float] | None = None
    classes: tuple[str, ...] = ()  # names, where they are not ImageNet's
    table: Mapping[str, str] = field(default_factory=dict)  # the data set's class: the classifier's

    def problems(self) -> Problems:
        if self.method not in MAP_METHODS.entries():
            known = suggest(self.method, MAP_METHODS.entries())
            yield "method", f"unknown method {self.method!r}{known}"
        for key, values in (("mean", self.mean), ("std", self.std)):
            if values is not None and len(values) != 3:
                yield key, f"{list(values)} is not three numbers, for red, green and blue"
        if self.std is not None and not all(v > 0 for v in self.std):
            yield "std", f"{list(self.std)} is not above 0"


@dataclass(frozen=True)
class Refine:
    """What a guided head learns from: the maps of another run, read as pixels by `wsol.training.guides`."""

    source: Path | None = None  # a run folder, or what `wsol discover` wrote; `wsol refine` names it
    method: str = ""  # what made its maps, in words, for tables
    foreground: float = 0.5  # pixels of the stretched map above this are the object
    background: float = 0.2  # pixels below this are not; those between are undecided

    def problems(self) -> Problems:
        yield from out_of_range(self, foreground=(0, 1), background=(0, 1))
        if self.background > self.foreground:
            yield "background", f"{self.background} is above foreground {self.foreground}"


@dataclass(frozen=True)
class Network(Component):
    """A plain classifier that `wsol classify` trains, with an attention in its blocks. It stands for `model`.

    after: where attentions go: `paper` for the places of the GPCA paper, or names of modules as
    `gpca.insert_attention` takes them.
    """

    registry = NETWORKS
    name: str = "resnet50"
    weights: str = "none"  # imagenet | none | a path; the last layer is new where the classes are others
    allow_missing: tuple[str, ...] = ()  # layers that the weights file may lack, by name or prefix
    attention: Attention = Attention()
    after: str | tuple[str, ...] = "paper"


@dataclass(frozen=True)
class Config:
    """Everything that defines a run. plugins: modules that register what the rest names; see `wsol.plugins`.

    >>> config = Config.read({"model": {"backbone": "tiny", "attention": "gpca"}}, set={"train.epochs": 3})
    >>> config.model.attention.name, config.train.epochs
    ('gpca', 3)
    """

    plugins: tuple[str, ...] = ()
    data: Data = Data()
    model: Model = Model()
    train: Train = Train()
    eval: Eval = Eval()
    classifier: Classifier | None = None  # instead of a model that is trained
    refine: Refine | None = None  # what a guided head learns from
    network: Network | None = None  # instead of a model that localizes

    def problems(self) -> Problems:
        if self.network is not None:
            yield from self._problems_of_a_classifier(self.network)
            return
        if not self.eval.measures_boxes:
            yield (
                "eval.protocol",
                f"{self.eval.protocol} is for plain classifiers: set `network`, not `model`",
            )
        model = self.model
        if self.refine is not None and not model.head.guided:
            yield "model.head", f"{model.head.name} learns from labels; `refine` is for the head foreground"
        if model.head.guided and model.attention.name != "identity":
            yield "model.attention", f"the head {model.head.name} has no classes to weigh: leave this out"
        trained = {
            "model.drop": model.drop.name != "none",
            "model.taps": bool(model.taps),
            "model.attention": model.attention.name != "identity",
            "train.transforms": bool(self.train.transforms),
        }
        for key, is_set in trained.items() if model.head.fitted else ():
            if is_set:
                yield key, f"the head {model.head.name} is fitted, not trained: leave this out"
        for i, transform in enumerate(self.train.transforms):
            if transform.mixes_labels and self.model.head.needs_labels:
                yield (
                    f"train.transforms.{i}",
                    f"{transform.name} mixes the labels of images, and the head {self.model.head.name} needs "
                    "one label for each image: take another head, or leave the transform out",
                )

    def _problems_of_a_classifier(self, network: Network) -> Problems:
        if self.classifier is not None:
            yield "network", "a config has a network that is trained, or a classifier that is not, not both"
        if self.eval.measures_boxes:
            yield (
                "eval.protocol",
                f"{self.eval.protocol} measures boxes, and a plain classifier finds none: set it to classes "
                "or classes-crop",
            )
        if self.train.freeze is not None:
            yield "train.freeze", "a network that `wsol classify` trains has no named stages: leave this out"
        if self.train.sync_bn and network.attention.name != "identity":
            yield "train.sync_bn", "torch would replace the batch norms that the attentions are attached to"

    @classmethod
    def read(
        cls, source: Config | Mapping[str, Any] | Path | str, set: Mapping[str, Any] | None = None
    ) -> Config:
        """A config from a YAML file, nested values or another config, with the values of `set` on top.

        A text that is no file is the name of a config that comes with wsol: `cub/vgg16_adl_gpca`.
        """
        from wsol.config_file import config_from_dict, config_to_dict, load_config
        from wsol.shipped_configs import find_config

        if isinstance(source, (str, Path)):
            return load_config(find_config(source), set=set)
        return config_from_dict(config_to_dict(source) if isinstance(source, Config) else source, set)

    def __str__(self) -> str:
        from wsol.config_file import dump_config

        return dump_config(self)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"
