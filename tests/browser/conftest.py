"""A real JupyterLab on copies of the notebooks, and a real Chromium in front of it.

Chromium is /usr/bin/chromium, or what MINFER_CHROMIUM names. Nothing here sleeps: each wait is for something
to be seen.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from minfer_lib import model_files
from minfer_lib.lessons import notebook_copies

ROOT = Path(__file__).parents[2]
TOKEN = "minfer-test"
CHROMIUM = Path(os.environ.get("MINFER_CHROMIUM", "/usr/bin/chromium"))
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START_TIMEOUT = 90  # seconds for JupyterLab to answer
UI_TIMEOUT = 30_000  # milliseconds for anything in the page that does not wait for a kernel
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none"},  # all cells stay in the page, those far below too
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


class Server:
    """JupyterLab as a process, with its configuration, settings and log in a folder of its own."""

    def __init__(self, folder: Path):
        self.folder, self.log = folder, folder / "jupyter.log"
        shutil.copytree(ROOT / "notebooks", folder / "notebooks")
        self.work = notebook_copies.start(folder)[0].path.parent
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        for plugin, settings in SETTINGS.items():
            file = folder / "settings" / "@jupyterlab" / f"{plugin}.jupyterlab-settings"
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps(settings))
        own = {
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
            "IPYTHONDIR": "ipython",
        }
        environment = os.environ | {name: str(folder / path) for name, path in own.items()}
        environment |= {"MINFER_MODELS": str(model_files.models_dir()), "PIP_NO_INDEX": "1", "HF_HUB_OFFLINE": "1"}
        command = [
            sys.executable,
            "-m",
            "jupyterlab",
            "--no-browser",
            "--allow-root",
            "--ip=127.0.0.1",
            f"--port={self.port}",
            "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={TOKEN}",
            f"--ServerApp.root_dir={self.work}",
        ]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)

    def api(self, path: str, method: str = "GET"):
        """What the server's REST interface answers, from JSON."""
        request = urllib.request.Request(f"{self.url}/api/{path}", method=method)
        request.add_header("Authorization", f"token {TOKEN}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read() or "null")

    def wait(self) -> None:
        """Until /api/status answers."""
        end = time.monotonic() + START_TIMEOUT
        while time.monotonic() < end and self.process.poll() is None:
            try:
                self.api("status")
                return
            except OSError:
                time.sleep(0.1)  # between two looks
        self.stop()
        pytest.fail(f"JupyterLab did not start:\n{self.log.read_text()[-4000:]}")

    def end_kernels(self) -> None:
        for session in self.api("sessions"):
            self.api(f"sessions/{session['id']}", "DELETE")

    def stop(self) -> None:
        """Ends JupyterLab, which ends its kernels."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Lab:
    """One page of JupyterLab, as a person uses it. Locators are of the notebook that was opened last."""

    def __init__(self, page, server: Server):
        self.page, self.server = page, server
        self.notebook = page.locator(".jp-NotebookPanel:visible")

    def open(self, name: str) -> None:
        """Opens a notebook in a workspace of its own; returns when its kernel is ready."""
        self.page.goto(f"{self.server.url}/lab/workspaces/{Path(name).stem}/tree/{name}?reset&token={TOKEN}")
        self.notebook.locator(".jp-Cell").first.wait_for()
        self.page.wait_for_function(  # the kernel says that it is idle, and the page has heard it
            """async ([name, token]) => {
                const answer = await fetch('/api/sessions', {headers: {Authorization: `token ${token}`}});
                const session = (await answer.json()).find(s => s.path === name);
                return session?.kernel.execution_state === 'idle' && session.kernel.connections > 0;
            }""",
            arg=[name, TOKEN],
            polling=100,
        )
        self.page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()

    def run_all(self) -> None:
        """Run > Run All Cells; returns when the first cell is under way."""
        self.page.locator(".lm-MenuBar-item", has_text=re.compile("^Run$")).click()
        self.page.locator(".lm-Menu-item", has_text=re.compile("^Run All Cells$")).click()
        self.notebook.locator(".jp-InputPrompt", has_text=re.compile(r"\[[*\d]+\]")).first.wait_for()

    def wait_idle(self, timeout: float = 120) -> None:
        """Until no cell waits or runs any more, in seconds."""
        self.page.wait_for_function(
            """() => {
                const shown = [...document.querySelectorAll('.jp-NotebookPanel')].find(p => p.offsetParent !== null);
                const prompts = [...shown.querySelectorAll('.jp-InputPrompt')].map(p => p.textContent);
                const status = shown.querySelector('.jp-Notebook-ExecutionIndicator').dataset.status;
                return status === 'idle' && !prompts.some(p => p.includes('[*]'));
            }""",
            timeout=timeout * 1000,
        )

    def errors(self) -> list[str]:
        """The texts of all red boxes that tell of an error, and of widgets that could not be shown."""
        red = self.notebook.locator('[data-mime-type="application/vnd.jupyter.stderr"]').all_inner_texts()
        broken = self.notebook.locator(".jupyter-widgets-error-widget").all_inner_texts()
        return [text for text in red if re.search("Error|Exception|Traceback", text)] + broken

    def not_run(self) -> list[str]:
        """The sources of code cells that have no execution number."""
        cells = self.notebook.locator(".jp-CodeCell").all()
        return [
            source
            for cell in cells
            if (source := cell.locator(".jp-InputArea-editor .cm-content").inner_text().strip())
            and not re.search(r"\[\d+\]", cell.locator(".jp-InputPrompt").inner_text())
        ]

    def cell(self, number: int):
        """The number-th cell, from 0."""
        return self.notebook.locator(".jp-Cell").nth(number)

    def widget(self, css_class: str):
        """A widget by a class that the notebook gave it."""
        return self.notebook.locator(f".{css_class}")

    def screenshot(self, path: str | Path) -> None:
        self.page.screenshot(path=path)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("lab"))
    try:
        server.wait()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    if not CHROMIUM.exists():
        pytest.fail(f"There is no {CHROMIUM}. Install Chromium, or name one in MINFER_CHROMIUM.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=CHROMIUM_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def lab(chromium, server, request, tmp_path):
    """A Lab on a fresh page. When its test fails, a screenshot lies in the test's temporary folder."""
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(UI_TIMEOUT)
    failed_before = request.session.testsfailed
    yield Lab(page, server)
    if request.session.testsfailed > failed_before:
        page.screenshot(path=tmp_path / "failed.png", full_page=True)
        print(f"screenshot: {tmp_path / 'failed.png'}")
    page.close()
    server.end_kernels()
