"""Drives a real JupyterLab in Chromium: one server, and notebooks made of code cells.

It waits for conditions, never for a time to pass.
"""

import json
import os
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SERVER_FLAGS = (
    "--no-browser",
    "--allow-root",
    "--ip=127.0.0.1",
    "--port=0",
    "--IdentityProvider.token=",
    "--LabApp.expose_app_in_browser=True",
)
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "notebook-extension/tracker": {"windowingMode": "none"},
}
ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+)/")

READY = """async () => {
    await jupyterapp.restored;
    const panel = jupyterapp.shell.currentWidget;
    await panel.context.ready;
    await panel.sessionContext.ready;
}"""
# A prompt is [n]: once its cell has run.
ALL_RUN = """() => {
    const prompts = [...document.querySelectorAll(".jp-CodeCell .jp-InputPrompt")];
    return prompts.length > 0 && prompts.every((node) => /^\\[\\d+\\]:$/.test(node.textContent));
}"""
ADD_CELL = """(source) => {
    const { content, model } = jupyterapp.shell.currentWidget;
    const last = content.widgets.length;
    model.sharedModel.insertCell(last, { cell_type: "code", source });
    content.activeCellIndex = last;
    void jupyterapp.commands.execute("notebook:run-cell");
}"""
# Run code in the notebook's kernel and return what it printed.
EXECUTE = """async (code) => {
    const { kernel } = jupyterapp.shell.currentWidget.sessionContext.session;
    const future = kernel.requestExecute({ code, store_history: false });
    let printed = "";
    future.onIOPub = ({ header, content }) => {
        if (header.msg_type === "stream") printed += content.text;
        if (header.msg_type === "error") printed += `${content.ename}: ${content.evalue}`;
    };
    await future.done;
    return printed.trim();
}"""


@contextmanager
def jupyter_server(folder):
    """Start a JupyterLab of its own in `folder` (its notebooks lie there) and give its address."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JUPYTER_PREFER_ENV_PATH": "1"}
    places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    places += ("JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    for name in places:
        environment[name] = str(folder / "jupyter" / name.lower())
        Path(environment[name]).mkdir(parents=True)
    for name, values in SETTINGS.items():
        path = Path(
            environment["JUPYTERLAB_SETTINGS_DIR"], f"@jupyterlab/{name}.jupyterlab-settings"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")
    command = [sys.executable, "-m", "jupyterlab", *SERVER_FLAGS, f"--ServerApp.root_dir={folder}"]
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as server:
        reader = threading.Thread(target=lambda: all(server.stderr), daemon=True)
        try:
            address, said = None, []
            for line in server.stderr:
                said.append(line)
                if found := ADDRESS.search(line):
                    address = found[1]
                    break
            assert address, f"JupyterLab did not start:\n{''.join(said)}"
            reader.start()
            yield address
        finally:
            server.terminate()
            server.wait()
            if reader.ident:
                reader.join()


class Lab:
    """A notebook of code cells, open and run in JupyterLab. `complaints` are errors of its page."""

    def __init__(self, page, address, folder):
        self.page = page
        self.address = address
        self.folder = folder
        self.dialogs = []
        self.errors = []
        page.on("dialog", self._dialog)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _dialog(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def open(self, *cells, name="notebook"):
        """Write a notebook of these cells and open it, ready to run."""
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        nbformat.write(notebook, self.folder / f"{name}.ipynb")
        self.page.goto(f"{self.address}/lab/tree/{name}.ipynb?reset")
        self.page.wait_for_function("window.jupyterapp?.shell?.currentWidget?.context")
        self.page.evaluate(READY)

    def start(self):
        """Run all cells; return at once."""
        self.page.evaluate("() => void jupyterapp.commands.execute('notebook:run-all-cells')")

    def run(self):
        """Run all cells to their end."""
        self.start()
        self.wait()

    def wait(self):
        """Wait until every cell has run."""
        self.page.wait_for_function(ALL_RUN)

    def add_cell_and_run(self, code):
        """Add a cell at the end, run it, and wait for it."""
        self.page.evaluate(ADD_CELL, code)
        self.wait()

    def kernel(self, code):
        """Run `code` in the kernel, beside the cells, and return what it printed."""
        return self.page.evaluate(EXECUTE, code)

    def close(self):
        """Shut the notebook's kernel down, so that none is left for the next test."""
        if self.page.evaluate("() => Boolean(window.jupyterapp?.shell.currentWidget?.context)"):
            self.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.shutdown()")

    def theme(self, name):
        """Change JupyterLab's theme and wait until the page has it."""
        self.page.evaluate(
            "(theme) => jupyterapp.commands.execute('apputils:change-theme', { theme })", name
        )
        self.page.wait_for_function(
            "(name) => document.body.dataset.jpThemeName === name", arg=name
        )
