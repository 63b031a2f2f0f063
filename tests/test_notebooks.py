"""The notebooks run from top to bottom, and are committed without outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.nightly

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(notebook: Any) -> str:
    """Return all that the notebook prints."""
    return "".join(output.text for cell in code_cells(notebook) for output in cell.outputs if "text" in output)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert code_cells(notebook)
    assert not [cell for cell in code_cells(notebook) if cell.outputs or cell.execution_count is not None]


# The kernel's own processes use what Python has deprecated; a cell that fails raises.
@pytest.mark.filterwarnings("default")
def test_the_planning_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parents[1]))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(FOLDER / "planning.ipynb", as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    printed = texts(notebook)
    assert "45,522 puts refused with 2192" in printed  # as in the README
    assert "QSG1/APP1 smds/QM01 full-forecast" in printed
    assert "first forecast that full is probable" in printed
    assert "and offloading sooner    full in" in printed
    assert "larger: full in " in printed and "SETXCF START,REBUILD,STRNAME=QSG1APP1" in printed
    pictures = [
        output for cell in code_cells(notebook) for output in cell.outputs if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == 4
