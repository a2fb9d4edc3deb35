"""What `make frameworks` writes: RESULTS.md, and a chart of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from agentlib.attack.scenario import HELD_OPEN, USAGE_TWICE, Scenario
from agentlib.attack.scenarios import HOSTILE

Known = Mapping[str, Any]
Titles = Mapping[str, str]
API_TITLES = {"responses": "Responses", "chat": "Chat Completions"}
# What may run, or ask for other arguments by a liberty that a server may take: no harm in a sum.
LIVELY = (HELD_OPEN, USAGE_TWICE, "empty-arguments")
COUNTED = tuple(each for each in HOSTILE if each.name not in LIVELY)

HEAD = """\
# What published frameworks do with unsound streams

Written by `make frameworks`; what was measured stands in `results.json`. Each framework was given
the streams of `agentlib attack`, in its own environment, with the versions that its folder pins.

![{alt}](results.svg)

## How to read this

- **What was seen, with defaults, on that version.** Each agent is the few lines that the
  framework's own documentation starts with; nothing is set but streaming. Another version, another
  setting or another wrapper can do otherwise.
- A tool *ran* where the function itself was entered, as `agentlib.probe` noted. *Altered* says that
  it was given other arguments than those of the good call.
- A stream that must not run a tool is one that never completed, said that it failed, or contradicts
  itself. Not every framework sets out to refuse these, and **some leniency is deliberate**: there
  are compatible servers that never send a finish reason, or restate nothing at the end, or send
  empty arguments for `{{}}`. A framework that serves them has to let `done-without-finish`,
  `end-restates-nothing` or `empty-arguments` pass. A tool that checks its own arguments is not
  harmed by some of the others.
- Two loops are not the library's: the openai SDK and litellm have no agent loop, and the one shown
  is that of their guides. What their dispatcher lets pass says little about the library.
- Some cells say more about the openai SDK than about the framework on it: its transport raises
  where a connection is reset, and where an event carries an `error`.
- openai-agents asks for a finish reason in Chat Completions where the address is OpenAI's own
  (`require_finish_reason` in its `models/openai_chatcompletions.py`). Here the address is a local
  one, and it does not: its `cut-after-item-done` and `done-without-finish` show that.
- *No, raised* means that the process ended with an error; *no, told the model* that it
  asked again, with what went wrong; *no, ended* that the run ended without either.
- In the two scenarios that fall silent, the connection is reset after 15 seconds. The read
  time-out of most clients is longer: who *raised* there did so at the reset, and what it makes of
  its own time-out was not seen. *Not measured* says that the scenario is newer than the run.
- A dash says that the scenario has no form for this tool: a strict schema requires every argument,
  so that there is no default to fall back on; another allows arguments that it does not name.
- *Let go of a held connection*: the response had completed, and the server kept the connection
  open. *Not within* says that the run still waited for its end when its time was over; the tool
  had not run by then. In Chat Completions `[DONE]` ends the wait.
- *Usage told again*: whether the run's output shows usage that came in every chunk added up. Most
  agents print none.
"""
REPEAT = """\
## Repeat one cell

After `make frameworks ARGS=langchain`, which makes the environment:

```sh
agentlib attack --tool edit --tool reset --only cut-in-last-value -- \\
    benchmarks/frameworks/.venv/langchain/bin/python benchmarks/frameworks/langchain/agent.py chat
```

