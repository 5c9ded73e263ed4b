"""Runs side by side, from run folders that hold a config and scores alone."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy import stats

from wsol.cli import main
from wsol.config_file import config_from_dict, dump_config
from wsol.errors import ConfigError, DataError, RunFolderError
from wsol.scoring.compare import RunScores, caption, group_runs, judge, method_name, published_rows
from wsol.scoring.published import published_results
from wsol.views.comparison import to_csv, to_latex, to_markdown

MakeRun = Callable[..., Path]


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    def make(
        name: str, seed: int, top1: float, attention: str = "gpca", digest: str = "d", images: int = 5794
    ) -> Path:
        folder = tmp_path / f"{name}-{seed}"
        folder.mkdir()
        config = config_from_dict(
            {
                "data": {"root": f"somewhere/{name}-{seed}"},
                "model": {"backbone": "vgg16", "drop": "adl", "attention": attention},
                "train": {"seed": seed},
            }
        )
        (folder / "config.yaml").write_text(dump_config(config))
        at = {"fixed": {"top1_loc": top1}, "held_out": {"top1_loc": top1 + 1}}
        figures = {"top1_loc": top1, "gt_known_loc": 60.0, "top1_cls": 70.0, "at": at}
        scores = {"data": "cub", "num_images": images, "data_digest": digest, "protocols": {"gpca": figures}}
        (folder / "scores.json").write_text(json.dumps(scores))
        return folder

    return make


@pytest.fixture
def six(make_run: MakeRun) -> list[Path]:
    """GPCA 54.62, 54.97, 55.32 (54.97 +- 0.35) and SE 52.24, 52.62, 53.00 (52.62 +- 0.38)."""
    runs = [make_run("gpca", i, v) for i, v in enumerate((54.62, 54.97, 55.32))]
    return runs + [make_run("se", i, v, "se") for i, v in enumerate((52.24, 52.62, 53.00))]


def test_groups_means_and_stars(six: list[Path]) -> None:
    rows = group_runs([RunScores.read(p) for p in six], "gpca")
    ours, other = judge(rows, rows[0])
    assert (ours.method, other.method) == ("ADL-GPCA", "ADL-SE")
    assert ours.source == "ours, 3 runs"
    assert ours.figures["top1_loc"].mean == pytest.approx(54.97)
    assert ours.figures["top1_loc"].std == pytest.approx(0.35)
    assert other.p["top1_loc"] == pytest.approx(0.0014, abs=5e-5)
    assert other.significant("top1_loc")
    assert not other.significant("gt_known_loc"), "equal figures do not differ"
    assert "top1_loc" in ours.best
    assert "top1_loc" not in other.best


def test_formats(six: list[Path]) -> None:
    rows = group_runs([RunScores.read(p) for p in six], "gpca")
    rows = judge(rows, rows[0])
    markdown = to_markdown(rows, "protocol gpca, *: p < 0.05")
    assert "**54.97 ± 0.35**" in markdown
    assert "52.62 ± 0.38\\*" in markdown
    assert markdown.endswith("\n\nprotocol gpca, \\*: p < 0.05\n")
    latex = to_latex(rows, "protocol gpca")
    assert r"$\boldsymbol{54.97\pm 0.35}$" in latex
    assert r"$52.62\pm 0.38^*$" in latex
    assert latex.startswith("% protocol gpca\n")
    table = list(csv.DictReader(io.StringIO(to_csv(rows, ""))))
    assert float(table[1]["top1_loc_p"]) == pytest.approx(0.0014, abs=5e-5)
    assert table[0]["top1_loc_n"] == "3"
    assert table[0]["protocol"] == "gpca"
    assert table[0]["data"] == "cub with 5,794 test images"


def test_the_command(six: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(p) for p in six]
    assert main(["compare", *names, "--published"]) == 0
    printed = capsys.readouterr().out
    assert "| vgg16 | ADL-GPCA | ours, 3 runs |" in printed
    assert "GPCA paper, quoted (2018)" in printed
    assert "resnet50" not in printed, "only the backbones of the runs"
    assert "GenPromp" in printed, "which names no backbone"
    assert "published rows of other backbones are left out" in printed
    assert "do not compete" not in printed
    assert main(["compare", *names, "--format", "png", "--out", str(tmp_path / "c.png")]) == 0
    assert (tmp_path / "c.png").stat().st_size > 5000
    assert main(["compare", *names, "--format", "latex", "--out", str(tmp_path / "t.tex")]) == 0
    assert "toprule" in (tmp_path / "t.tex").read_text()


def test_published_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--published", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) > 40
    assert any(r["method"] == "DGDM-SRP" and r["top1_loc"] == "62.3300" for r in rows)


def test_bad_input(make_run: MakeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RunFolderError, match="not a run folder"):
        RunScores.read(tmp_path / "nothing")
    run = make_run("a", 0, 50.0)
    with pytest.raises(ConfigError, match=r"no scores under 'bas'.*--protocol bas"):
        RunScores.read(run).figures("bas")
    copy = make_run("copy", 0, 50.0)
    with pytest.raises(ConfigError, match="two runs of one config and one seed"):
        group_runs([RunScores.read(run), RunScores.read(copy)], "gpca")
    foreign = make_run("b", 1, 50.0, digest="another")
    with pytest.raises(DataError, match="2 different data sets"):
        group_runs([RunScores.read(run), RunScores.read(foreign)], "gpca")
    (run / "scores.json").write_text("{")
    with pytest.raises(RunFolderError, match="damaged"):
        RunScores.read(run)
    (run / "scores.json").write_text("[]")
    with pytest.raises(RunFolderError, match="not what `wsol evaluate` writes"):
        RunScores.read(run)
    (run / "scores.json").unlink()
    assert main(["compare", str(run)]) == 2
    assert "not evaluated yet; run `wsol evaluate" in capsys.readouterr().err
    assert main(["compare"]) == 2
    assert main(["compare", "--published", "--protocol", "gcpa"]) == 2
    assert "did you mean 'gpca'" in capsys.readouterr().err


def test_a_single_run_is_a_single_figure(make_run: MakeRun) -> None:
    rows = group_runs([RunScores.read(make_run("a", 0, 50.0))], "gpca")
    assert math.isnan(rows[0].figures["top1_loc"].std)
    assert "50.00" in to_markdown(judge(rows, rows[0]), "")


def test_a_single_run_of_ours_is_no_published_figure(make_run: MakeRun, six: list[Path]) -> None:
    """A one-sample test takes its figure for the truth: right for what was published, not for one seed."""
    rows = group_runs([RunScores.read(make_run("one", 7, 50.0, "srp")), *map(RunScores.read, six)], "gpca")
    assert all(row.p == {} for row in judge(rows, rows[0]))
    published = published_rows(published_results(), {"vgg16"})
    judged = judge([rows[1], *published], rows[1])
    single = next(r for r in judged if r.method == "ADL" and r.figures["top1_loc"].n == 1)
    assert single.p["top1_loc"] == pytest.approx(
        float(stats.ttest_1samp([54.62, 54.97, 55.32], 52.36).pvalue), rel=1e-9
    )


def test_another_kind_of_threshold(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run("a", 0, 50.0)
    assert main(["compare", str(run), "--threshold", "held_out"]) == 0
    printed = capsys.readouterr().out
    assert "| **51.00** |" in printed
    assert "protocol gpca at the held out threshold" in printed
    assert main(["compare", str(run), "--threshold", "oracle"]) == 2
    assert "no figures at the threshold 'oracle', only fixed, held_out" in capsys.readouterr().err


def test_other_images_and_other_backbones_do_not_compete(make_run: MakeRun) -> None:
    paths = [make_run("few", i, v, images=1157) for i, v in enumerate((84.62, 84.97, 85.32))]
    rows = group_runs([RunScores.read(p) for p in paths], "gpca")
    rows += published_rows(published_results(), set())
    judged = judge(rows, rows[0])
    assert all(row.p == {} for row in judged)
    assert {r.backbone for r in judged if r.published and "top1_loc" in r.best} >= {"vgg16", "resnet50"}
    words = caption(judged, rows[0])
    assert "on cub with 5,794 test images, not on cub with 1,157 test images, so they do not compete" in words
    assert "p <" not in words


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ({"head": "cam"}, "CAM"),
        ({"drop": "dgdm", "attention": "se"}, "DGDM-SE"),
        ({"head": "danet", "attention": "gpca"}, "DANet-GPCA"),
    ],
)
def test_method_names(model: dict[str, str], name: str) -> None:
    assert method_name(config_from_dict({"model": model})) == name
