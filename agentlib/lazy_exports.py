"""The public names of a package, each loaded from its module at first use (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

DISTRIBUTION = "agentlib-workbook"
# Packages that the core does without, each with the extra that installs it.
EXTRAS = {
    "anywidget": "lab",
    "ipywidgets": "lab",
    "openai": "live",
    "pydantic": "decisions",
    "traitlets": "lab",
}


def lazy_exports(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[list[str], Callable[[str], object]]:
    """Return `__all__` and `__getattr__` for a package.

    `homes` has for each module, as `import_module` takes it (".capture" for one of the package),
    the names that come from it. A name that is not among them raises AttributeError, as for any
    module; one whose module needs a package that is not installed raises ModuleNotFoundError, which
    names the extra and the command that installs it.
    """
    home = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = import_module(home[name], package)
        except ModuleNotFoundError as error:
            explained = _explained(f"{package}.{name}", error)
            if explained is None:
                raise
            raise explained from error
        return getattr(module, name)

    return sorted(home), load


def _explained(name: str, error: ModuleNotFoundError) -> ModuleNotFoundError | None:
    missing = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(missing)
    if extra is None:
        return None
    command = f'pip install "{DISTRIBUTION}[{extra}]"'
    text = f"{name} needs {missing}, of the extra {extra!r}; install it with: {command}"
    return ModuleNotFoundError(text, name=missing)
