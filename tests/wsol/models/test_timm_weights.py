"""Public weights that cannot be had are one line, at once."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from wsol.errors import CheckpointError
from wsol.models import timm_network
from wsol.models.classifier.opening import open_classifier
from wsol.models.timm_network import why_out_of_reach

NAME = "mobilenetv1_100"
SMALL = "timm:test_vit"


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    for module in (constants, pytest.importorskip("huggingface_hub.file_download")):
        if hasattr(module, "HF_HUB_CACHE"):
            monkeypatch.setattr(module, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)


def without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", "http://127.0.0.1:9/{repo_id}/{revision}/{filename}"
    )


def test_a_hub_that_does_not_answer_is_said_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    without_network(monkeypatch)
    assert why_out_of_reach(NAME) == "127.0.0.1 does not answer: Connection refused"
    with (
        caplog.at_level(logging.INFO),
        pytest.raises(CheckpointError, match=r"\(127\.0\.0\.1 does not answer: Connection refused\); give a"),
    ):
        open_classifier(SMALL)
    assert not caplog.records, "the hub's own package was not asked, which tries again and again"


def test_nobody_is_asked_where_the_user_says_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    def asked(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(timm_network, "urlopen", asked)
    assert why_out_of_reach(NAME) == "HF_HUB_OFFLINE is set, and they were not downloaded before"
    with pytest.raises(CheckpointError, match=r"cannot download .*\(HF_HUB_OFFLINE is set"):
        open_classifier(SMALL)
