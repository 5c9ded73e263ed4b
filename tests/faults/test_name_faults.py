"""Names of runs, classes and files that a terminal, matplotlib or UTF-8 would trip over."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.evaluated_runs import make_evaluated_run
from wsol.cli import main
from wsol.views.curves import draw_curves

FORMULA = "$x_{1$"  # as mathtext it is a syntax error


def test_dollars_in_names_are_no_formula(tmp_path: Path) -> None:
    run = make_evaluated_run(tmp_path / FORMULA)
    draw_curves(
        [{"epoch": 1, "loss": 1.0}, {"epoch": 2, "loss": 0.5}], tmp_path / "curves.png", title=run.name
    )
    assert main(["compare", str(run), "--format", "png", "--out", str(tmp_path / "table.png")]) == 0
    assert (tmp_path / "table.png").is_file()


def test_dollars_in_the_names_of_classes_are_no_formula(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    from wsol.views.figure_style import new_figure, without_math

    figure: Figure = new_figure(title=FORMULA)
    axes = figure.subplots()
    axes.plot([0, 1], label=without_math(FORMULA))
    legend = axes.legend()
    figure.savefig(tmp_path / "figure.png")
    (label,) = legend.get_texts()
    assert label.get_text().replace("\\", "") == FORMULA


def test_control_characters_of_names_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], trained_once: Path, photo: Path
) -> None:
    red = "\x1b[31mred\x1b]0;title\x07"
    folder = tmp_path / red
    folder.mkdir()
    shutil.copy(photo, folder / f"{red}.jpg")
    (folder / f"bad{red}.jpg").write_bytes(b"no picture")
    assert main(["localize", str(trained_once), str(folder), "--out", str(tmp_path / "out")]) == 1
    assert main(["localize", str(tmp_path / red), str(photo), "--out", str(tmp_path / "out")]) == 2
    assert main(["evaluate", str(tmp_path / red)]) == 2
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert "\x07" not in said.out + said.err
    assert r"\x1b[31mred" in said.out
    assert r"\x1b[31mred" in said.err


def test_names_that_are_not_utf_8_are_printed_as_escapes(
    tmp_path: Path, trained_once: Path, photo: Path, repository: Path
) -> None:
    """Also where the output is strict UTF-8, as on most desktops."""
    folder = tmp_path / "photos"
    folder.mkdir()
    shutil.copy(photo, folder / os.fsdecode(b"b\xffrd.jpg"))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "wsol",
            "localize",
            str(trained_once),
            str(folder),
            "--out",
            str(tmp_path / "out"),
        ],
        cwd=repository,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert rb"b\udcffrd.jpg: " in done.stdout


@pytest.fixture
def photo(birds: Path) -> Path:
    return sorted((birds / "images").rglob("*.jpg"))[0]