smolagents wants `--final-tool final_answer` besides, and the openai SDK `--tool edit` alone.
"""


def report(known: Known, titles: Titles) -> str:
    """Return RESULTS.md: versions, safety beside liveness, and every cell."""
    parts = [
        HEAD.format(alt=_alt(known, titles)),
        _versions(known, titles),
        _summary(known, titles),
    ]
    parts += [_matrix(known, titles, api) for api in API_TITLES]
    return "\n".join([*parts, REPEAT])


def _table(*rows: tuple[str, ...]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:], ""])


def _versions(known: Known, titles: Titles) -> str:
    rows = [("framework", "pins", "measured on", "Python")]
    missing = []
    for name in titles:
        if name not in known or known[name]["problem"]:
            missing.append(f"- {titles[name]}: {known.get(name, {}).get('problem', 'not run')}")
            continue
        told = known[name]
        rows.append((titles[name], ", ".join(told["pins"]), told["date"], told["python"]))
    lines = ["## Versions", "", _table(*rows)]
    if missing:
        lines += ["Not measured:", "", *missing, ""]
    return "\n".join(lines)


def _columns(known: Known, titles: Titles) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for name, api, told in _attacks(known, titles):
        if not told["invalid"]:
            yield name, api, told


def counts(told: Mapping[str, Any]) -> Counter[str]:
    """Return how many of the counted scenarios ended in which verdict, and were tried."""
    results = told["results"]
    found = Counter(results[each.name]["verdict"] for each in COUNTED if each.name in results)
    found["tried"] = sum(number for verdict, number in found.items() if verdict != "skipped")
    return found


def _summary(known: Known, titles: Titles) -> str:
    rows = [
        (
            "framework",
            "API",
            "good call",
            "unsound streams",
            "ran",
            "of these altered",
            "let go of a held connection",
            "usage told again",
        )
    ]
    for name, api, told in _columns(known, titles):
        count = counts(told)
        ran = count["ran"] + count["ran altered"]
        rows.append(
            (
                titles[name],
                API_TITLES[api],
                "ran once",
                str(count["tried"]),
                str(ran),
                str(count["ran altered"]),
                _held(told["results"].get(HELD_OPEN)),
                _usage(told["results"].get(USAGE_TWICE)),
            )
        )
    lines = ["## Safety beside liveness", "", _table(*rows)]
    lines += [
        f"- {titles[name]}, {API_TITLES[api]}: {told['invalid']}"
        for name, api, told in _attacks(known, titles)
        if told["invalid"]
    ]
    return "\n".join([*lines, ""])


def _attacks(known: Known, titles: Titles) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for name in titles:
        apis = known.get(name, {}).get("apis", {})
        yield from ((name, api, apis[api]) for api in API_TITLES if api in apis)


def _held(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return ""
    held = cell["held"] or 0
    return f"not within {held} s" if cell["verdict"] == "hung" else f"after {held} s"


def _usage(cell: Mapping[str, Any] | None) -> str:
    return "" if cell is None else {"more than once": "added up"}.get(cell["usage"], cell["usage"])


def _matrix(known: Known, titles: Titles, api: str) -> str:
    columns = [(name, told) for name, at, told in _columns(known, titles) if at == api]
    rows = [("scenario", *(titles[name] for name, _ in columns))]
    for scenario in HOSTILE:
        if api in scenario.apis:
            cells = (_cell(scenario, told["results"].get(scenario.name)) for _, told in columns)
            rows.append((f"`{scenario.name}`", *cells))
    return "\n".join([f"## {API_TITLES[api]}", "", _table(*rows)])


def _cell(scenario: Scenario, cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return "not measured"
    if cell["verdict"] == "skipped":
        return "–"
    if cell["verdict"] in ("ran", "ran altered"):
        times = len(cell["executed"])
        return f"**{cell['verdict']}**{f' ×{times}' if times > max(1, scenario.may_run) else ''}"
    if cell["verdict"] == "crashed" and cell["raised"]:
        return "no, raised"
    if cell["verdict"] != "safe":
        return str(cell["verdict"])
    if cell["executed"]:
        return "ran, as it may"
    if cell["raised"]:
        return "no, raised"
    return "no, told the model" if cell["returned"] or cell["requests"] > 1 else "no, ended"


# ---------------------------------------------------------------------------------- the chart

_ROW, _LEFT, _WIDTH, _TOP = 26, 330, 520, 74
_KINDS = (
    ("ran", "ran", "#b3541e"),
    ("ran altered", "ran with altered arguments", "#7a1f4b"),
    ("other", "did not run", "#c9d3d8"),
)


def chart(known: Known, titles: Titles) -> str:
    """Return a bar for each framework and API: how many unsound streams ran the tool, as SVG."""
    columns = list(_columns(known, titles))
    height = _TOP + _ROW * len(columns) + 16
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 70} {height}" '
            'role="img" aria-labelledby="title desc" font-family="system-ui, sans-serif" '
            'font-size="13">'
        ),
        '<title id="title">Unsound streams in which the tool ran, by framework</title>',
        f'<desc id="desc">{escape(_alt(known, titles))}</desc>',
        (
            "<defs><pattern id='stripes' width='6' height='6' patternUnits='userSpaceOnUse' "
            "patternTransform='rotate(45)'><rect width='6' height='6' fill='#7a1f4b'/>"
            "<rect width='2' height='6' fill='#fff'/></pattern></defs>"
        ),
        '<rect width="100%" height="100%" fill="#fff"/>',
        (
            '<text x="12" y="24" font-size="16" font-weight="600">'
            "Unsound streams in which the tool ran</text>"
        ),
        *_legend(),
    ]
    for place, (name, api, told) in enumerate(columns):
        parts += _bar(_TOP + place * _ROW, f"{titles[name]}, {API_TITLES[api]}", counts(told))
    return "\n".join([*parts, "</svg>\n"])


def _fill(kind: str, colour: str) -> str:
    return "url(#stripes)" if kind == "ran altered" else colour


def _legend() -> Iterator[str]:
    x = 12
    for kind, words, colour in _KINDS:
        yield f'<rect x="{x}" y="40" width="14" height="14" fill="{_fill(kind, colour)}"/>'
        yield f'<text x="{x + 20}" y="52">{words}</text>'
        x += 40 + 8 * len(words)


def _bar(y: int, label: str, count: Counter[str]) -> Iterator[str]:
    yield f'<text x="{_LEFT - 10}" y="{y + 14}" text-anchor="end">{escape(label)}</text>'
    tried = max(1, count["tried"])
    ran, altered = count["ran"], count["ran altered"]
    x = float(_LEFT)
    for (kind, _, colour), number in zip(
        _KINDS, (ran, altered, tried - ran - altered), strict=True
    ):
        width = _WIDTH * number / tried
        if number:
            yield (
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="18" '
                f'fill="{_fill(kind, colour)}" stroke="#fff"/>'
            )
        x += width
    yield f'<text x="{_LEFT + _WIDTH + 8}" y="{y + 14}">{ran + altered} of {count["tried"]}</text>'


def _alt(known: Known, titles: Titles) -> str:
    rows = []
    for name, api, told in _columns(known, titles):
        count = counts(told)
        ran = count["ran"] + count["ran altered"]
        rows.append(f"{titles[name]}, {API_TITLES[api]}: {ran} of {count['tried']}")
    return f"How many unsound streams ran the tool. {'; '.join(rows)}."
