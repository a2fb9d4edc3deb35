"""Inspect captures: for each response in each file, the verdict and what it rests on.

This is the engineer's question, "why did it, or did it not, run?", answered by the same reader
that a live stream goes through.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TextIO, TypedDict, cast

from agentlib.conversation import Catalog, ToolCall, Usage
from agentlib.errors import AgentlibError, CatalogError, UnknownFlag
from agentlib.failures import ResponseFailure
from agentlib.gate import CHECKS, Finding
from agentlib.inspection.diagnoses import diagnose_reading
from agentlib.inspection.diagnosis import Diagnosed
from agentlib.inspection.observations import read_response
from agentlib.jsonvalues import (
    StrictJSONError,
    dumps,
    join_surrogates,
    one_line,
    shorten,
    strict_loads,
    thaw,
    visible,
)
from agentlib.providers.compat import check_flags
from agentlib.providers.registry import PROVIDERS
from agentlib.reader import ResponseReader
from agentlib.recordings.boundaries import Provider, detect_provider
from agentlib.recordings.capture import Capture, CaptureNotFound
from agentlib.recordings.events import CapturedResponse, with_last_event
from agentlib.stepper.frame import GLYPHS, MAX_NAME_CHARACTERS, WORDS
from agentlib.stepper.html_export import (
    CannotSave,
    SavedStepper,
    check_target,
    of_capture,
    save_page,
    shown_name,
)
from agentlib.stepper.replay import captured_catalog
from agentlib.wording import plural

EXIT_RELEASED, EXIT_REJECTED, EXIT_USAGE = 0, 1, 2
MAX_SHOWN_TEXT = 400


@dataclass(frozen=True, slots=True)
class Inspection:
    """The verdict on one response. `check`, `reason` and `event` are None where it is released."""

    file: str
    response: int
    provider: str
    verdict: str
    check: str | None
    reason: str | None
    event: int | None
    calls: tuple[ToolCall, ...]
    text: str
    usage: Usage | None
    notes: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    diagnoses: tuple[Diagnosed, ...] = ()

    def row(self) -> dict[str, Any]:
        """Return it as plain JSON values, the row that `--json` prints."""
        return {
            "file": self.file,
            "response": self.response,
            "provider": self.provider,
            "verdict": self.verdict,
            "check": self.check,
            "reason": self.reason,
            "event": self.event,
            "calls": [_call_row(call) for call in self.calls],
            "text": visible(self.text),
            "usage": self.usage.counters if self.usage is not None else None,
            "notes": list(self.notes),
            "diagnoses": [diagnosed.row() for diagnosed in self.diagnoses],
        }


def _call_row(call: ToolCall) -> dict[str, Any]:
    row = {"call_id": call.call_id, "name": call.name, "arguments": thaw(call.arguments)}
    return row if call.caller is None else {**row, "caller": thaw(call.caller)}


def inspect_capture(
    capture: Capture,
    file: str,
    catalog: Catalog | None = None,
    *,
    native: bool = True,
    compat: Iterable[str] = (),
) -> Iterator[Inspection]:
    """Yield the verdict on each response of `capture`, in order.

    Where no catalog is given, the one that the capture itself echoes is used, if there is one.
    `native` lets items pass that only the provider understands, and that go back to it verbatim.
    `compat` names what is tolerated of the server. Raises UnknownFlag where it names no flag,
    and nothing else.
    """
    flags = check_flags(compat)
    for response in capture.responses:
        tools = catalog if catalog is not None else captured_catalog(capture, response.number)
        adapter = response.provider if response.provider in PROVIDERS else "responses"
        open_reader = partial(ResponseReader, adapter, tools, native=native)
        yield _inspect(response.provider, response, file, open_reader, flags)


def _inspect(
    provider: str,
    response: CapturedResponse,
    file: str,
    open_reader: Callable[..., ResponseReader],
    flags: frozenset[str],
) -> Inspection:
    reader = open_reader(compat=flags)
    failure = _read(provider, response, reader)
    decision = reader.assembly.decision
    diagnoses = diagnose_reading(provider, response, reader, failure, open_reader, flags)
    notes = [*_notes(reader, with_last_event(response, flags)), *_helpful(diagnoses)]
    return Inspection(
        file=file,
        response=response.number,
        provider=provider,
        verdict="released" if decision is not None else "rejected",
        check=failure.check if failure is not None else None,
        reason=failure.reason if failure is not None else None,
        event=failure.event if failure is not None else None,
        calls=decision.calls if decision is not None else (),
        text=decision.text if decision is not None else _draft(provider, reader),
        usage=decision.usage if decision is not None else failure.usage if failure else None,
        notes=tuple(notes),
        findings=reader.assembly.findings(),
        diagnoses=diagnoses,
    )


def _read(
    provider: str, response: CapturedResponse, reader: ResponseReader
) -> ResponseFailure | None:
    if provider in PROVIDERS or provider == "unknown":
        return read_response(reader, response)
    known = ", ".join(row.title for row in PROVIDERS.values())
    try:
        reader.fault(f"this is the {provider} API; what can be read is {known}")
    except ResponseFailure as failure:
        return failure
    return None


def _draft(provider: str, reader: ResponseReader) -> str:
    """Return the text of a response that was refused, each of its texts once.

    Where a server restates a text at another place of its item than it streamed, both are known.
    """
    texts: dict[tuple[str, str], str] = {}
    for each in reader.assembly.evidence().texts:
        item = each.part.rpartition("/")[0] if provider == "responses" else each.part
        if not each.refusal:
            texts.setdefault((item, each.text), each.text)
    return join_surrogates("".join(texts.values()))


def _helpful(diagnoses: Iterable[Diagnosed]) -> Iterator[str]:
    """Say once more which flags would have released it, by what the diagnoses found."""
    helps = dict.fromkeys(each.helps for each in diagnoses if each.helps)
    for flags in helps:
        named = " ".join(f"--compat {flag}" for flag in flags)
        yield f"would be released with {named}"


def _notes(reader: ResponseReader, response: CapturedResponse) -> Iterator[str]:
    yield from response.notes
    yield from reader.notes
    if reader.unread:
        yield f"{plural(reader.unread, 'event')} after the end of the response, not read"
    decision = reader.assembly.decision
    if decision is not None and decision.refusal:
        yield f"the model refused: {decision.refusal}"


def read_catalog(path: str) -> Catalog:
    """Return the catalog of a JSON file. Raises CatalogError, naming the file and what is wrong."""
    try:
        return Catalog.from_json(strict_loads(Path(path).read_text(encoding="utf-8")))
    except OSError as error:
        raise CatalogError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CatalogError(f"{path} is not UTF-8: {error}") from error
    except (StrictJSONError, CatalogError) as error:
        raise CatalogError(f"{path}: {error}") from error


def run_inspect(
    files: Sequence[str],
    tools: str | None,
    provider: str,
    *,
    as_json: bool,
    out: TextIO,
    native: bool = True,
    compat: Sequence[str] = (),
    html: str | None = None,
) -> int:
    """Inspect `files` ("-" is standard input), write to `out`, and return the exit status.

    `html` names a file to which every response is written in a stepper; see
    agentlib.stepper.html_export.
    Raises CannotSave where that cannot be written.

    0: all released. 1: some rejected. 2: a file is missing, the catalog cannot be used, `compat`
    names no flag, or `html` no page.
    """
    try:
        catalog = read_catalog(tools) if tools is not None else None
        check_flags(compat)
        if html is not None:
            check_target(html, (*files, *([tools] if tools is not None else [])))
    except (CatalogError, CannotSave, UnknownFlag) as error:
        _complain(error)
        return EXIT_USAGE
    options: _Options = {"catalog": catalog, "native": native, "compat": compat}
    status = EXIT_RELEASED
    steppers: list[SavedStepper] = []
    for file in files:
        try:
            capture = _load(file, provider)
        except AgentlibError as error:
            _complain(error)
            status = EXIT_USAGE
            continue
        found = [*inspect_capture(capture, file, **options)]
        _write(found, out, as_json=as_json)
        if any(each.verdict == "rejected" for each in found):
            status = max(status, EXIT_REJECTED)
        if html is not None:
            steppers += _steppers(file, capture, found, options)
    if html is not None and steppers:
        save_page(html, ", ".join(map(shown_name, files)), steppers)
    return status


class _Options(TypedDict):
    catalog: Catalog | None
    native: bool
    compat: Sequence[str]


def _write(found: Iterable[Inspection], out: TextIO, *, as_json: bool) -> None:
    for inspection in found:
        shown = json.dumps(inspection.row()) if as_json else as_text(inspection)
        out.write(f"{shown}\n")


def _steppers(
    file: str, capture: Capture, found: Iterable[Inspection], options: _Options
) -> Iterator[SavedStepper]:
    for stepper, one in zip(of_capture(file, capture, **options), found, strict=True):
        yield replace(stepper, said=tuple(f"diagnosis {each.text}" for each in one.diagnoses))


def _complain(error: AgentlibError) -> None:
    sys.stderr.write(f"agentlib inspect: {one_line(str(error))}\n")


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise CaptureNotFound("there is no standard input")
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise CaptureNotFound(f"cannot read standard input: {error.strerror}") from error


class AnotherAPI(AgentlibError):
    """Raised when a capture holds the events of another API than the one that was named."""


def _load(file: str, provider: str) -> Capture:
    api = cast("Provider | Literal['auto']", provider)
    if file == "-":
        capture = Capture.from_bytes(_standard_input(), "standard input", api)
    else:
        capture = Capture.load(file, api)
    if provider != "auto":
        _check_provider(capture, provider)
    return capture


def _check_provider(capture: Capture, provider: str) -> None:
    seen = detect_provider(event.data for each in capture.responses for event in each.events)
    if seen in PROVIDERS and seen != provider:
        title = PROVIDERS[seen].title
        raise AnotherAPI(f"{capture.name} holds events of {title}: leave --provider out")


def as_text(inspection: Inspection) -> str:
    """Return the inspection as a person reads it in a terminal."""
    return "\n".join(one_line(line) for line in _text_lines(inspection))


def _text_lines(inspection: Inspection) -> Iterator[str]:
    row = PROVIDERS.get(inspection.provider)
    title = row.title if row is not None else f"{inspection.provider} API"
    file = "standard input" if inspection.file == "-" else inspection.file
    yield f"{file} · response {inspection.response} · {title}"
    if inspection.reason is not None:
        where = f" at event {inspection.event}" if inspection.event else ""
        yield f"  REJECTED{where} [{inspection.check}]: {inspection.reason}"
    else:
        yield f"  RELEASED: {plural(len(inspection.calls), 'call')}"
    for call in inspection.calls:
        identity = " ".join(
            shorten(part, MAX_NAME_CHARACTERS) for part in (call.name, call.call_id)
        )
        yield f"  call     {identity} {shorten(dumps(call.arguments), MAX_SHOWN_TEXT)}"
    if inspection.text:
        standing = "text" if inspection.verdict == "released" else "draft"
        yield f"  {standing:<8} {_in_brief(inspection.text)}"
    if inspection.usage is not None:
        yield f"  usage    {_usage(inspection.usage)}"
    yield from (f"  note     {_in_brief(note)}" for note in inspection.notes)
    yield from (f"  diagnosis {_in_brief(each.text)}" for each in inspection.diagnoses)
    yield from (f"    {line}" for line in _finding_lines(inspection))


def _finding_lines(inspection: Inspection) -> Iterator[str]:
    titles = {check.name: check.title for check in CHECKS}
    for finding in inspection.findings:
        # Why the one that failed did stands in the second line.
        named = finding.detail and finding.check != inspection.check
        detail = f": {WORDS[finding.status]}{finding.detail}" if named else ""
        if finding.status != "waiting":
            yield f"{GLYPHS[finding.status]} {titles[finding.check]}{detail}"
    left = sum(finding.status == "waiting" for finding in inspection.findings)
    if left:
        yield f"{GLYPHS['waiting']} {plural(left, 'check')} not reached"


def _usage(usage: Usage) -> str:
    return ", ".join(
        f"{name.removesuffix('_tokens')} {value if value is not None else 'not reported'}"
        for name, value in usage.counters.items()
    )


def _in_brief(text: str) -> str:
    return shorten(" ".join(text.split()), MAX_SHOWN_TEXT)
