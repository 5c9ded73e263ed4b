"""`wsol evaluate` and `wsol analyze` on a run that was trained for a moment."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.helpers.configs import tiny_config
from tests.helpers.processes import torchrun
from tests.helpers.training import train_run
from wsol.api.comparing import analyze
from wsol.api.data import open_dataset
from wsol.api.evaluating import evaluate
from wsol.cli import main
from wsol.localization.predictions import Predictions
from wsol.run import Run
from wsol.scoring.protocols import find_protocols
from wsol.scoring.score import score_maps


@pytest.fixture
def run(small_run: Path, tmp_path: Path) -> Path:
    """A copy of the trained run, to do with what one likes."""
    return Path(shutil.copytree(small_run, tmp_path / "run"))


def test_all_protocols_in_one_table(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(run), "--protocol", "all", "--json", str(run / "copy.json")]) == 0
    printed = capsys.readouterr().out
    record = json.loads((run / "scores.json").read_text())
    assert record == json.loads((run / "copy.json").read_text())
    assert list(record["protocols"]) == [p.name for p in find_protocols(["all"])]
    for name, result in record["protocols"].items():
        assert result["protocol"] == name
        assert result["num_images"] == 20
        assert set(result["at"]) == {"fixed", "held_out", "oracle"}
        assert result["at"]["held_out"]["num_boxes"] == 4, "one training image of each class"
        assert sum(result["errors"].values()) == 20
        assert "pxap" in result, "painted birds have segmentations"
        assert len(result["per_class"]) == 4
        assert result["at"]["oracle"]["gt_known_loc"] >= result["at"]["fixed"]["gt_known_loc"]
        assert name in printed
    assert (run / "per_class.csv").read_text().count("\n") == 1 + 8 * 4
    assert sorted(p.name for p in (run / "predictions").iterdir() if p.is_dir()) == [
        "held_out-crop",
        "held_out-resize",
        "test-crop",
        "test-resize",
        "test-tencrop",
    ]
    crops = np.load(run / "predictions" / "test-tencrop" / "scores.npy")
    np.testing.assert_allclose(crops.sum(axis=1), 1, atol=1e-5)
    assert np.load(run / "predictions" / "test-crop" / "maps.npy").shape[1] == 3
    by = {name: (r["classes_by"], r["mean"]) for name, r in record["protocols"].items()}
    assert by["bas"] == ("ten crops", "classes")
    assert by["danet"] == by["bas-ext"] == ("ten crops", "images")
    assert by["gpca"] == by["adl"] == ("view", "images")
    assert "classification, by ten crops, mean over classes" in printed
    assert printed.count("classification, by ten crops:") == 1, (
        "one line, whatever the views of the protocols"
    )
    for command in ("report", "visualize"):
        assert main([command, str(run), "--protocol", "bas"]) == 0


def test_a_further_protocol_is_added(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of one checkpoint: scores stand side by side. Ten crops are made only where they are asked for."""
    assert main(["evaluate", str(run), "--held-out", "0"]) == 0
    first = json.loads((run / "scores.json").read_text())["protocols"]
    assert "ten crops" not in capsys.readouterr().err
    assert main(["evaluate", str(run), "--held-out", "0", "--protocol", "danet"]) == 0
    captured = capsys.readouterr()
    assert "danet: classes by ten crops, ten more passes of each image" in captured.err
    assert "gpca" not in captured.out, "what was asked for is printed"
    both = json.loads((run / "scores.json").read_text())["protocols"]
    assert list(both) == ["gpca", "danet"]
    assert both["gpca"] == first["gpca"]
    assert (run / "per_class.csv").read_text().count("\n") == 1 + 2 * 4
    assert main(["evaluate", str(run), "--held-out", "0"]) == 0, "and the other way round"
    assert "ten crops" not in capsys.readouterr().err
    assert json.loads((run / "scores.json").read_text())["protocols"] == both
    assert main(["report", str(run), "--protocol", "danet"]) == 0, "its maps are still there"
    config = str(run / "config.yaml")
    assert main(["train", config, "--set", "train.epochs=2", "--run-dir", str(run), "--resume"]) == 0
    assert main(["evaluate", str(run), "--held-out", "0"]) == 0
    assert list(json.loads((run / "scores.json").read_text())["protocols"]) == ["gpca"], "another checkpoint"


