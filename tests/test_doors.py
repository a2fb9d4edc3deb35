"""Each package's one public door: what stands in it, and that every page imports from it alone."""

import ast
import json
import re
from importlib import import_module
from pkgutil import iter_modules

import pytest

# A program that an agent imports by itself: a module on purpose, so that it brings nothing along.
PUBLIC_MODULES = {"agentlib.probe"}
PACKAGES = {"agentlib": ".", "workbook": "notebooks"}
FENCED = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`((?:from|import) [^`\n]+)`")


def doors(root):
    """The `__init__` of each package of the project, by the package's name."""
    return {
        ".".join(path.parent.relative_to(root / base).parts): path
        for package, base in PACKAGES.items()
        for path in sorted((root / base / package).rglob("__init__.py"))
    }


def typed_exports(path):
    """The names that a door shows to a type checker, as `from module import name as name`."""
    blocks = [node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.If)]
    return sorted(
        alias.asname
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    )


def pages(root):
    """The Python code of each page that a reader sees, by where it stands."""
    for path in sorted((root / "notebooks").rglob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for number, cell in enumerate(cells):
            if cell["cell_type"] == "code":
                yield f"{path.relative_to(root)}, cell {number}", "".join(cell["source"])
    for path in [*sorted(root.glob("*.md")), *sorted((root / "notebooks").glob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        for match in [*FENCED.finditer(text), *INLINE.finditer(text)]:
            yield f"{path.name}:{text.count(chr(10), 0, match.start()) + 1}", match.group(1)


def imports_beside_doors(code):
    """What a page's code imports of the project, other than an exported name from its door."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names = [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [(node.module, alias.name) for alias in node.names]
        else:
            continue
        for module, name in names:
            whole = module if name is None else f"{module}.{name}"
            if module.partition(".")[0] not in PACKAGES or whole in PUBLIC_MODULES:
                continue
            found = import_module(module)
            if not hasattr(found, "__path__") or (name and name not in exported(found)):
                yield whole


def exported(package):
    return getattr(package, "__all__", [])


def test_what_a_door_exports_is_sorted_and_exists(root):
    for name in doors(root):
        package = import_module(name)
        names = exported(package)
        assert names == sorted(set(names)), name
        assert [each for each in names if not hasattr(package, each)] == [], name


def test_a_door_names_what_it_exports_for_types_too(root):
    for name, path in doors(root).items():
        assert typed_exports(path) == exported(import_module(name)), name


def test_no_exported_name_is_that_of_a_module_beside_it(root):
    """Else importing that module would put it in the place of the exported object."""
    same = [
        f"{name}.{each}"
        for name in doors(root)
        for each in {module.name for module in iter_modules(import_module(name).__path__)}
        & set(exported(import_module(name)))
    ]
    assert same == []


def test_pages_import_from_doors_alone(root):
    found = list(pages(root))
    assert len(found) > 400
    beside = [f"{place}: {each}" for place, code in found for each in imports_beside_doors(code)]
    assert beside == []


@pytest.mark.parametrize(
    ("code", "beside"),
    [
        ("from agentlib import Catalog, probe\nimport agentlib\nfrom workbook import table", []),
        ("from agentlib.gate import Check", ["agentlib.gate.Check"]),
        ("def late():\n    from workbook.pages.page import table", ["workbook.pages.page.table"]),
        (
            "from agentlib.conformance.dialects import tally",
            ["agentlib.conformance.dialects.tally"],
        ),
        ("import agentlib.gate as g, json", ["agentlib.gate"]),
        ("from agentlib import retry", ["agentlib.retry"]),
        ("import agentlib.probe", []),
    ],
)
def test_an_import_beside_a_door_is_found(code, beside):
    assert list(imports_beside_doors(code)) == beside
