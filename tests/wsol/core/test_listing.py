"""`wsol list` reads the source; the registries import it. Both say the same, and the list is quick."""

from __future__ import annotations

import subprocess
import sys

import pytest

from wsol.listing import ListedComponent, _asked, list_components
from wsol.registry import REGISTRIES


@pytest.mark.parametrize("kind", REGISTRIES)
def test_the_source_says_what_the_registry_holds(kind: str) -> None:
    def by_name(found: ListedComponent) -> str:
        return found.name

    entries = REGISTRIES[kind].entries()
    # Other tests in this process may have registered components of their own.
    own = [c for c in _asked(REGISTRIES[kind]) if not entries[c.name].factory.__module__.startswith("tests.")]
    assert sorted(list_components(kind), key=by_name) == sorted(own, key=by_name)


def test_the_list_imports_no_torch() -> None:
    code = "import sys; from wsol.cli import main; main(['list']); sys.exit('torch' in sys.modules)"
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for word in ("HEADS", "  cam ", "ATTENTIONS", "  gpca ", "PROTOCOLS", "  wsoleval-v2 ", "METRICS"):
        assert word in listed
