"""`python -m agentlib`, the same as the command `agentlib`."""

from __future__ import annotations

import sys

from agentlib.commands import main

if __name__ == "__main__":
    sys.exit(main())
