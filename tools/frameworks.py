"""Give each published framework its own environment, attack it, and write down what was seen.

    python tools/frameworks.py                      # all of them
    python tools/frameworks.py langchain strands    # these alone; the others keep their results
    python tools/frameworks.py --report             # measure nothing, write the report anew

A framework is a folder in `benchmarks/frameworks`: `requirements.txt`, pinned, and `agent.py`, as
its own documentation writes one. What cannot be installed within INSTALL_SECONDS is listed as not
measured.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from frameworks_report import chart, report  # noqa: E402

from agentlib.attack.report import as_json  # noqa: E402
from agentlib.attack.results import Report, Result, line_of  # noqa: E402
from agentlib.attack.run_command import Ended, run_command  # noqa: E402
from agentlib.attack.runner import run_attack  # noqa: E402
from agentlib.attack.settings import Settings  # noqa: E402

FOLDER = ROOT / "benchmarks" / "frameworks"
RESULTS = FOLDER / "results.json"
INSTALL_SECONDS = 300
BOTH = ("responses", "chat")
# This changes nothing that is measured: it only keeps them from calling elsewhere at their start.
QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "AGNO_TELEMETRY": "false"}


class Framework(NamedTuple):
    """One published framework: how it is called, and which APIs its agent is run with."""

    title: str
    apis: tuple[str, ...] = BOTH
    tools: tuple[str, ...] = ("edit", "reset")
    final_tool: str | None = None
    time_out: float = 40.0


FRAMEWORKS = {
    "openai_sdk": Framework("openai SDK helpers", tools=("edit",)),
    "openai_agents": Framework("openai-agents"),
    "pydantic_ai": Framework("pydantic-ai"),
    "langchain": Framework("langchain create_agent"),
    "strands": Framework("strands-agents"),
    "agno": Framework("agno"),
    "smolagents": Framework("smolagents ToolCallingAgent", ("chat",), final_tool="final_answer"),
    "llm": Framework("llm (chain)"),
    "litellm": Framework("litellm (documented loop)", ("chat",)),
    "agent_framework": Framework("agent-framework"),
    "autogen": Framework("autogen-agentchat", ("chat",)),
    "semantic_kernel": Framework("semantic-kernel"),
    "google_adk": Framework("google-adk with LiteLlm", ("chat",), time_out=120.0),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the frameworks that are named, or all; write the results and the report."""
    parser = argparse.ArgumentParser(description="Attack published frameworks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FRAMEWORKS))
    parser.add_argument("--report", action="store_true", help="only write the report anew")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="default: 2")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in FRAMEWORKS]
    if unknown:
        parser.error(f"no framework is named {unknown[0]!r}")
    known = _known()
    for name in () if options.report else options.names or FRAMEWORKS:
        print(f"==> {name}", flush=True)
        known[name] = _measure(name, options.jobs)
        kept = {each: known[each] for each in FRAMEWORKS if each in known}
        RESULTS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    titles = {name: framework.title for name, framework in FRAMEWORKS.items()}
    (FOLDER / "RESULTS.md").write_text(report(known, titles), encoding="utf-8")
    (FOLDER / "results.svg").write_text(chart(known, titles), encoding="utf-8")
    return 0


def _known() -> dict[str, Any]:
    if not RESULTS.exists():
        return {}
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def _measure(name: str, jobs: int) -> dict[str, Any]:
    framework = FRAMEWORKS[name]
    measured: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "pins": _pins(name),
        "problem": "",
        "apis": {},
    }
    python = _environment(name)
    if python is None:
        return {**measured, "problem": f"could not be installed in {INSTALL_SECONDS} seconds"}
    for api in framework.apis:
        settings = Settings(
            framework.tools,
            api=api,  # type: ignore[arg-type]
            time_out=framework.time_out,
            jobs=jobs,
            final_tool=framework.final_tool,
        )
        command = (str(python), str(FOLDER / name / "agent.py"), api)
        made = run_attack(settings, partial(_launch, command), _say)
        measured["apis"][api] = _kept(made)
        if made.invalid:
            print(f"  invalid: {made.invalid}\n{made.controls[-1].output[-2000:]}", flush=True)
    return measured


def _launch(command: Sequence[str], environment: Mapping[str, str], time_out: float) -> Ended:
    return run_command(command, {**environment, **QUIET}, time_out)


def _say(result: Result) -> None:
    print(line_of(result), flush=True)


def _kept(made: Report) -> dict[str, Any]:
    """Return what the report needs of an attack, without what differs each time."""
    told = as_json(made)
    keys = ("verdict", "tool", "what", "executed", "requests", "retries", "history", "usage")
    return {
        "invalid": made.invalid,
        "controls": [each.verdict for each in made.controls],
        "results": {
            row["scenario"]: {
                **{key: row[key] for key in keys},
                "returned": row["returned"] is not None,
                "held": None if row["held_seconds"] is None else round(row["held_seconds"]),
                "raised": row["exit_status"] not in (0, None),
            }
            for row in told["results"]
        },
    }


def _pins(name: str) -> list[str]:
    lines = (FOLDER / name / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _environment(name: str) -> Path | None:
    """Return the Python of the framework's own environment, made where it is missing."""
    folder = FOLDER / ".venv" / name
    scripts = "Scripts" if sys.platform == "win32" else "bin"
    python = folder / scripts / "python"
    pins, done = FOLDER / name / "requirements.txt", folder / "installed.txt"
    wanted = pins.read_text(encoding="utf-8")
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return python
    venv.create(folder, with_pip=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--requirement", str(pins)]
    try:
        subprocess.run(command, check=True, timeout=INSTALL_SECONDS)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"  not installed: {type(error).__name__}", flush=True)
        return None
    # Lets `from agentlib import probe` find this checkout, and none of its requirements.
    purelib = sysconfig.get_path("purelib", "venv", {"base": str(folder)})
    Path(purelib, "agentlib.pth").write_text(f"{ROOT}\n", encoding="utf-8")
    done.write_text(wanted, encoding="utf-8")
    return python


if __name__ == "__main__":
    sys.exit(main())