def test_ten_crops_are_the_mean_softmax_of_what_torchvision_cuts(run: Path) -> None:
    import torch
    from torchvision.transforms import functional

    from wsol.run import Run

    assert main(["evaluate", str(run), "--held-out", "0", "--protocol", "danet"]) == 0
    opened = Run(run)
    crops = Predictions(opened.folder.ten_crops_of("test"))
    localizer = opened.localizer("cpu")
    for row in (0, 7):
        picture = Image.open(crops.image_path(row)).convert("RGB")
        resized = functional.resize(picture, [73, 73])  # 64 * 256 / 224
        cut = torch.stack([functional.pil_to_tensor(c) for c in functional.ten_crop(resized, [64, 64])])
        with torch.inference_mode():
            expected = localizer(cut).logits.softmax(dim=1).mean(dim=0)
        np.testing.assert_allclose(crops.scores[row], expected.numpy(), atol=1e-5)
    joined = opened.predictions("test", "resize", "ten crops")
    assert joined.predicted.tolist() == crops.scores.argmax(axis=1).tolist()


def test_one_view_only_where_one_is_asked_for(run: Path) -> None:
    assert main(["evaluate", str(run), "--held-out", "0"]) == 0
    assert [p.name for p in (run / "predictions").iterdir() if p.is_dir()] == ["test-resize"]
    record = json.loads((run / "scores.json").read_text())
    assert list(record["protocols"]) == ["gpca"], "the config's protocol"
    assert set(record["protocols"]["gpca"]["at"]) == {"fixed", "oracle"}
    found = Predictions(run / "predictions" / "test-resize")
    again = score_maps(found, find_protocols(["gpca"]))["gpca"]
    assert json.loads(json.dumps(again.to_json())) == record["protocols"]["gpca"]


def test_held_out_images_are_measured_without_a_look_at_the_test_images(
    birds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert train_run(tiny_config(birds, train__epochs=1), run) == 0
    found = evaluate(run, ["gpca", "danet"], split="val", device="cpu")
    assert found.split == "val"
    assert set(found["gpca"].at) == {"fixed", "oracle"}, "they choose, so nothing was chosen for them"
    opened = Run(run)
    names = {s.name for s in open_dataset(opened.config.data).split("val")}
    assert names, "some were held out"
    assert set(opened.predictions("held_out").names) == names
    assert found.num_images == len(names)
    assert sorted(p.name for p in (run / "predictions").iterdir() if p.is_dir()) == [
        "held_out-resize",
        "held_out-tencrop",
    ]
    assert not opened.is_evaluated, "the run's own scores are those of the test images"
    again = evaluate(run, ["gpca", "danet"], split="val", reuse=True, device="cpu")
    assert again == found
    assert main(["evaluate", str(run), "--split", "val", "--reuse"]) == 0
    printed = capsys.readouterr().out
    assert f"{len(names)} val images" in printed
    assert "next:" not in printed, "pictures and reports are of test images"
    effect = analyze(run, split="val").runs[0]
    assert effect.folder == opened.folder.analysis / "val"


def test_held_out_images_must_have_been_held_out(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(run), "--split", "val"]) == 2
    assert "data.val_share" in capsys.readouterr().err
    assert main(["evaluate", str(run), "--split", "train"]) == 2
    assert "split 'train': one of test, val" in capsys.readouterr().err


