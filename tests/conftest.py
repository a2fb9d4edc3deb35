"""What all tests share: the two async backends, Chromium, and a quiet environment."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long a test may take is pytest's to say: on a busy machine hypothesis would judge the load.
settings.register_profile("agentlib", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("agentlib"), max_examples=20)
settings.load_profile("agentlib")

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LEFT_BEHIND = {
    ".git",
    ".venv",
    "__pycache__",
    ".hypothesis",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    "artifacts",
    "build",
    "dist",
}
NO_CHROMIUM = "no Chromium here (Debian: apt-get install -y chromium; or set CHROMIUM to its path)"


def find_chromium():
    """The path of a Chromium to drive, or None: CHROMIUM if set, else what PATH has."""
    names = [os.environ["CHROMIUM"]] if os.environ.get("CHROMIUM") else CHROMIUM_NAMES
    return next((path for path in map(shutil.which, names) if path), None)


def pytest_addoption(parser):
    parser.addoption(
        "--quick",
        action="store_true",
        help="leave out what is exhaustive, but for a few cases of each kind (make quick)",
    )


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--quick"):
        return
    cases = {}
    for item in items:
        if item.get_closest_marker("exhaustive"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out = set()
    for same in cases.values():
        keep = same[0].get_closest_marker("exhaustive").kwargs.get("keep", 0)
        # Spread over all of them: cases that lie side by side are often alike.
        kept = {number * len(same) // keep for number in range(min(keep, len(same)))}
        left_out |= {item for number, item in enumerate(same) if number not in kept}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


def trust_one_authority(path):
    """Let each HTTP client load one certificate: the servers of the tests speak plain HTTP."""
    try:
        import certifi
    except ModuleNotFoundError:
        return
    end = "-----END CERTIFICATE-----\n"
    first = certifi.contents().partition(end)[0]
    path.write_text(first + end, encoding="utf-8")
    os.environ["SSL_CERT_FILE"] = str(path)


def pytest_configure(config):
    # A key of the developer's own would let a notebook go online; a profile of the developer's
    # own would run in every kernel; progress of the reader's own would show in a chapter.
    os.environ.pop("OPENAI_API_KEY", None)
    os.environ["AGENTLIB_PROGRESS"] = "off"
    if config.getoption("--quick"):
        settings.load_profile("quick")
    folder = Path(tempfile.mkdtemp(prefix="agentlib-tests-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ["IPYTHONDIR"] = str(folder / "ipython")
    trust_one_authority(folder / "authority.pem")
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
        # Programs that the tests start would compile this project anew, each of them.
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"


def pytest_runtest_setup(item):
    if item.get_closest_marker("browser") is None or find_chromium() is not None:
        return
    if os.environ.get("REQUIRE_BROWSER") == "1":
        pytest.fail(f"REQUIRE_BROWSER=1, but {NO_CHROMIUM}", pytrace=False)
    pytest.skip(NO_CHROMIUM)


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
def nothing_is_left():
    """Afterwards no thread of a local server runs, and no socket is open."""
    from raw_http import leaving_nothing

    with leaving_nothing():
        yield


@pytest.fixture
def serve():
    """A function that starts local servers; afterwards nothing is left of them, nor of clients."""
    from raw_http import leaving_nothing, serving

    with leaving_nothing(), serving() as start:
        yield start


@pytest.fixture(scope="session")
def chromium():
    """The path of Chromium; for tests marked `browser`."""
    return find_chromium()


@pytest.fixture(scope="session")
def root():
    """The root of the repository."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def project_files(root):
    """Every file of the project, as git sees it: tracked, or new and not ignored."""
    if (root / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            check=True,
            capture_output=True,
        ).stdout.decode("utf-8")
        paths = {root / name for name in listed.split("\0") if name}
    else:
        paths = {
            path
            for path in root.rglob("*")
            if not any(part in LEFT_BEHIND for part in path.relative_to(root).parts)
        }
    return sorted(path for path in paths if path.is_file())


@pytest.fixture(scope="session")
def text_files(project_files):
    """The text of every file of the project that is text, by path."""
    texts = {}
    for path in project_files:
        data = path.read_bytes()
        if b"\0" not in data:
            texts[path] = data.decode("utf-8", errors="replace")
    return texts
