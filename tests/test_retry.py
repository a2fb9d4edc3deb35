"""Opening: which failures are tried again, how often, after how long; and what a server asks."""

import itertools
import time
from datetime import UTC, datetime
from email.utils import format_datetime

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentlib.clock import MockClock
from agentlib.errors import AgentlibError, OpenFailure
from agentlib.failures import ObserverFailed, ResponseFailure, StreamCut
from agentlib.recordings.replay_transport import Refusal
from agentlib.retry import (
    CONSERVATIVE,
    PATIENT,
    QUOTA_CODES,
    Opening,
    RetryPolicy,
    open_with_retry,
    retry_after,
    should_retry,
)

pytestmark = pytest.mark.anyio
NETWORK = OpenFailure("no connection", retryable=True, sent="not sent")
STATUSES = [*range(300, 600), 999]
SENT = ("not sent", "perhaps sent", "answered")


def refused(status, code=None, asked=None):
    return Refusal(status, code, asked).failure()


class Script:
    """Opens what it is told to: raises each failure in turn, then returns "stream"."""

    def __init__(self, *outcomes):
        self.outcomes = iter(outcomes)
        self.openings = 0

    async def open(self):
        self.openings += 1
        await anyio.lowlevel.checkpoint()
        outcome = next(self.outcomes, "stream")
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


async def opened(script, policy=CONSERVATIVE, chance=0.5, clock=None, note=None, *, keyed=False):
    clock = clock or MockClock()
    openings = []
    try:
        stream = await open_with_retry(
            script.open, policy, clock, lambda: chance, note or openings.append, keyed=keyed
        )
    except AgentlibError as failure:
        return failure, openings, clock.slept
    return stream, openings, clock.slept


# ---------------------------------------------------------------------------- what is tried again


def test_by_default_what_passes_is_tried_again_and_a_rate_limit_is_not():
    retried = [status for status in STATUSES if CONSERVATIVE.may_retry(refused(status))]
    assert retried == [408, 409, 425, *range(500, 600), 999]


def test_the_patient_policy_adds_a_rate_limit_and_nothing_else():
    retried = [status for status in STATUSES if PATIENT.may_retry(refused(status))]
    assert retried == [408, 409, 425, 429, *range(500, 600), 999]


@pytest.mark.parametrize("policy", [CONSERVATIVE, PATIENT])
def test_a_failure_of_the_network_is_tried_again_unless_it_says_that_it_lasts(policy):
    assert policy.may_retry(NETWORK)
    assert not policy.may_retry(OpenFailure("no key"))
    assert not policy.may_retry(OpenFailure("no key", status=500))


@pytest.mark.parametrize("code", sorted(QUOTA_CODES))
@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("policy", [CONSERVATIVE, PATIENT])
def test_an_exhausted_quota_is_never_tried_again(policy, status, code):
    assert not policy.may_retry(refused(status, code, asked=1))


def test_another_code_is_a_rate_limit():
    assert PATIENT.may_retry(refused(429, "rate_limit_exceeded"))


# ------------------------------------------------------------------------ what is known to be sent

POLICIES = {name: RetryPolicy(perhaps_sent=name) for name in ("with a key", "always", "never")}


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("sent", ["not sent", "perhaps sent"])
@pytest.mark.parametrize("name", POLICIES)
async def test_what_was_perhaps_sent_goes_out_again_only_where_the_policy_says_so(
    name, sent, keyed
):
    again = sent == "not sent" or name == "always" or (name == "with a key" and keyed)
    script = Script(OpenFailure("no answer", retryable=True, sent=sent), "stream")
    outcome, openings, _ = await opened(script, POLICIES[name], keyed=keyed)
    assert script.openings == (2 if again else 1)
    assert (outcome == "stream") is again
    if not again:
        assert "the provider may have taken it" in str(outcome)
        assert openings == [Opening(1, "no answer", None)]


@pytest.mark.parametrize("policy", [CONSERVATIVE, PATIENT])
def test_who_does_not_say_what_was_sent_has_perhaps_sent_it(policy):
    failure = OpenFailure("no answer", retryable=True)
    assert failure.sent == "perhaps sent"
    assert not policy.may_retry(failure)
    assert policy.may_retry(failure, keyed=True)
    assert OpenFailure("busy", status=503).sent == "answered"


@pytest.mark.parametrize("known", list(itertools.product(SENT, repeat=3)), ids="-".join)
async def test_a_failure_tells_the_most_that_is_known_of_all_its_openings(known):
    script = Script(*(OpenFailure("no", retryable=True, sent=sent) for sent in known))
    failure, _, _ = await opened(script, POLICIES["always"])
    assert (failure.openings, script.openings) == (3, 3)
    assert failure.sent == ("perhaps sent" if "perhaps sent" in known else known[-1])


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("policy", [CONSERVATIVE, PATIENT])
def test_what_the_server_says_of_a_further_try_counts_before_the_status(policy, status):
    for said in (True, False):
        assert policy.may_retry(Refusal(status, should_retry=said).failure()) is said
    empty = Refusal(status, "insufficient_quota", should_retry=True).failure()
    assert not policy.may_retry(empty)


