"""Binder: the files that it reads, and the image that it would build from them."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest


def find_repo2docker():
    """The path of repo2docker: REPO2DOCKER if set, else beside this Python, else on PATH."""
    beside = Path(sys.executable).parent / "repo2docker"
    names = [os.environ.get("REPO2DOCKER"), str(beside), "repo2docker"]
    return next((path for path in map(shutil.which, filter(None, names)) if path), None)


@pytest.fixture(scope="module")
def binder(root):
    return root / "binder"


def test_only_the_files_that_do_not_silence_each_other(root, binder):
    names = {path.name for path in binder.iterdir()}
    assert names == {"runtime.txt", "requirements.txt", "postBuild"}
    assert not (root / ".binder").exists()


def test_the_runtime_is_two_parts_and_supported(root, binder):
    found = re.fullmatch(r"python-(3)\.(\d+)\n", (binder / "runtime.txt").read_text("utf-8"))
    assert found, "python-3.12: two parts only"
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    oldest = tuple(map(int, project["requires-python"].removeprefix(">=").split(".")))
    assert tuple(map(int, found.groups())) >= oldest


def test_the_pins_are_the_one_lock_file(root, binder):
    """There is no second list: set-up and CI install the file that Binder reads."""
    others = [
        path.name
        for pattern in ("*requirements*", "*.lock", "constraints*", "environment.y*ml", "Pipfile")
        for path in root.glob(pattern)
    ]
    assert others == []
    for script in ("tools/setup.sh", "tools/binder_steps.sh", "README.md"):
        assert "binder/requirements.txt" in (root / script).read_text("utf-8")
    lines = (binder / "requirements.txt").read_text("utf-8").splitlines()
    local = [line for line in lines if line.startswith(("-", ".", "/")) or "://" in line]
    assert local == [], "a reference out of the file would defeat Binder's cache"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no executable bit")
def test_post_build_installs_the_package_alone(binder):
    script = binder / "postBuild"
    lines = script.read_text("utf-8").splitlines()
    assert lines[0] == "#!/bin/bash"
    assert "set -euo pipefail" in lines
    assert re.fullmatch(r"pip install .*--no-deps .*-e \.", lines[-1])
    assert os.access(script, os.X_OK)


def test_the_readme_launches_the_first_notebook_and_says_what_is_a_placeholder(root):
    text = (root / "README.md").read_text("utf-8")
    found = re.search(
        r"https://mybinder\.org/v2/gh/(\w+)/agentlib/HEAD\?urlpath=lab/tree/(\S+?)\)", text
    )
    assert found
    assert (root / found[2]).is_file()
    if found[1] == "OWNER":
        assert "`OWNER` is a placeholder" in text


@pytest.mark.skipif(find_repo2docker() is None, reason="repo2docker is not installed")
def test_the_image_that_binder_would_build(root, binder):
    seen = subprocess.run(
        [find_repo2docker(), "--no-build", "--debug", "--user-id=1000", "--user-name=reader", "."],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    # The Dockerfile goes to one stream or the other, with the version.
    steps = [line.strip() for line in (seen.stdout + "\n" + seen.stderr).splitlines()]
    place = {
        step: next((n for n, line in enumerate(steps) if step in line), None)
        for step in (
            "COPY --chown=1000:1000 src/binder/requirements.txt",
            'pip install --no-cache-dir -r "binder/requirements.txt"',
            "COPY --chown=1000:1000 src/ ${REPO_DIR}",
            "RUN ./binder/postBuild",
        )
    }
    assert None not in place.values(), place
    order = list(place.values())
    assert order == sorted(order), "the pins are installed before the repository is copied: cached"
    version = (binder / "runtime.txt").read_text("utf-8").strip().removeprefix("python-")
    assert any(f"python={version}" in line for line in steps)
    assert not any("pip install --no-cache-dir ." in line for line in steps)
