"""One row for each provider: the dispatcher finds it by name, and nothing else needs to know."""

import pytest
from wires import TOOLS, one_call, one_tool

from agentlib import ResponseReader, user
from agentlib.errors import AgentlibError, UnknownProvider
from agentlib.model import StreamingModel
from agentlib.providers.fields import TranslatorOptions
from agentlib.providers.registry import PROVIDERS, find_provider, make_translator
from agentlib.sse import DONE_EVENT

NAMES = tuple(PROVIDERS)


def test_the_providers_that_are_known():
    assert set(NAMES) >= {"responses", "chat", "messages"}
    for name in NAMES:
        row = find_provider(name)
        assert (row.name, row.title != "", row.terminal != "") == (name, True, True)


@pytest.mark.parametrize("name", ["", "openai", "Chat", "responses ", "unknown"])
def test_an_unknown_name_is_a_clear_error_that_lists_those_known(name):
    for ask in (
        lambda: find_provider(name),
        lambda: make_translator(name),
        lambda: ResponseReader(name),
        lambda: StreamingModel(None, "m", provider=name),
    ):
        with pytest.raises(UnknownProvider) as raised:
            ask()
        assert str(raised.value) == (f"unknown provider {name!r}; known are: {', '.join(NAMES)}")
        assert isinstance(raised.value, AgentlibError)


@pytest.mark.parametrize("name", NAMES)
def test_each_row_makes_a_fresh_translator(name):
    first, second = (make_translator(name, TranslatorOptions()) for _ in range(2))
    assert first is not second
    assert type(first) is type(second)
    assert first.finish() == ()
    assert first.trailing is False


@pytest.mark.parametrize("name", NAMES)
def test_each_row_encodes_the_same_history(name):
    request = find_provider(name).encode("m", [user("Hi.")], TOOLS, max_output_tokens=9)
    if name == "gemini":
        # Its path names the model, and that it streams.
        assert request["generationConfig"] == {"maxOutputTokens": 9}
    else:
        assert (request["model"], request["stream"]) == ("m", True)
        assert 9 in request.values()
    assert "Hi." in str(request)
    assert all(tool.name in str(request["tools"]) for tool in TOOLS)


@pytest.mark.parametrize("name", NAMES)
def test_done_is_an_event_that_has_no_number_and_shows_nothing(name):
    reader = ResponseReader(name, TOOLS)
    step = reader.step(DONE_EVENT)
    assert (step.decision, step.meaningful, step.trailing) == (None, False, False)
    assert (reader.events, reader.unread, reader.assembly.state) == (0, 0, "new")
    # JSON that looks like it is an event as any other.
    reader.step(dict(DONE_EVENT))
    assert reader.events == 1


def test_a_step_says_what_its_event_brought():
    reader = ResponseReader("chat", TOOLS)
    steps = [reader.step(event) for event in [*one_call(), DONE_EVENT]]
    assert [step.meaningful for step in steps] == [False, *[True] * (len(steps) - 2), False]
    assert steps[-1].trailing
    assert not steps[0].trailing
    reader = ResponseReader("messages", TOOLS)
    steps = [reader.step(event) for event in one_tool()]
    assert [step.decision is not None for step in steps] == [False] * (len(steps) - 1) + [True]


def test_the_adapter_is_chosen_by_the_name_alone():
    for name, events in (("chat", one_call()), ("messages", one_tool())):
        reader = ResponseReader(name, TOOLS)
        found = [reader.accept(event) for event in events]
        decision = reader.end() or found[-1]
        assert [call.name for call in decision.calls] == ["read_file"]


@pytest.mark.parametrize("tools", [[], [{"type": "function"}], "read", {}])
def test_a_reader_wants_a_catalog_and_says_how_to_make_one(tools):
    with pytest.raises(TypeError, match=r"expected a Catalog, saw \w+: use Catalog.from_json"):
        ResponseReader("chat", tools)
