"""Views need no model: they import quickly, without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_views_import_no_torch(repository: Path) -> None:
    modules = sorted(p.stem for p in (repository / "wsol" / "views").glob("[a-z]*.py"))
    code = "import sys\n" + "\n".join(f"import wsol.views.{name}" for name in modules)
    code += "\nassert not {'torch', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=repository)
