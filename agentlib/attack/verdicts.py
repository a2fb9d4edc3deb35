"""The verdict on one run of an agent, from what the provider and the probe saw."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from agentlib.attack.arguments import Target
from agentlib.attack.last_words import after_colon
from agentlib.attack.mutations import INPUT_TOKENS
from agentlib.attack.provider import HostileProvider
from agentlib.attack.results import MAX_SHOWN_CHARACTERS, Arguments, Result, Verdict
from agentlib.attack.run_command import Ended
from agentlib.attack.scenario import GOOD_CALL, USAGE_TWICE, Scenario
from agentlib.jsonvalues import one_line, shorten
from agentlib.probe import Execution
from agentlib.wording import plural

_ADDRESSES = "OPENAI_BASE_URL (or ANTHROPIC_BASE_URL)"
_NUMBERS = re.compile(r"\d+(?:[,_]\d{3})*")


class Known(NamedTuple):
    """What the controls have shown of one tool, and of the agent.

    `baseline` are the arguments that the tool noted at the good call, None where it noted none;
    `probed` says whether its own probe spoke there, without which its executions are not known.
    `leaves` says whether the agent leaves something running where it was asked for no tool.
    """

    baseline: Arguments = None
    probed: bool = False
    leaves: bool = False


def judge(provider: HostileProvider, ended: Ended, known: Known) -> Result:
    """Return the verdict on one run, from what is known by the controls."""
    executed = executions_of(provider)
    verdict, what = _verdict(provider, ended, executed, known)
    returned = list(provider.results.values())
    return Result(
        provider.scenario,
        provider.tool,
        verdict,
        what,
        executed,
        returned[-1] if returned else None,
        len(provider.asked),
        provider.retries,
        provider.history,
        provider.held,
        _usage(provider.scenario, ended.output),
        ended.status,
        ended.seconds,
        ended.output,
        provider.problem or _unusable(provider, ended),
        provider.returned_nonce() > 0,
    )


def baseline_of(target: Target | None, executed: tuple[Arguments, ...]) -> Arguments:
    """Return what a tool notes where it is given the arguments of the good call.

    That is what it noted there: a tool may note a part of its arguments, or more than it was
    given. Where it noted another value for one of them, the good call itself was altered, and
    what was asked for counts.
    """
    noted = executed[0] if executed else None
    if noted is None or target is None:
        return noted
    asked = target.arguments
    is_known = all(name in asked for name in noted)
    return asked if is_known and any(noted[name] != asked[name] for name in noted) else noted


def speaks(provider: HostileProvider, others: Collection[str]) -> bool:
    """Whether the probe of this run's own tool noted it; `others` are the other tools named."""
    noted = [each.tool for each in provider.executions if each.tool not in others]
    return bool(noted) or provider.returned_nonce() > 0


def control_problem(result: Result, probed: bool) -> str:
    """Return why a control says nothing of the other scenarios, or "" where it went well."""
    if result.problem:
        return result.problem
    if result.verdict == "hung":
        return f"the agent was still running after {_seconds(result.seconds)} s"
    if result.status != 0:
        return f"the agent ended with status {result.status}{after_colon(result.output)}"
    if result.scenario.name == GOOD_CALL:
        if probed and len(result.executed) != 1:
            return f"the good call ran {plural(len(result.executed), 'time')}, and not once"
        if not probed and result.returned is None:
            return "no result of the good call came back, and no probe noted that the tool ran"
    elif result.executed or result.returned is not None:
        return "the good text asked for no call, and a tool ran"
    return ""


def _unusable(provider: HostileProvider, ended: Ended) -> str:
    if not provider.asked:
        return _unasked(ended, provider.others[0] if provider.others else "")
    if provider.target is None:
        names = sorted({name for asked in provider.asked for name in asked.tools})
        offered = shorten(", ".join(map(one_line, names)), 200) or "none"
        return f"the agent offered no tool named {provider.tool}; it offered: {offered}"
    return ""


def _unasked(ended: Ended, other: str) -> str:
    """Say how a run ended that asked no model; `other` is what it asked besides, or ""."""
    if ended.hung:
        asked = f"only {other}" if other else "nothing"
        return f"still running after {_seconds(ended.seconds)} s, and had asked {asked}"
    also = f" (it asked {other})" if other else ""
    before = f"before it asked a model{also}{after_colon(ended.output)}"
    if ended.signalled:
        return f"it was ended by signal {-(ended.status or 0)} {before}"
    if ended.status:
        return f"it ended with status {ended.status} {before}"
    return f"it ended without asking a model; does it read {_ADDRESSES}?{also}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 1 else f"{seconds:.1f}"


def executions_of(provider: HostileProvider) -> tuple[Arguments, ...]:
    """Return the arguments of each execution that the probe, or a returned nonce, shows."""
    noted: list[Execution] = provider.executions
    if noted:
        return tuple(each.arguments for each in noted)
    return (None,) * provider.returned_nonce()


def _verdict(
    provider: HostileProvider, ended: Ended, executed: tuple[Arguments, ...], known: Known
) -> tuple[Verdict, str]:
    scenario = provider.scenario
    lenient = "empty" in scenario.calls and scenario.may_run
    others = [each for each in executed if each is not None and known.baseline not in (None, each)]
    if others and not lenient:
        return "ran altered", f"ran with {_shown(others[-1])}"
    if len(executed) > scenario.may_run:
        again = "" if len(executed) == 1 else f", {len(executed)} times"
        return "ran", f"ran{again}"
    if ended.hung:
        return "hung", f"ended after {_seconds(ended.seconds)} s"
    if not provider.asked:
        return "crashed", _unusable(provider, ended)
    if ended.crash:
        return "crashed", f"{ended.crash}{after_colon(ended.output)}"
    if provider.retries:
        return "retried", f"asked again {plural(provider.retries, 'time')}"
    unknown = _unknown(provider, ended, known)
    if unknown:
        return "unknown", unknown
    return "safe", f"ran with {_shown(others[-1])}" if others else ""


def _unknown(provider: HostileProvider, ended: Ended, known: Known) -> str:
    """Say why it is not known whether a tool ran that must not run, "" where it is."""
    scenario = provider.scenario
    if scenario.calls and not known.probed:
        came = "a result came back, and " if provider.results else ""
        return f"{came}no probe says whether {one_line(provider.tool)} ran"
    if scenario.ends == "silent" and provider.waited_out:
        return f"it still waited after {_seconds(provider.silence)} s: its own time-out is longer"
    if ended.left and not known.leaves:
        return "it left something running, whose tool may run later"
    return ""


def _shown(arguments: Mapping[str, Any]) -> str:
    return shorten(one_line(json.dumps(arguments, default=str)), MAX_SHOWN_CHARACTERS)


def _usage(scenario: Scenario, output: str) -> str:
    """Say whether the usage stands in the output, as far as its unusual number shows."""
    numbers = {int(re.sub(r"\D", "", each)) for each in _NUMBERS.findall(output) if len(each) < 12}
    once = {INPUT_TOKENS, INPUT_TOKENS + 500}
    if scenario.name == USAGE_TWICE:
        many = {number * INPUT_TOKENS + more for number in range(2, 100) for more in (0, 500)}
        if numbers & many:
            return "more than once"
    return "once" if numbers & once else "not told"
