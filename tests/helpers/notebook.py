"""Runs the code cells of a notebook in order, as Jupyter does: `python tests/helpers/notebook.py FILE.ipynb`.

The value of a cell's last line is shown: as a picture or an HTML table where it has one, else as text. One
line of JSON for each cell says what was shown.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any


def code_cells(path: Path) -> list[str]:
    cells = json.loads(path.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """The value of the last line if it is an expression, else None."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)


def show(value: Any) -> dict[str, str | int]:
    """What a notebook shows of a value: the size of its picture, its table, or its text."""
    if hasattr(value, "_repr_png_"):
        return {"png": len(value._repr_png_())}
    if hasattr(value, "_repr_html_"):
        return {"html": value._repr_html_()}
    return {} if value is None else {"text": repr(value)}


if __name__ == "__main__":
    names: dict[str, Any] = {"__name__": "__main__"}
    for source in code_cells(Path(sys.argv[1])):
        print(json.dumps(show(run_cell(source, names))), flush=True)
