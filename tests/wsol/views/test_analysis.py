"""The analysis of attention masks: numbers over seeds, files, and classes by name or label."""

from __future__ import annotations

import csv
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image

from tests.helpers.evaluated_runs import CLASSES, make_evaluated_run
from wsol.errors import ConfigError, RunFolderError
from wsol.run import Run
from wsol.runs.history import to_csv
from wsol.scoring.mask_distribution import distribution
from wsol.scoring.nll import DEFINITIONS, analyze_nll
from wsol.views.analysis import analyze_runs, find_labels, find_scalars
from wsol.views.mask_figures import draw_mask_figures, write_mask_tables


@pytest.mark.long
def test_means_over_seeds(tmp_path: Path) -> None:
    runs = [Run(make_evaluated_run(tmp_path / f"run-{seed}", seed=seed)) for seed in (0, 1)]
    for run in runs:
        images = tmp_path / f"{run.name}-images"
        assert run.config.data.root == images, "the folder of the data does not tell experiments apart"
    (row,) = analyze_runs(runs).rows
    single = [analyze_nll(run.predictions()) for run in runs]
    assert (row.method, row.backbone, row.num_runs) == ("CAM-SE", "tiny", 2)
    assert row.uniform == pytest.approx(math.log(3))
    for name in DEFINITIONS:
        sample, values = row.nll[name], [own[name] for own in single]
        assert sample is not None
        assert sample.mean == pytest.approx(np.mean(values))  # type: ignore[arg-type]
        assert sample.std == pytest.approx(np.std(values, ddof=1))  # type: ignore[arg-type]


def test_files_and_text(evaluated: Path, tmp_path: Path) -> None:
    found = analyze_runs([Run(evaluated)], ["crow", "0"], tmp_path / "out")
    assert str(found.runs[0]).endswith(f"Wrote {tmp_path / 'out'}")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "nll.csv",
        "mask_effect.csv",
        "mask_means.csv",
        "mask_histogram.csv",
        "mask_quantiles.csv",
        "mask_means.png",
        "mask_histogram.png",
        "mask_boxes.png",
        "mask_true_class.png",
    }
    with (tmp_path / "out" / "nll.csv").open(newline="") as file:
        table = {row["definition"]: row["nll"] for row in csv.DictReader(file)}
    assert list(table) == [*DEFINITIONS, "uniform"]
    assert f"{found.rows[0].nll['nll_mask'].mean:.6f}" == table["nll_mask"]  # type: ignore[union-attr]
    effect = found.runs[0].effect
    assert effect is not None
    with (tmp_path / "out" / "mask_effect.csv").open(newline="") as file:
        figures = {row["figure"]: row["value"] for row in csv.DictReader(file)}
    assert float(figures["auc"]) == pytest.approx(effect.auc, rel=1e-5)
    assert figures["kind"] == effect.kind
    text = str(found)
    assert "CAM-SE, 11 test images of 3 classes" in text
    assert effect.verdict[1:] in text
    assert "ln C = 1.099 is a guess" in text
    assert "3.4729 ± 0.2390" in text, "the paper's table"
    assert found._repr_html_().count("<table>") == 3


def test_each_run_has_a_folder_of_its_own(evaluated: Path, tmp_path: Path) -> None:
    run = Run(shutil.copytree(evaluated, tmp_path / "run"))
    found = analyze_runs([run])
    assert found.runs[0].folder == run.folder.analysis
    assert (run.folder.analysis / "nll.csv").is_file()


def test_a_run_without_attention_has_no_masks_to_show(evaluated: Path, tmp_path: Path) -> None:
    run = Run(shutil.copytree(evaluated, tmp_path / "run"))
    (run.folder.predictions_of("test", "resize") / "masks.npy").unlink()
    found = analyze_runs([run])
    assert found.rows[0].nll["nll_mask"] is None
    assert found.runs[0].effect is None
    assert len(str(found).splitlines()) == 2
    assert "has no mask over the classes" in str(found)
    assert [p.name for p in run.folder.analysis.iterdir()] == ["nll.csv"]


