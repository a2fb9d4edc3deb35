"""Run notebooks in place and leave nothing volatile in them: `make notebooks`.

Without arguments every chapter and every solution is run; else the notebooks named. What stays
in the file is what a reader and nbval compare: the cells, their counts and their outputs. Times,
versions, and the identity of a live widget (a model ID, its state) are different in every run
and do not stay; a widget's text and HTML forms do.

A notebook with a cell that fails is reported with its traceback, and its file left as it was.
"""

import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, DeadKernelError
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("notebooks", "notebooks/solutions")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
CELL_SECONDS = 60

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def without_volatile(notebook: NotebookNode) -> NotebookNode:
    """The same notebook less what another run would change; changes it in place."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        for key in ("execution", "ExecuteTime", "collapsed", "scrolled"):
            cell.metadata.pop(key, None)
        for output in cell.get("outputs", ()):
            if len(output.get("data", ())) > 1:
                output.data.pop(WIDGET_VIEW, None)
            if "metadata" in output:
                output.metadata.pop(WIDGET_VIEW, None)
    return notebook


def execute(notebook: NotebookNode, folder: Path) -> None:
    """Run every cell of a notebook in this environment, in place.

    Raises CellControlSignal where a cell fails or takes too long, DeadKernelError where the kernel
    ends.
    """
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    os.environ["AGENTLIB_PROGRESS"] = "off"
    NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],
        store_widget_state=False,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    ).execute()


def run(path: Path) -> None:
    """Run one notebook in its own folder and write it back, normalised."""
    notebook = nbformat.read(path, as_version=4)
    execute(notebook, path.parent)
    text = nbformat.writes(without_volatile(notebook), version=4)
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8", newline="\n")


def main(names: list[str]) -> int:
    """Run the notebooks named, or all; the number that failed."""
    paths = [Path(name).resolve() for name in names] or [
        path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.ipynb"))
    ]
    failed = 0
    for path in paths:
        start = time.perf_counter()
        print(f"{os.path.relpath(path, ROOT)} ... ", end="", flush=True)
        try:
            run(path)
        except (CellControlSignal, DeadKernelError) as failure:
            failed += 1
            print(f"failed\n{failure}")
        else:
            print(f"{time.perf_counter() - start:.1f} s")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