@pytest.mark.parametrize(
    ("text", "said"),
    [("true", True), ("True ", True), ("false", False), ("", None), ("yes", None), (None, None)],
)
def test_what_x_should_retry_says(text, said):
    assert should_retry({} if text is None else {"x-should-retry": text}) is said


@pytest.mark.parametrize("policy", [CONSERVATIVE, PATIENT])
@pytest.mark.parametrize("asked", [20.001, 21.0, 3600.0, 1e300])
@pytest.mark.parametrize("status", [408, 409, 425, 500, 503])
async def test_a_server_that_asks_for_more_than_the_bound_is_not_asked_again(policy, asked, status):
    script = Script(refused(status, asked=asked))
    failure, openings, slept = await opened(script, policy)
    assert (script.openings, slept) == (1, [])
    assert f"{asked:g} s" in str(failure)
    assert "at most 20 s" in failure.given_up
    assert openings == [Opening(1, f"the server answered {status}", None)]


# -------------------------------------------------------------------------------------- how often


async def test_a_success_is_not_repeated():
    script = Script()
    assert await opened(script) == ("stream", [], [])
    assert script.openings == 1


async def test_after_two_failures_the_third_opening_may_succeed():
    script = Script(refused(500), NETWORK)
    stream, openings, slept = await opened(script)
    assert (stream, script.openings, slept) == ("stream", 3, [0.25, 0.5])
    assert openings == [Opening(1, "the server answered 500", 0.25), Opening(2, str(NETWORK), 0.5)]


async def test_three_failures_are_the_end():
    last = refused(503)
    script = Script(refused(500), refused(502), last, "too late")
    failure, openings, slept = await opened(script)
    assert failure is last
    assert failure.openings == 3
    assert (script.openings, slept) == (3, [0.25, 0.5])
    assert openings[-1] == Opening(3, "the server answered 503", None)


@pytest.mark.parametrize("openings", [1, 2, 5])
async def test_a_policy_counts_all_openings(openings):
    script = Script(*[refused(500)] * 9)
    failure, noted, slept = await opened(script, RetryPolicy(openings=openings))
    assert script.openings == failure.openings == len(noted) == openings
    assert slept == [0.25 * 2**n for n in range(openings - 1)]


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 410, 422, 429])
async def test_a_final_refusal_is_one_opening(status):
    script = Script(refused(status))
    failure, openings, slept = await opened(script)
    assert failure.status == status
    assert (failure.openings, script.openings, slept) == (1, 1, [])
    assert [opening.wait for opening in openings] == [None]


async def test_a_final_refusal_after_a_retry_is_the_end():
    script = Script(refused(500), refused(401), "too late")
    failure, _, slept = await opened(script)
    assert (failure.status, failure.openings, script.openings) == (401, 2, 2)
    assert slept == [0.25]


class Other(Exception):
    pass


@pytest.mark.parametrize(
    "error",
    [StreamCut("cut", check="completed"), Other("a bug"), TimeoutError("slow"), OSError("broken")],
    ids=lambda error: type(error).__name__,
)
async def test_only_an_open_failure_is_tried_again(error):
    script = Script(error)
    clock = MockClock()
    with pytest.raises(type(error)) as raised:
        await open_with_retry(script.open, PATIENT, clock, lambda: 0.5, lambda _: None)
    assert raised.value is error
    assert (script.openings, clock.slept) == (1, [])


# ---------------------------------------------------------------------------------- after how long


@settings(deadline=None)
@given(chance=st.floats(0, 1, exclude_max=True), number=st.integers(1, 8))
def test_a_wait_doubles_and_is_spread_by_at_most_a_tenth(chance, number):
    base = 0.25 * 2 ** (number - 1)
    wait = CONSERVATIVE.wait(number, NETWORK, chance)
    assert base * 0.9 <= wait <= base * 1.1


def test_the_spread_reaches_both_its_ends():
    waits = [CONSERVATIVE.wait(1, NETWORK, chance) for chance in (0.0, 0.5, 1 - 2**-53)]
    assert waits == pytest.approx([0.225, 0.25, 0.275])


@pytest.mark.parametrize(("asked", "waited"), [(0.0, 0.0), (1.5, 1.5), (20.0, 20.0)])
async def test_the_patient_policy_waits_as_long_as_asked(asked, waited):
    script = Script(refused(429, asked=asked), refused(503, asked=asked))
    stream, _, slept = await opened(script, PATIENT, chance=0.0)
    assert (stream, slept) == ("stream", [waited, waited])


