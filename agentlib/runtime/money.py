"""Money, exact: decimal numbers in the program, whole numbers in a file.

A binary fraction cannot hold a tenth, so that three tenths would not fit under a limit of 0.3. A
float that somebody writes is taken for the decimal number that it is written as.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from typing import TypeAlias

from agentlib.errors import AgentlibError

Amount: TypeAlias = Decimal | float | str

# A price for a million tokens with six decimals makes a token's cost one of twelve.
DECIMALS = 12
_MILLION = Decimal(1_000_000)
# What this holds is never rounded; the program's own context could round to fewer digits.
_EXACT = Context(prec=100)


class AmountError(AgentlibError):
    """Raised where an amount of money is none: not a number, endless, or below zero."""


def exact(amount: Amount) -> Decimal:
    """Return an amount as the decimal number that it is written as. Raises AmountError."""
    try:
        found = amount if isinstance(amount, Decimal) else Decimal(str(amount))
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or found < 0:
        raise AmountError(f"expected an amount of money, zero or more; saw {str(amount)!r}")
    return found


def total(amounts: Iterable[Decimal]) -> Decimal:
    """Return the exact sum."""
    found = Decimal(0)
    for amount in amounts:
        found = _EXACT.add(found, amount)
    return found


def for_tokens(count: int, price: Amount) -> Decimal:
    """Return what tokens cost, by the price of a million of them."""
    return _EXACT.divide(_EXACT.multiply(Decimal(count), exact(price)), _MILLION)


def to_units(amount: Amount, *, down: bool = False) -> int:
    """Return whole units of DECIMALS decimals, rounded up; `down` is for a limit."""
    rounding = ROUND_FLOOR if down else ROUND_CEILING
    return int(_EXACT.scaleb(exact(amount), DECIMALS).to_integral_value(rounding))


def from_units(units: int) -> Decimal:
    """Return the amount of whole units, in its plain form."""
    return plain(_EXACT.scaleb(Decimal(units), -DECIMALS))


def plain(amount: Decimal) -> Decimal:
    """Return the same amount as a person writes it: without zeros at its end."""
    whole = amount.to_integral_value()
    return whole if amount == whole else amount.normalize(_EXACT)
