"""Write the lock file from what pyproject.toml declares: `make lock PYTHON=python3.11`.

pip resolves the declared packages, and what they bring, at the newest versions that run on the
oldest Python of all that the project supports (3.11.0: a distribution may ship an early patch
release). The lock file then names each with its version, and nothing else. It changes where a newer
version was published since, or where pyproject.toml declares something else, and else not.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "binder" / "requirements.txt"

HEAD = """\
# The one lock file: make, CI and Binder install from it. Plain pins, written by `make lock`.
"""


def normal(name: str) -> str:
    """The name of a distribution as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(project: dict) -> dict[str, list[str]]:
    """What pyproject.toml declares: the requirements of each group, the core first."""
    return {"core": project["dependencies"], **project["optional-dependencies"]}


def resolved(requirements: list[str], python: str) -> dict[str, str]:
    """The pins that the requirements come to, by normal name; installs nothing."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"),
                *("--python-version", f"{python}.0", "--only-binary", ":all:"),
                *("--target", folder, "--report", str(report)),
                *requirements,
            ],
            check=True,
        )
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    pins = [f"{each['metadata']['name']}=={each['metadata']['version']}" for each in found]
    return {normal(pin.partition("==")[0]): pin for pin in pins}


def laid_out(groups: dict[str, list[str]], pins: dict[str, str]) -> str:
    """The text of the lock file: what each group declares, then what all of those bring along."""
    left = dict(pins)
    lines = [HEAD]
    for group, requirements in groups.items():
        names = sorted(normal(re.split(r"[^\w.-]", each, maxsplit=1)[0]) for each in requirements)
        lines += [f"# {group}\n", *(left.pop(name) + "\n" for name in names), "\n"]
    lines += ["# what those bring along\n", *(pin + "\n" for _, pin in sorted(left.items()))]
    return "".join(lines)


def main() -> None:
    """Resolve, and write the lock file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    if oldest != f"{sys.version_info.major}.{sys.version_info.minor}":
        sys.exit(f"Lock with the oldest supported Python: make lock PYTHON=python{oldest}")

    groups = declared(project)
    pins = resolved([requirement for group in groups.values() for requirement in group], oldest)
    LOCK.write_text(laid_out(groups, pins), encoding="utf-8", newline="\n")
    print(f"wrote {LOCK.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