def test_reuse_needs_no_model(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(run)]) == 0
    first = json.loads((run / "scores.json").read_text())
    shutil.rmtree(run / "checkpoints")
    assert main(["evaluate", str(run), "--reuse"]) == 0
    assert json.loads((run / "scores.json").read_text()) == first
    assert main(["evaluate", str(run), "--reuse", "--normalize", "ivr"]) == 0
    measured = json.loads((run / "scores.json").read_text())["protocols"]
    assert list(measured) == ["gpca", "gpca+ivr"], "a number carries what was changed of its protocol"
    assert measured["gpca+ivr"]["normalize"] == "ivr"
    assert main(["visualize", str(run), "--num", "2", "--protocol", "gpca+ivr"]) == 0, (
        "pictures know the name"
    )
    assert main(["evaluate", str(run), "--reuse", "--protocol", "adl"]) == 2
    assert "no predictions here" in capsys.readouterr().err


def test_predictions_of_another_data_set(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(run)]) == 0
    config = (run / "config.yaml").read_text()
    root = Path(config.partition("root: ")[2].splitlines()[0])
    other = Path(shutil.copytree(root, tmp_path / "birds"))
    boxes = (other / "bounding_boxes.txt").read_text().splitlines()
    number, *rest = boxes[0].split()
    boxes[0] = " ".join([number, "3.0", *rest[1:]])
    (other / "bounding_boxes.txt").write_text("\n".join(boxes) + "\n")
    assert main(["evaluate", str(run), "--reuse", "--data", str(other)]) == 2
    assert "predictions of another data set" in capsys.readouterr().err
    assert main(["evaluate", str(run), "--data", str(other), "--held-out", "0"]) == 0
    assert "is not the data that" in capsys.readouterr().err


