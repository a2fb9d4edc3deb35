"""A door without its extra: the error names what is missing and the command that installs it."""

import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement

from agentlib.lazy_exports import DISTRIBUTION, EXTRAS

NAMES = {
    "agentlib.stepper.Stepper": "anywidget",
    "agentlib.stepper.Abreast": "ipywidgets",
    "agentlib.decisions.parse_decision": "pydantic",
    "workbook.predict": "anywidget",
    "workbook.Stepper": "anywidget",
}


@pytest.mark.parametrize(("name", "missing"), NAMES.items(), ids=NAMES)
def test_a_name_whose_extra_is_not_installed_says_which_to_install(name, missing):
    package, _, last = name.rpartition(".")
    # As in an environment without them: None in sys.modules stops an import.
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({list(EXTRAS)}))\n"
        f"try:\n    from {package} import {last}\n"
        "except ModuleNotFoundError as error:\n    print(error)"
    )
    seen = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    extra = EXTRAS[missing]
    assert f"{last} needs {missing}, of the extra '{extra}'" in seen.stdout
    assert f'pip install "{DISTRIBUTION}[{extra}]"' in seen.stdout


def test_another_missing_module_is_no_extra():
    code = (
        "import sys; sys.modules['agentlib.stepper.widget'] = None\n"
        "try:\n    from agentlib.stepper import Stepper\n"
        "except ModuleNotFoundError as error:\n    print(error)"
    )
    seen = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "agentlib.stepper.widget" in seen.stdout
    assert "pip install" not in seen.stdout


def test_the_table_of_extras_is_the_projects(root):
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION
    declared = {
        Requirement(text).name: extra
        for extra, texts in project["optional-dependencies"].items()
        for text in texts
    }
    # The widget library brings this one.
    declared["traitlets"] = declared["anywidget"]
    assert {name: declared[name] for name in EXTRAS} == EXTRAS
