"""Money: exact in prices, accounts and ledgers, and right to the cent by worked examples."""

import sqlite3
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlib.conversation import Usage
from agentlib.providers.chat import read_usage as read_chat
from agentlib.providers.messages import MessagesTranslator
from agentlib.providers.responses_body import read_usage as read_responses
from agentlib.runtime.ledger import BudgetExceeded, Ledger, LedgerFailed
from agentlib.runtime.limits import Account, Prices, RunLimits
from agentlib.runtime.money import AmountError, exact, from_units, to_units, total

# Prices for a million tokens, written here after the price pages' pattern: what a cache holds
# costs a tenth, writing to it a quarter more than input, and for an hour twice as much.
CACHED_APART = Prices("3", "0.30", "15", cache_creation="3.75", cache_creation_hour="6")
CACHED_INSIDE = Prices(1.25, 0.125, 10)


def of_messages(usage):
    translator = MessagesTranslator()
    translator.translate({"type": "message_start", "message": {"id": "msg_1", "usage": usage}})
    return translator.usage


# usage as each API reports it, the prices, and the cost, reckoned by hand
WORKED = {
    "messages, written and read": (
        of_messages,
        {
            "input_tokens": 10,
            "cache_creation_input_tokens": 5000,
            "cache_read_input_tokens": 2000,
            "output_tokens": 7,
        },
        CACHED_APART,
        # 0.00003 + 0.01875 + 0.0006 + 0.000105
        "0.019485",
    ),
    "messages, an hour and five minutes": (
        of_messages,
        {
            "input_tokens": 10,
            "cache_creation_input_tokens": 5000,
            "cache_creation": {
                "ephemeral_5m_input_tokens": 4000,
                "ephemeral_1h_input_tokens": 1000,
            },
            "output_tokens": 7,
        },
        CACHED_APART,
        # 0.00003 + 0.015 + 0.006 + 0.000105
        "0.021135",
    ),
    "messages, no cache": (
        of_messages,
        {"input_tokens": 1_000_000, "output_tokens": 1_000_000},
        CACHED_APART,
        "18",
    ),
    "messages, more read than sent": (
        of_messages,
        {"input_tokens": 0, "cache_read_input_tokens": 1_000_000, "output_tokens": 0},
        CACHED_APART,
        "0.3",
    ),
    "responses, a part from the cache": (
        read_responses,
        {
            "input_tokens": 2006,
            "input_tokens_details": {"cached_tokens": 1920},
            "output_tokens": 300,
        },
        CACHED_INSIDE,
        # 86 at 1.25, 1,920 at 0.125, 300 at 10
        "0.0033475",
    ),
    "chat, a part from the cache": (
        read_chat,
        {
            "prompt_tokens": 2006,
            "prompt_tokens_details": {"cached_tokens": 1920},
            "completion_tokens": 300,
        },
        CACHED_INSIDE,
        "0.0033475",
    ),
    "responses, a part written to the cache": (
        read_responses,
        {
            "input_tokens": 2000,
            "input_tokens_details": {"cached_tokens": 500, "cache_write_tokens": 1000},
            "output_tokens": 100,
        },
        Prices(2, "0.2", 8, cache_creation="2.5"),
        # 500 at 2, 500 at 0.2, 1,000 at 2.5, 100 at 8
        "0.0044",
    ),
}


@pytest.mark.parametrize(("read", "reported", "prices", "cost"), WORKED.values(), ids=WORKED)
def test_worked_examples_come_out_right(read, reported, prices, cost):
    assert prices.cost(read(reported)) == Decimal(cost)


UNKNOWN = {
    "no input": Usage(None, 0, 1),
    "no output": Usage(1, 0, None),
    "written, without a price": Usage(10, 0, 1, 0, 5),
    "for an hour, without a price": Usage(10, 0, 1, 0, 5, 5),
}


@pytest.mark.parametrize("usage", UNKNOWN.values(), ids=UNKNOWN)
def test_a_cost_that_cannot_be_told_is_unknown_and_not_zero(usage):
    account = Account()
    account.charge(usage, RunLimits(prices=CACHED_INSIDE))

    assert CACHED_INSIDE.cost(usage) is None
    assert (account.cost, account.unpriced) == (0, 1)


counts = st.none() | st.integers(0, 10**6)
usages = st.builds(Usage, *[counts] * 6, cached_apart=st.booleans())