def test_bad_input(evaluated: Path, tmp_path: Path) -> None:
    run = Run(evaluated)
    for classes, message in (
        (["003.Grey_Gul"], r"unknown class.*003.Grey_Gull"),
        (["7"], "unknown class '7'"),
    ):
        with pytest.raises(ConfigError, match=message):
            analyze_runs([run], classes, tmp_path / "out")
    with pytest.raises(ConfigError, match="formats jpg: figures are written as png, pdf, svg"):
        analyze_runs([run], out=tmp_path / "out", formats=["png", "jpg"])
    with pytest.raises(ConfigError, match="--out is for one run"):
        analyze_runs([run, run], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    bare = Run(shutil.copytree(evaluated, tmp_path / "bare"))
    shutil.rmtree(bare.folder.predictions)
    with pytest.raises(RunFolderError, match="no predictions of test images; run `wsol evaluate"):
        analyze_runs([bare])


def test_classes_by_name_label_or_at_equal_intervals(evaluated: Path) -> None:
    predictions = Run(evaluated).predictions()
    assert find_labels(predictions, ["002.Crow", "grey gull", "0"]) == [1, 2, 0]
    assert find_labels(predictions, None) == [0, 1, 2]


def test_tables_keep_class_names_and_figures_show_readable_ones(
    evaluated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    predictions = Run(evaluated).predictions()
    found = distribution(predictions, [0, 1, 2])
    means, *_ = write_mask_tables(found, tmp_path)
    with means.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["channel", *CLASSES]
    np.testing.assert_allclose([float(r[CLASSES[1]]) for r in rows], found.means[1])
    texts: list[str] = []
    savefig = Figure.savefig

    def spy(figure: Figure, *args: Any, **settings: Any) -> None:
        texts.append(" ".join(text.get_text() for text in figure.findobj(Text)))
        savefig(figure, *args, **settings)

    monkeypatch.setattr(Figure, "savefig", spy)
    paths = draw_mask_figures(found, predictions, tmp_path, "a run", ["png", "pdf", "svg"])
    assert [p.name for p in paths[:3]] == ["mask_means.png", "mask_means.pdf", "mask_means.svg"]
    assert paths[1].read_bytes().startswith(b"%PDF")
    for path in paths[::3]:
        with Image.open(path) as picture:
            assert min(picture.size) > 300
    for text in texts[:9]:
        assert all(name in text for name in ("Blue Jay", "Crow", "Grey Gull")), text
        assert "002." not in text


def test_learned_numbers_over_training(evaluated: Path, tmp_path: Path) -> None:
    run = Run(shutil.copytree(evaluated, tmp_path / "run"))
    rows = [{"epoch": e, "loss": 1.0, "head.attention.theta1": 8.0 + e, "seconds": 1.0} for e in (1, 2, 3)]
    run.folder.metrics.write_text(to_csv(rows))
    found = analyze_runs([run])
    assert found.runs[0].scalars == {"theta1": [(1, 9.0), (2, 10.0), (3, 11.0)]}
    assert "After epoch 1 to after epoch 3: theta1 9 to 11." in str(found)
    assert (run.folder.analysis / "attention_scalars.png").is_file()


def test_learned_numbers_of_attentions_at_taps(evaluated: Path, tmp_path: Path) -> None:
    """They have no mask over the classes, but theta is followed all the same."""
    run = Run(shutil.copytree(evaluated, tmp_path / "run"))
    (run.folder.predictions_of("test", "resize") / "masks.npy").unlink()
    rows = [{"epoch": e, "loss": 1.0, "taps.stage1.theta1": 8.0 + e} for e in (1, 2)]
    run.folder.metrics.write_text(to_csv(rows))
    text = str(analyze_runs([run]))
    assert "has no mask over the classes" in text
    assert "After epoch 1 to after epoch 2: theta1 9 to 10." in text
    assert (run.folder.analysis / "attention_scalars.png").is_file()


def test_names_of_learned_numbers_stay_unique() -> None:
    row = {"epoch": 1.0, "head.attentions.0.gain": 2.0, "head.attentions.1.gain": 3.0}
    assert list(find_scalars([row])) == ["head.attentions.0.gain", "head.attentions.1.gain"]


@pytest.mark.parametrize("masks", ["some of NaN", "above 1"])
def test_masks_of_nan_and_above_1_are_analyzed(masks: str, evaluated: Path, tmp_path: Path) -> None:
    run = Run(shutil.copytree(evaluated, tmp_path / "run"))
    file = run.folder.predictions_of("test", "resize") / "masks.npy"
    values = np.load(file)
    if masks == "above 1":
        values = values * 2
    else:
        values[::3, 0] = np.nan
    np.save(file, values)
    found = analyze_runs([run])
    effect = found.runs[0].effect
    assert effect is not None
    assert effect.num_images == {"above 1": 11, "some of NaN": 8}[masks]  # one of twelve is unreadable
    text = str(found.runs[0])
    assert "nan" not in text.replace(str(run.path), "")
    assert ("(nll_mask_logit)" in text) == (masks != "above 1")
    assert (run.folder.analysis / "mask_histogram.png").is_file()


def test_the_text_says_which_images(evaluated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(shutil.copytree(evaluated, tmp_path / "run"))
    monkeypatch.setattr(Run, "predicted", lambda run, split: "test")  # as if these had been held out
    found = analyze_runs([run], split="val")
    assert "11 held-out images of 3 classes" in str(found)
    assert found.runs[0].folder == run.folder.analysis / "val"