def test_mistakes(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def error(*arguments: str) -> str:
        assert main(["evaluate", *arguments]) == 2
        captured = capsys.readouterr().err.strip().splitlines()
        assert len(captured) == 1
        return captured[0]

    assert "did you mean 'gpca'" in error(str(run), "--protocol", "gcpa")
    assert "unknown normalization 'mean'" in error(str(run), "--normalize", "mean")
    assert "outside 0 to 1" in error(str(run), "--held-out", "1.5")
    assert "batch -3 is less than 1" in error(str(run), "--batch", "-3")
    assert "not a run folder" in error(str(tmp_path / "nothing"))
    assert "no such" in error(str(run), "--data", str(tmp_path / "nowhere")).lower()
    shutil.rmtree(run / "checkpoints")
    assert "no checkpoint yet" in error(str(run))


def test_an_image_turns_unreadable(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It counts as a miss and is listed; the denominator stays."""
    config = (run / "config.yaml").read_text()
    root = Path(config.partition("root: ")[2].splitlines()[0])
    other = Path(shutil.copytree(root, tmp_path / "birds"))
    assert main(["evaluate", str(run), "--held-out", "0"]) == 0
    name = Predictions(run / "predictions" / "test-resize").names[2]
    picture = other / "images" / name
    picture.write_bytes(picture.read_bytes()[:400])  # the header is there, the pixels are not
    capsys.readouterr()
    assert main(["evaluate", str(run), "--data", str(other), "--held-out", "0"]) == 0
    record = json.loads((run / "scores.json").read_text())
    assert record["unreadable_images"] == [name]
    assert record["protocols"]["gpca"]["num_images"] == 20
    assert record["protocols"]["gpca"]["errors"]["unreadable image"] == 1
    assert name in capsys.readouterr().out


def test_nan_maps_are_flagged_and_counted(run: Path) -> None:
    assert main(["evaluate", str(run), "--held-out", "0"]) == 0
    folder = run / "predictions" / "test-resize"
    maps = np.load(folder / "maps.npy")
    flags = np.load(folder / "flags.npy")
    maps[4, 0, 0, 0] = np.nan
    flags[4] |= 4
    np.save(folder / "maps.npy", maps)
    np.save(folder / "flags.npy", flags)
    assert main(["evaluate", str(run), "--reuse", "--protocol", "gpca", "wsoleval-v2"]) == 0
    record = json.loads((run / "scores.json").read_text())
    assert len(record["not_finite_maps"]) == 1
    assert record["protocols"]["gpca"]["no_foreground"] >= 1
    assert record["protocols"]["wsoleval-v2"]["num_images"] == 20


def test_faults_of_either_view_are_listed(run: Path) -> None:
    assert main(["evaluate", str(run), "--held-out", "0", "--protocol", "gpca", "adl"]) == 0
    for view, row in (("resize", 4), ("crop", 7)):
        path = run / "predictions" / f"test-{view}" / "flags.npy"
        flags = np.load(path)
        flags[row] |= 4
        np.save(path, flags)
    assert main(["evaluate", str(run), "--reuse", "--protocol", "gpca", "adl"]) == 0
    names = Predictions(run / "predictions" / "test-resize").names
    record = json.loads((run / "scores.json").read_text())
    assert record["not_finite_maps"] == [names[4], names[7]]


def test_predictions_of_two_checkpoints_are_not_mixed(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(run), "--protocol", "gpca", "adl"]) == 0
    path = run / "predictions" / "test-crop" / "meta.json"
    meta = json.loads(path.read_text())
    path.write_text(json.dumps(meta | {"origin": "last.ckpt, epoch 5"}))
    assert main(["evaluate", str(run), "--reuse"]) == 0, "the config's protocol needs no crop"
    assert main(["evaluate", str(run), "--reuse", "--protocol", "gpca", "adl"]) == 2
    assert "test-crop is of last.ckpt, epoch 5" in capsys.readouterr().err


def test_data_without_boxes_or_test_images(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path((run / "config.yaml").read_text().partition("root: ")[2].splitlines()[0])
    other = Path(shutil.copytree(root, tmp_path / "birds"))
    split = other / "train_test_split.txt"
    split.write_text("".join(f"{line.split()[0]} 1\n" for line in split.read_text().splitlines()))
    assert main(["evaluate", str(run), "--data", str(other)]) == 2
    assert "no test images: nothing to evaluate" in capsys.readouterr().err


@pytest.mark.long
def test_two_processes_give_the_same_scores(run: Path) -> None:
    assert main(["evaluate", str(run), "--batch", "3"]) == 0
    first = json.loads((run / "scores.json").read_text())
    process = torchrun("-m", "wsol", "evaluate", run, "--batch", 3)
    printed, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    assert printed.count("classification, test image by resize") == 1, "the main process alone prints"
    assert json.loads((run / "scores.json").read_text()) == first


def test_analyze(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(run)]) == 2
    assert "run `wsol evaluate" in capsys.readouterr().err
    assert main(["evaluate", str(run), "--held-out", "0"]) == 0
    capsys.readouterr()
    assert main(["analyze", str(run)]) == 0
    printed = capsys.readouterr().out
    for word in ("nll_prediction", "nll_mask", "nll_mask_logit", "1.3863", "3.4729 ± 0.2390"):
        assert word in printed
    for name in ("nll.csv", "mask_means.png", "mask_means.csv", "mask_histogram.png", "mask_boxes.png"):
        assert (run / "analysis" / name).is_file()
    assert main(["analyze", str(run), str(run), "--out", str(run)]) == 2
    assert main(["analyze", str(run), str(run)]) == 2
    assert "the same config and the same seed" in capsys.readouterr().err


def test_analyze_a_run_without_attention(
    small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(tmp_path / "plain")
    config = str(small_run.parent / "small.yaml")
    assert main(["train", config, "--set", "model.attention=identity", "--run-dir", run]) == 0
    assert main(["evaluate", run, "--held-out", "0"]) == 0
    capsys.readouterr()
    assert main(["analyze", run]) == 0
    printed = capsys.readouterr().out
    assert "CAM has no mask over the classes before the pooling" in printed
    assert sorted(p.name for p in (tmp_path / "plain" / "analysis").iterdir()) == ["nll.csv"]


def test_analyze_chosen_classes(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(run), "--held-out", "0"]) == 0
    name = Predictions(run / "predictions" / "test-resize").classes[1]
    capsys.readouterr()
    assert main(["analyze", str(run), "--classes", "0", name, name.partition(".")[2]]) == 0
    header = (run / "analysis" / "mask_means.csv").read_text().splitlines()[0]
    assert header.split(",")[2:] == [name, name], "by number and by two spellings of a name"
    assert main(["analyze", str(run), "--classes", name[:-1]]) == 2
    assert f"did you mean '{name}'" in capsys.readouterr().err


# --- what does not belong together


def test_scores_of_one_checkpoint_beside_predictions_of_another(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Evaluated, trained on, evaluated again and killed between predictions and scores."""
    assert main(["evaluate", str(run), "--device", "cpu"]) == 0
    scores = (run / "scores.json").read_text()
    config = str(run / "config.yaml")
    assert main(["train", config, "--set", "train.epochs=2", "--run-dir", str(run), "--resume"]) == 0
    assert main(["evaluate", str(run), "--device", "cpu"]) == 0
    assert main(["report", str(run)]) == 0
    (run / "scores.json").write_text(scores)
    capsys.readouterr()
    for command in ("report", "visualize"):
        assert main([command, str(run)]) == 2
        assert "not the same checkpoint; run `wsol evaluate" in capsys.readouterr().err


def test_a_threshold_of_another_checkpoint_is_not_used_in_silence(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(run), "--device", "cpu"]) == 0
    record = json.loads((run / "scores.json").read_text())
    record["protocols"]["gpca"]["at"]["held_out"]["threshold"] = 0.77
    (run / "scores.json").write_text(json.dumps(record))
    root = Path((run / "config.yaml").read_text().partition("root: ")[2].splitlines()[0])
    photo = str(next((root / "images").rglob("*.jpg")))
    assert main(["localize", str(run), photo, "--out", str(tmp_path / "a"), "--device", "cpu"]) == 0
    assert "threshold 0.77" in capsys.readouterr().out
    config = str(run / "config.yaml")
    assert main(["train", config, "--set", "train.epochs=2", "--run-dir", str(run), "--resume"]) == 0
    capsys.readouterr()
    assert main(["localize", str(run), photo, "--out", str(tmp_path / "b"), "--device", "cpu"]) == 0
    said = capsys.readouterr()
    assert "the scores are of last.ckpt, epoch 1, the run has last.ckpt, epoch 2 now" in said.err
    assert "threshold 0.2)" in said.out


@pytest.mark.parametrize(
    "name",
    [
        *("birds #3", "123", "a: b"),
        *(pytest.param(name, marks=pytest.mark.long) for name in ("[x]", "null", "'quoted")),
    ],
)
def test_a_path_is_a_path(run: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--data` is never read as YAML."""
    root = Path((run / "config.yaml").read_text().partition("root: ")[2].splitlines()[0])
    moved = Path(shutil.copytree(root, tmp_path / name))
    assert main(["evaluate", str(run), "--data", str(moved), "--device", "cpu", "--held-out", "0"]) == 0
    here = [*("evaluate", str(run), "--data", name), *("--device", "cpu", "--reuse")]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert main(here) == 0, capsys.readouterr().err


def test_a_segmentation_of_another_size_stops_the_evaluation(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path((run / "config.yaml").read_text().partition("root: ")[2].splitlines()[0])
    moved = Path(shutil.copytree(root, tmp_path / "birds"))
    name = next(line.split()[1] for line in (moved / "images.txt").read_text().splitlines()[::-1])
    Image.new("L", (7, 5), 255).save(moved / "segmentations" / Path(name).with_suffix(".png"))
    assert main(["evaluate", str(run), "--data", str(moved), "--device", "cpu"]) == 2
    assert "7 x 5" in capsys.readouterr().err


def test_missing_segmentations_are_counted(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path((run / "config.yaml").read_text().partition("root: ")[2].splitlines()[0])
    moved = Path(shutil.copytree(root, tmp_path / "birds"))
    name = next(line.split()[1] for line in (moved / "images.txt").read_text().splitlines()[::-1])
    (moved / "segmentations" / Path(name).with_suffix(".png")).unlink()
    assert main(["evaluate", str(run), "--data", str(moved), "--device", "cpu"]) == 0
    assert "PxAP: of 19 images; the other 1 have no segmentation" in capsys.readouterr().out
    assert json.loads((run / "scores.json").read_text())["protocols"]["gpca"]["num_segmentations"] == 19
