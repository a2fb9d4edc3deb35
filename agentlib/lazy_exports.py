"""The public names of a package, each loaded from its module at first use (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_exports(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[list[str], Callable[[str], object]]:
    """Return `__all__` and `__getattr__` for a package.

    `homes` has for each module, as `import_module` takes it (".capture" for one of the package),
    the names that come from it. A name that is not among them raises AttributeError, as for any
    module.
    """
    home = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home[name], package), name)

    return sorted(home), load
