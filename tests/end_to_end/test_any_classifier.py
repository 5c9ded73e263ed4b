"""Boxes from a plain classifier, by Python and by the commands, on painted birds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import wsol
from tests.helpers.classifiers import SmallNet, seeded
from wsol.cli import main
from wsol.errors import ConfigError, RunFolderError
from wsol.run import Run

NETS = """
import torch
from tests.helpers.classifiers import SmallNet, seeded

def small():
    return seeded(SmallNet)

def birds():
    torch.manual_seed(0)
    return SmallNet(classes=4)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of classifiers, in which the commands run."""
    (tmp_path / "some_nets.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("given", [SmallNet, seeded, 3])
def test_what_is_no_model_is_said(given: object) -> None:
    with pytest.raises(ConfigError, match=r"is no torch.nn.Module: give the model itself"):
        wsol.from_classifier(given)  # type: ignore[arg-type]


def photos(birds: Path) -> list[Path]:
    return sorted((birds / "images").rglob("*.jpg"))[:3]


def test_a_users_model_finds_boxes_in_photos(birds: Path) -> None:
    model = seeded(SmallNet).train()
    find = wsol.from_classifier(model, "gradcam", classes=list("abcde"), image_size=32)
    found = find(photos(birds)[0], topk=2)
    assert (find.layer, find.method, len(found.found)) == ("last", "gradcam", 2)
    assert found.name in "abcde"
    assert found.overlay().size[0] > 0
    assert model.training
    one_by_one = [find(photo).box for photo in photos(birds)]
    assert [one.box for one in find.batch(photos(birds))] == one_by_one
    assert find(photos(birds)[0], class_name="c").name == "c"


def test_what_does_not_fit_is_said(here: Path) -> None:
    model = seeded(SmallNet)
    for options, said in (
        ({"classes": ["a"]}, "1 names for a classifier with 5 scores"),
        ({"method": "grad-cam"}, "unknown method 'grad-cam'; did you mean 'gradcam'"),
        ({"layer": "lost"}, "no layer 'lost'"),
        ({"threshold": 1.5}, "outside 0 to 1"),
        ({"std": (1.0, 0.0, 1.0)}, "not above 0"),
        ({"std": (1.0, 1.0)}, "not three numbers"),
        ({"weights": "net.pth"}, "load the file into your model before"),
        ({"variant": "keras"}, "load the file into your model before"),
        ({"image_size": 0}, "image_size: 0 is outside 32 to 4096"),
        ({"image_size": -5}, "image_size: -5 is outside 32 to 4096"),
    ):
        with pytest.raises(ConfigError, match=said):
            wsol.from_classifier(model, **{"image_size": 32, **options})  # type: ignore[arg-type]


def test_localize_by_command(birds: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some = [str(p) for p in photos(birds)]
    command = ["localize", "--classifier", "some_nets:small", "--image-size", "32", "--device", "cpu"]
    assert main([*command, "--method", "layercam", *some, "--out", "found"]) == 0
    assert "3 of 3 photos done" in capsys.readouterr().out
    assert len(json.loads(Path("found/boxes.json").read_text())["images"]) == 3
    # Another method into the same folder is not the same work.
    assert main([*command, "--method", "gradcam", *some, "--out", "found"]) == 2
    assert main([*command, some[0], "--layer", "lest", "--out", "other"]) == 2
    assert "did you mean 'last'" in capsys.readouterr().err
    assert main(["localize", "runs/none", some[0], "--method", "cam", "--out", "other"]) == 2
    assert "--method is for a plain classifier" in capsys.readouterr().err
    assert not Path("other").exists()


def test_a_config_file_names_a_function(birds: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("net.yaml").write_text("classifier: {name: some_nets:small, method: layercam, layer: last}\n")
    find = wsol.from_classifier("net.yaml", image_size=32, device="cpu")
    assert (find.method, find.layer) == ("layercam", "last")
    by_name = wsol.from_classifier("some_nets:small", "layercam", image_size=32, device="cpu")
    assert find(photos(birds)[0]).box == by_name(photos(birds)[0]).box
    assert wsol.from_classifier(Path("net.yaml"), "gradcam", image_size=32, device="cpu").method == "gradcam"
    command = ["evaluate", "--classifier", "net.yaml", "--image-size", "32", "--device", "cpu"]
    assert main([*command, "--data", str(birds)]) == 0
    assert Run("runs/small-layercam").scores["gpca"]["gt_known_loc"] >= 0
    capsys.readouterr()
    for text, said in (
        ("model: {backbone: tiny}", "no section `classifier`"),
        ("classifier: {name: some_nets:small}\ntrain: {epochs: 3}", "leave them out"),
        ("classifier: {name: some_nets:small, methot: cam}", "did you mean 'method'"),
    ):
        Path("net.yaml").write_text(text)
        assert main([*command, "--data", str(birds)]) == 2
        assert said in capsys.readouterr().err


def test_own_class_gives_gt_known_alone(birds: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", "--classifier", "some_nets:small", "--image-size", "32", "--device", "cpu"]
    assert main([*command, "--data", str(birds), "--method", "gradcam", "--protocol", "all"]) == 0
    said = capsys.readouterr()
    assert "knows 0 of the 4 classes" in said.err
    assert "gradcam at last, own class" in said.out
    assert "classification" not in said.out
    run = Run("runs/small-gradcam")
    figures = run.scores["gpca"].figures
    assert "gt_known_loc" in figures
    assert not {"top1_loc", "top5_loc", "top1_cls", "top5_cls"} & set(figures)
    assert run.predictions().ranks is None
    assert "ours, 1 run, own class" in str(wsol.compare([run]))
    assert main([*command, "--data", str(birds), "--method", "layercam"]) == 0
    assert main(["report", "runs/small-gradcam", "runs/small-layercam", "--out", "both.html"]) == 0
    page = Path("both.html").read_text()
    assert "small-layercam, own class" in page
    assert "GT-known over thresholds" in page
    assert "top-1 loc" not in page
    assert "<label hidden>Map of" in page
    # The maps are those of the classifier's own best class.
    find = wsol.load(run, device="cpu")
    assert find.classes[0] == "class 0"
    predictions = run.predictions()
    path = run.image_paths(predictions)[0]
    box = find(path).box
    again = wsol.localize(run, path, device="cpu").boxes[path.name][1][0].box
    assert box == again


def test_known_classes_are_measured_and_methods_stand_side_by_side(
    birds: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    classes = wsol.open_dataset(birds).classes
    (here / "names.txt").write_text("\n".join(reversed(classes)))
    command = ["evaluate", "--classifier", "some_nets:birds", "--classes", "names.txt", "--data", str(birds)]
    command += ["--image-size", "32", "--device", "cpu"]
    for method in ("cam", "gradcam"):
        assert main([command[0], f"runs/{method}", *command[1:], "--method", method]) == 0
    assert "classification, test image by resize: top-1" in capsys.readouterr().out
    cam, gradcam = Run("runs/cam"), Run("runs/gradcam")
    np.testing.assert_allclose(cam.predictions().scores, gradcam.predictions().scores, atol=1e-5)
    # Columns are in the order of the data set, the classifier's are reversed.
    find = wsol.load(cam, device="cpu")
    best = find(cam.image_paths(cam.predictions())[0])
    assert classes[int(cam.predictions().predicted[0])] == best.name
    assert main(["compare", "runs/cam", "runs/gradcam"]) == 0
    assert "| some_nets:birds | Grad-CAM |" in capsys.readouterr().out
    assert main(["report", "runs/cam", "runs/gradcam", "--out", "both.html"]) == 0
    assert main(["evaluate", "runs/cam", "--reuse", "--device", "cpu"]) == 0
    assert main([command[0], "runs/cam", *command[1:]]) == 2
    assert "not empty" in capsys.readouterr().err


def test_a_run_of_a_model_given_in_python(birds: Path, here: Path) -> None:
    find = wsol.from_classifier(SmallNet(), image_size=32)
    scores = wsol.evaluate(find, data=birds, out="run", device="cpu")
    assert 0 <= scores["gpca"]["gt_known_loc"] <= 100
    assert wsol.report("run").path.is_file()
    with pytest.raises(RunFolderError, match=r"given in Python \(<SmallNet>\)"):
        wsol.load("run")
    with pytest.raises(ConfigError, match="say where one is"):
        wsol.evaluate(find)
    with pytest.raises(ConfigError, match="only trained localizers"):
        wsol.export("run")


def test_training_a_classifier_is_refused(birds: Path, here: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to train"):
        wsol.train({"classifier": {"name": "some_nets:small"}}, "run")
