"""The APIs that an attack speaks."""

from typing import Literal, TypeAlias

Api: TypeAlias = Literal["responses", "chat", "messages"]
APIS: tuple[Api, ...] = ("responses", "chat", "messages")
