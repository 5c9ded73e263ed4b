"""Runs side by side, from run folders that hold a config and scores alone."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from PIL import Image
from scipy import stats

from wsol.cli import main
from wsol.config_file import config_from_dict, dump_config
from wsol.errors import ConfigError, DataError, RunFolderError
from wsol.method_names import method_name
from wsol.records import Box, DataIndex, Sample
from wsol.registry import METRICS
from wsol.run import Run
from wsol.runs.files import write_json
from wsol.runs.folder import RunFolder
from wsol.scoring.metrics import Metric, register_metric
from wsol.scoring.scores import Evaluation, Scores, ScoresAt
from wsol.scoring.significance import Spread
from wsol.views.compare import compare_runs, mark_rows, refuse_different_images
from wsol.views.comparison import ComparedRow, Comparison
from wsol.views.comparison_formats import shown_metrics

MakeRun = Callable[..., Run]


def scores_of(figures: dict[str, float], version: int = 1) -> Scores:
    at = {
        kind: ScoresAt(threshold, figures | {"top1_loc": figures["top1_loc"] + more}, {})
        for kind, threshold, more in (("fixed", 0.2, 0), ("held_out", 0.3, 1))
    }
    return Scores(
        protocol="gpca",
        version=version,
        num_images=5794,
        view="resize",
        normalize="minmax",
        threshold_kind="fixed",
        threshold=0.2,
        figures=figures,
        intervals={},
        by_iou={},
        at=at,  # type: ignore[arg-type]
        errors={},
        per_class=(),
        no_foreground=0,
        centre_box={},
    )


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    def make(
        name: str,
        seed: int,
        top1: float,
        attention: str = "gpca",
        digest: str = "d",
        images: int = 5794,
        version: int = 1,
        **more: float,
    ) -> Run:
        folder = RunFolder(tmp_path / f"{name}-{seed}")
        folder.path.mkdir()
        config = config_from_dict(
            {
                "data": {"root": f"somewhere/{name}-{seed}"},
                "model": {"backbone": "vgg16", "drop": "adl", "attention": attention},
                "train": {"seed": seed},
            }
        )
        folder.config.write_text(dump_config(config))
        figures = {"top1_loc": top1, "gt_known_loc": 60.0, "top1_cls": 70.0, **more}
        own = {"gpca": scores_of(figures, version)}
        evaluation = Evaluation(own, images, str(folder.path), data="cub", data_digest=digest)
        write_json(folder.scores, evaluation.to_json())
        return Run(folder.path)

    return make


@pytest.fixture
def six(make_run: MakeRun) -> list[Run]:
    """GPCA 54.62, 54.97, 55.32 (54.97 +- 0.35) and SE 52.24, 52.62, 53.00 (52.62 +- 0.38)."""
    runs = [make_run("gpca", i, v) for i, v in enumerate((54.62, 54.97, 55.32))]
    return runs + [make_run("se", i, v, "se") for i, v in enumerate((52.24, 52.62, 53.00))]


def test_groups_means_and_stars(six: list[Run]) -> None:
    ours, other = compare_runs(six).rows
    assert (ours.method, other.method) == ("ADL-GPCA", "ADL-SE")
    assert ours.source == "ours, 3 runs"
    assert ours.figures["top1_loc"].mean == pytest.approx(54.97)
    assert ours.figures["top1_loc"].std == pytest.approx(0.35)
    assert other.p["top1_loc"] == pytest.approx(0.0014, abs=5e-5)
    assert other.significant("top1_loc")
    assert not other.significant("gt_known_loc"), "equal figures do not differ"
    assert "top1_loc" in ours.best
    assert "top1_loc" not in other.best


def test_formats(six: list[Run], tmp_path: Path) -> None:
    found = compare_runs(six)
    assert "*: p < 0.05 against ADL-GPCA (vgg16)" in found.caption
    found = replace(found, caption="protocol gpca, *: p < 0.05")
    markdown = found.to_markdown()
    assert "**54.97 ± 0.35**" in markdown
    assert "52.62 ± 0.38\\*" in markdown
    assert markdown.endswith("\n\nprotocol gpca, \\*: p < 0.05\n")
    assert str(found) == markdown
    latex = found.to_latex()
    assert r"$\boldsymbol{54.97\pm 0.35}$" in latex
    assert r"$52.62\pm 0.38^*$" in latex
    assert latex.startswith("% protocol gpca, *: p < 0.05\n")
    table = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert float(table[1]["top1_loc_p"]) == pytest.approx(0.0014, abs=5e-5)
    assert table[0]["top1_loc_n"] == "3"
    assert table[0]["protocol"] == "gpca"
    assert table[0]["data"] == "cub with 5,794 test images"
    html = found._repr_html_()
    assert "<b>54.97 ± 0.35</b>" in html
    assert "<td>52.62 ± 0.38*</td>" in html
    assert "p &lt; 0.05" in html
    found.draw(tmp_path / "new" / "c.png")
    with Image.open(tmp_path / "new" / "c.png") as picture:
        assert picture.width > 600


def test_the_page_of_a_comparison_is_one_file(six: list[Run]) -> None:
    found = compare_runs(six, published=True)
    nasty = "</script><b>x"
    found = replace(found, rows=(replace(found.rows[0], method=nasty, note=nasty), *found.rows[1:]))
    text = found.to_page()
    assert text.startswith("<!doctype html>")
    assert nasty not in text
    assert "&lt;/script&gt;&lt;b&gt;x" in text
    assert 'class="num" title="3 runs">54.97 ± 0.35</td>' in text, "published results are better"
    assert '<td class="num best"' in text
    assert 'title="3 runs, p = 0.0014 against the first row">52.62 ± 0.38*</td>' in text
    assert text.count("<tr") == 1 + len(found.rows)
    assert not re.search(r'(src|href)="(?!#|data:)', text)
    assert 'content="default-src &#39;none&#39;; img-src data:;' in text
    assert text.count('<figure class="chart dots">') == len(shown_metrics(found.rows))


def test_a_figure_is_named_after_its_format(
    six: list[Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(run.path) for run in six]
    for suffix in ("html", "svg"):
        out = tmp_path / f"c.{suffix}"
        assert main(["compare", *paths, "--format", suffix, "--out", str(out)]) == 0
        assert "ADL-GPCA" in out.read_text()
    assert main(["compare", *paths, "--format", "pdf", "--out", str(tmp_path / "c.png")]) == 2
    assert "the name of a pdf figure ends with .pdf" in capsys.readouterr().err


def test_columns_and_the_best_come_from_the_table_of_figures(make_run: MakeRun) -> None:
    before = dict(METRICS.entries())
    register_metric(
        Metric("misses", "misses", "misses", "how many are missed", lambda *_: None, higher_is_better=False)
    )
    try:
        runs = [make_run("a", 0, 50.0, misses=30.0), make_run("b", 0, 60.0, "se", misses=40.0)]
        found = compare_runs(runs)
        assert "| top-1 loc | GT-known | top-1 cls | misses |" in found.to_markdown()
        assert [sorted(row.best) for row in found.rows] == [
            ["gt_known_loc", "misses", "top1_cls"],
            ["gt_known_loc", "top1_cls", "top1_loc"],
        ]
    finally:
        METRICS.restore(before)


def test_published_beside_runs(six: list[Run]) -> None:
    printed = str(compare_runs(six, published=True))
    assert "| vgg16 | ADL-GPCA | ours, 3 runs |" in printed
    assert "GPCA paper, quoted (2018)" in printed
    assert "resnet50" not in printed, "only the backbones of the runs"
    assert "GenPromp" in printed, "which names no backbone"
    assert "published rows of other backbones are left out" in printed
    assert "do not compete" not in printed


def test_published_alone() -> None:
    rows = list(csv.DictReader(io.StringIO(compare_runs([], published=True).to_csv())))
    assert len(rows) > 40
    assert any(r["method"] == "DGDM-SRP" and r["top1_loc"] == "62.3300" for r in rows)


def test_published_of_some_backbones() -> None:
    found = compare_runs([], published=True, backbones=["mobilenet_v1"])
    assert {row.backbone for row in found.rows} == {"mobilenet_v1"}
    printed = found.to_markdown()
    assert "| mobilenet_v1 | BAS-ext | its code (2023)†‡ |" in printed
    assert "†: the threshold was chosen on the test images" in found.caption
    assert "‡: the checkpoint was chosen on the test images" in found.caption
    assert r"its code (2023)$^\dagger$$^\ddagger$" in found.to_latex()
    (row,) = [r for r in csv.DictReader(io.StringIO(found.to_csv())) if r["method"] == "BAS-ext"]
    assert (row["chosen_on_test"], row["gt_known_loc"]) == ("threshold checkpoint", "93.0400")
    with pytest.raises(ConfigError, match="nothing published for the backbone 'mobilenet'"):
        compare_runs([], published=True, backbones=["mobilenet"])
    every = compare_runs([], published=True)
    backbones = [row.backbone for row in every.rows]
    assert len(list(groupby(backbones))) == len(set(backbones)), "one backbone after the other"
    assert "CAM (vgg16), quoted by others (2016): printed with the same three figures for" in every.caption


def test_runs_with_other_held_out_images_are_compared() -> None:
    """The digest of a data set knows its `val` images; only the test images and truths must be the same."""

    def run(data: str, test: str) -> Run:
        return cast(Run, SimpleNamespace(scores=SimpleNamespace(data_digest=data), test_digest=test))

    refuse_different_images([run("a", "same"), run("b", "same")])
    refuse_different_images([run("a", ""), run("a", "")])
    for other in (run("b", "other"), run("b", "")):
        with pytest.raises(DataError, match="2 different sets of test images"):
            refuse_different_images([run("a", "same"), other])


def test_the_digest_of_test_images_ignores_the_split_of_the_others() -> None:
    box = (Box(1, 2, 3, 4),)
    samples = [Sample(f"{i}.jpg", Path(f"{i}.jpg"), 0, box, "test" if i < 2 else "train") for i in range(4)]
    whole = DataIndex("made", Path(), tuple(samples), ("a",))
    held = whole.with_samples([*samples[:3], replace(samples[3], split="val")])
    assert whole.digest() != held.digest()
    assert whole.test_digest() == held.test_digest()
    for change in ({"label": 1}, {"boxes": ()}, {"name": "x.jpg"}):
        other = whole.with_samples([replace(samples[0], **change), *samples[1:]])
        assert other.test_digest() != whole.test_digest()


def test_bad_input(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="not a run folder"):
        Run(tmp_path / "nothing")
    run = make_run("a", 0, 50.0)
    with pytest.raises(DataError, match=r"a-0: no scores under 'bas'.*--protocol bas"):
        compare_runs([run], "bas")
    with pytest.raises(ConfigError, match="the same config and the same seed"):
        compare_runs([run, make_run("copy", 0, 50.0)])
    with pytest.raises(DataError, match="2 different sets of test images"):
        compare_runs([run, make_run("b", 1, 50.0, digest="another")])
    with pytest.raises(DataError, match="no figures at the threshold 'oracle', only fixed, held_out"):
        compare_runs([run], threshold="oracle")
    with pytest.raises(ConfigError, match="nothing to compare"):
        compare_runs([])
    with pytest.raises(ConfigError, match="did you mean 'gpca'"):
        compare_runs([], "gcpa", published=True)
    run.folder.scores.unlink()
    with pytest.raises(RunFolderError, match="not evaluated yet; run `wsol evaluate"):
        compare_runs([Run(run.path)])


def test_versions_of_a_protocol_are_never_mixed(make_run: MakeRun) -> None:
    runs = [make_run("new", 0, 50.0), make_run("old", 1, 50.0, version=0)]
    with pytest.raises(
        DataError, match=r"old-1: its scores are of version 0 .* now 1.*run `wsol evaluate .*old-1"
    ):
        compare_runs(runs)


def test_a_single_run_is_a_single_figure(make_run: MakeRun) -> None:
    found = compare_runs([make_run("a", 0, 50.0)])
    assert math.isnan(found.rows[0].figures["top1_loc"].std)
    assert "50.00" in str(found)


def test_a_single_run_of_ours_is_no_published_figure(make_run: MakeRun, six: list[Run]) -> None:
    """A one-sample test takes its figure for the truth: right for what was published, not for one seed."""
    assert all(row.p == {} for row in compare_runs([make_run("one", 7, 50.0, "srp"), *six]).rows)
    rows = compare_runs(six, published=True).rows
    single = next(r for r in rows if r.published and r.method == "ADL" and r.figures["top1_loc"].n == 1)
    assert single.p["top1_loc"] == pytest.approx(
        float(stats.ttest_1samp([54.62, 54.97, 55.32], 52.36).pvalue), rel=1e-9
    )


def test_another_kind_of_threshold(make_run: MakeRun) -> None:
    printed = str(compare_runs([make_run("a", 0, 50.0)], threshold="held_out"))
    assert "| **51.00** |" in printed
    assert "protocol gpca at the held out threshold" in printed


def test_other_images_and_other_backbones_do_not_compete(make_run: MakeRun) -> None:
    runs = [make_run("few", i, v, images=1157) for i, v in enumerate((84.62, 84.97, 85.32))]
    found = compare_runs(runs, published=True)
    assert all(row.p == {} for row in found.rows)
    assert any(r.published and "top1_loc" in r.best for r in found.rows if r.backbone == "vgg16")
    words = "on cub with 5,794 test images, not on cub with 1,157 test images, so they do not compete"
    assert words in found.caption
    assert "p <" not in found.caption


def test_rows_of_different_backbones_are_both_best() -> None:
    rows = [
        ComparedRow("A", backbone, "ours", "d", "gpca", {"top1_loc": Spread(value, math.nan, 1)})
        for backbone, value in (("vgg16", 50.0), ("resnet50", 60.0), ("vgg16", 40.0))
    ]
    marked = Comparison(tuple(mark_rows(rows, rows[0])), "").rows
    assert [bool(row.best) for row in marked] == [True, True, False]


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