@given(usages)
def test_every_token_is_charged_once(usage):
    one = Prices(*["1"] * 5)
    cost = one.cost(usage)
    if usage.input_tokens is None or usage.output_tokens is None:
        assert cost is None
        return
    apart = (usage.cached_tokens or 0) + (usage.cache_creation_tokens or 0)
    tokens = usage.input_tokens + usage.output_tokens + (apart if usage.cached_apart else 0)
    assert cost * 10**6 == tokens


@given(usages)
def test_no_request_costs_more_than_was_reserved(usage):
    cost = CACHED_APART.cost(usage)
    if cost is not None:
        apart = (usage.cached_tokens or 0) + (usage.cache_creation_tokens or 0)
        sent = usage.input_tokens + (apart if usage.cached_apart else 0)
        assert cost <= CACHED_APART.most(sent, usage.output_tokens)


amounts = st.decimals(0, 1000, allow_nan=False, allow_infinity=False, places=6)


@given(st.lists(amounts, max_size=50))
def test_a_sum_is_exact_whatever_the_context(found):
    with localcontext(prec=3):
        assert Fraction(total(found)) == sum(map(Fraction, found))
        assert [from_units(to_units(each)) for each in found] == found


@pytest.mark.parametrize("amount", [0.1, "0.1", Decimal("0.1")])
def test_three_tenths_fit_under_three_tenths(tmp_path, amount):
    ledger = Ledger(tmp_path / "ledger.sqlite", 0.3)
    for _ in range(3):
        ledger.reserve("ann", "gateway", "m", amount)

    assert ledger.spent() == Decimal("0.3")
    assert str(ledger.spent()) == "0.3"
    with pytest.raises(BudgetExceeded, match=r"at most 0\.000000 more"):
        ledger.reserve("ann", "gateway", "m", "0.000000000001")


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=40), st.integers(1, 10**7))
def test_an_account_stops_at_its_limit_to_the_last_token(outputs, limit):
    prices = Prices(0, 0, "0.1")
    limits = RunLimits(turns=99, output_tokens=None, spend=tenths(limit), prices=prices)
    account, used = Account(), 0
    for count in outputs:
        account.charge(Usage(0, 0, count, 0), limits)
        used += count
        assert (account.exhausted(limits) == "spend") is (used >= limit)


def tenths(tokens):
    """A tenth of a millionth for each, as text."""
    return f"{tokens // 10**7}.{tokens % 10**7:07}"


NO_AMOUNTS = [float("nan"), float("inf"), -0.1, "-1", "ten", "", Decimal("-Infinity"), "1e"]


@pytest.mark.parametrize("amount", NO_AMOUNTS)
def test_what_is_no_amount_of_money_is_refused(tmp_path, amount):
    ledger = Ledger(tmp_path / "ledger.sqlite", 1)
    tries = (
        lambda: exact(amount),
        lambda: Prices(amount, 1, 1),
        lambda: Prices(1, 1, 1, cache_creation=amount),
        lambda: RunLimits(spend=amount),
        lambda: Ledger(tmp_path / "other.sqlite", amount),
        lambda: ledger.reserve("ann", "gateway", "m", amount),
        lambda: ledger.settle(1, "released", amount, None),
    )
    for attempt in tries:
        with pytest.raises(AmountError, match="expected an amount of money"):
            attempt()
    assert ledger.rows() == ()


def test_a_ledger_keeps_every_counter(tmp_path):
    ledger, usage = (
        Ledger(tmp_path / "ledger.sqlite", 1),
        Usage(1, 2, 3, 4, 5, 6, cached_apart=True),
    )
    number = ledger.reserve("ann", "gateway", "m", "0.5")
    ledger.settle(number, "released", "0.019485", usage)
    (row,) = ledger.rows()

    assert (row.usage, row.usage.cached_apart) == (usage, True)
    assert (str(row.reserved), str(row.cost)) == ("0.5", "0.019485")


def test_a_file_of_another_version_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE attempts (number INTEGER PRIMARY KEY, cost REAL)")
    database.close()
    before = path.read_bytes()
    with pytest.raises(LedgerFailed, match="expected a ledger of version 2"):
        Ledger(path, 1).spent()

    assert path.read_bytes() == before


def test_an_account_survives_being_saved_exactly():
    limits = RunLimits(prices=CACHED_APART)
    account = Account(turns=2)
    account.charge(Usage(1, 2, 3, 4, 5, 6, cached_apart=True), limits)
    account.charge(None, limits)
    found = Account.from_json(account.to_json())

    assert found == account
    assert found.usage.cached_apart
    assert found.to_json() == account.to_json()