async def test_the_patient_policy_has_its_own_wait_where_nothing_was_asked():
    stream, _, slept = await opened(Script(refused(429), refused(429)), PATIENT)
    assert (stream, slept) == ("stream", [0.25, 0.5])


async def test_by_default_a_server_cannot_choose_the_wait():
    stream, _, slept = await opened(Script(refused(503, asked=9)))
    assert (stream, slept) == ("stream", [0.25])


# --------------------------------------------------------------------------- who looks, who cancels


async def test_an_observer_that_raises_ends_the_openings():
    def note(opening):
        raise ObserverFailed(f"saw {opening.number}", check="observer")

    script = Script(refused(500))
    failure, _, slept = await opened(script, note=note)
    assert isinstance(failure, ObserverFailed)
    assert (script.openings, slept) == (1, [])


class Forever:
    """A clock on which a wait never ends."""

    def __init__(self):
        self.waiting = anyio.Event()

    async def sleep(self, _seconds):
        self.waiting.set()
        await anyio.sleep_forever()


async def test_a_cancelled_wait_opens_nothing_more():
    script, clock = Script(NETWORK), Forever()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(opened, script, CONSERVATIVE, 0.5, clock)
        await clock.waiting.wait()
        tasks.cancel_scope.cancel()
    assert script.openings == 1


async def test_a_cancelled_opening_is_no_failure_of_the_network():
    class Hanging(Script):
        async def open(self):
            self.openings += 1
            begun.set()
            await anyio.sleep_forever()

    begun, script, openings = anyio.Event(), Hanging(), []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(opened, script, PATIENT, 0.5, None, openings.append)
        await begun.wait()
        tasks.cancel_scope.cancel()
    assert (script.openings, openings) == (1, [])


def test_the_two_families_have_nothing_in_common():
    assert not issubclass(OpenFailure, ResponseFailure)
    assert not issubclass(ResponseFailure, OpenFailure)


# ------------------------------------------------------------------------------- what a server asks

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
LATER = datetime(2026, 3, 1, 12, 0, 7, tzinfo=UTC)


def asked(now=NOW, **headers):
    return retry_after({k.replace("_", "-"): v for k, v in headers.items()}, now.timestamp())


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("1.5", 1.5),
        ("120", 120.0),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("-inf", None),
        ("1e999", None),
        ("", None),
        ("soon", None),
        ("7, 7", None),
        ("Sun, 01 Foo 2026 12:00:07 GMT", None),
        ("Sun, 99 Mar 2026 12:00:07 GMT", None),
        ("Sun, 01 Mar 99999999999 12:00:07 GMT", None),
    ],
)
def test_retry_after_in_seconds_or_what_is_no_wait(text, seconds):
    assert asked(retry_after=text) == seconds


@pytest.fixture
def far_east(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    if hasattr(time, "tzset"):
        time.tzset()
    yield
    monkeypatch.undo()
    if hasattr(time, "tzset"):
        time.tzset()


@pytest.mark.usefixtures("far_east")
@pytest.mark.parametrize(
    "text",
    [
        format_datetime(LATER, usegmt=True),
        "Sunday, 01-Mar-26 12:00:07 GMT",
        "Sun Mar  1 12:00:07 2026",
        "Sun, 01 Mar 2026 12:00:07 -0000",
        "Sun, 01 Mar 2026 12:00:07",
    ],
    ids=["IMF-fixdate", "RFC 850", "asctime", "no zone known", "no zone"],
)
def test_retry_after_as_a_date_in_each_form_that_http_allows(text):
    assert asked(retry_after=text) == 7.0


def test_a_date_that_is_past_asks_for_no_wait():
    assert asked(now=LATER, retry_after=format_datetime(NOW, usegmt=True)) == 0.0


@pytest.mark.parametrize(
    ("milliseconds", "seconds"), [("0", 0.0), ("250", 0.25), ("1500", 1.5), ("x", 9.0), ("-5", 9.0)]
)
def test_milliseconds_are_finer_and_come_first(milliseconds, seconds):
    assert asked(retry_after_ms=milliseconds, retry_after="9") == seconds


def test_without_a_header_nothing_is_asked():
    assert asked() is None


@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_no_header_can_break_it(milliseconds, text):
    seconds = asked(retry_after_ms=milliseconds, retry_after=text)
    assert seconds is None or 0 <= seconds < float("inf")


@settings(deadline=None)
@given(
    st.sampled_from(["Sun", "Sunday", ""]),
    st.lists(st.integers(-1, 10**12), min_size=6, max_size=6),
    st.sampled_from(["GMT", "+9999", "-0000", "UTC", "x", ""]),
)
def test_no_date_can_break_it(day, n, zone):
    text = f"{day}, {n[0]} Mar {n[1]} {n[2]}:{n[3]}:{n[4]} {zone}"
    seconds = asked(retry_after=text)
    assert seconds is None or 0 <= seconds < float("inf")
