"""`wsol.serve`: a page on this machine where one drops photos."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from wsol.api.localizing import load
from wsol.errors import ConfigError
from wsol.localization.classifier_finder import ClassifierFinder
from wsol.localization.finder import Finder
from wsol.run import Run
from wsol.serving.examples import Example, examples_of_run, given_examples, painted_examples
from wsol.serving.served_model import ServedModel
from wsol.serving.server import PhotoServer

Servable: TypeAlias = Run | Finder | Path | str

PORT = 7860


def serve(
    models: Servable | Sequence[Servable],
    *,
    port: int = PORT,
    examples: Sequence[Path | str] = (),
    device: str = "auto",
) -> PhotoServer:
    """A page on this machine where one drops photos and sees boxes, heat, classes and scores.

    Returns at once; the page is there until the server is closed. It is reached from this machine alone, asks
    no other machine for anything, and keeps nothing.

    Args:
        models: one or several: a run, its folder, or what `wsol.load` or `wsol.from_classifier` gave.
        port: of the address; 0 for any that is free.
        examples: photos to click, or folders of them. By default test images of the first evaluated run, or
            else painted birds.
        device: auto, cpu or cuda.

    >>> import urllib.request, wsol
    >>> with wsol.serve("runs/demo", port=0, device="cpu") as server:
    ...     urllib.request.urlopen(server.address).status
    200
    """
    given = [models] if isinstance(models, (Run, Finder, Path, str)) else list(models)
    if not given:
        raise ConfigError("models: at least one run or classifier is needed")
    server = PhotoServer(port)
    try:
        opened = [Run(one) if isinstance(one, (Path, str)) else one for one in given]
        finders = [one if isinstance(one, Finder) else load(one, device=device) for one in opened]
        served = [ServedModel(name, finder) for name, finder in zip(_names(opened), finders, strict=True)]
        server.start(served, _examples(opened, [Path(p) for p in examples]))
    except BaseException:
        server.close()
        raise
    return server


def _names(models: Sequence[Run | Finder]) -> list[str]:
    """What the page calls each; those that would be called alike get a number."""
    names = [_name(model) for model in models]
    return [f"{name} ({i})" if names.count(name) > 1 else name for i, name in enumerate(names, start=1)]


def _name(model: Run | Finder) -> str:
    if isinstance(model, Run):
        return model.name
    return model.built.config.name if isinstance(model, ClassifierFinder) else "model"


def _examples(models: Sequence[Run | Finder], photos: Sequence[Path]) -> list[Example]:
    if photos:
        return given_examples(photos)
    runs = [model for model in models if isinstance(model, Run)]
    return next(filter(None, map(examples_of_run, runs)), None) or painted_examples()
