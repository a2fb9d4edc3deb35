"""The questions of the *predict* beats: for each chapter a question, its choices, and why.

A question is asked before anything runs, so a chapter does not hold its own answer: it stands
here, by the chapter's number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

LETTERS = "abcdef"


class Choice(NamedTuple):
    """One answer to choose: its words, why it is right or wrong, and which of the two."""

    text: str
    why: str
    right: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """A question with two to six choices, of which one is right; `number` is its chapter's.

    Raises ValueError where the choices are too few, too many, or not one of them is right.
    """

    number: str
    text: str
    choices: tuple[Choice, ...]

    def __post_init__(self) -> None:
        right = sum(choice.right for choice in self.choices)
        if not 2 <= len(self.choices) <= len(LETTERS) or right != 1:
            seen = f"{len(self.choices)}, {right} of them right"
            raise ValueError(f"expected 2 to {len(LETTERS)} choices, one right; saw {seen}")

    @property
    def by_letter(self) -> dict[str, Choice]:
        """The choices, in order, by their letters."""
        return dict(zip(LETTERS, self.choices, strict=False))


def _wrong(text: str, why: str) -> Choice:
    return Choice(text, why)


def _right(text: str, why: str) -> Choice:
    return Choice(text, why, right=True)


def _question(number: str, text: str, *choices: Choice) -> Question:
    return Question(number, text, choices)


_ALL = (
    _question(
        "01",
        "You say “Please repair add().” How often is the model asked, and how many entries has "
        "the conversation at the end, yours included?",
        _wrong(
            "asked twice, four entries",
            "Two responses ask for a tool. After each result the model is asked once more, so the "
            "answer takes a third.",
        ),
        _wrong(
            "asked three times, four entries",
            "Each of the two calls adds two entries: the message that asks, and its result.",
        ),
        _right(
            "asked three times, six entries",
            "Your message, twice a message with a call and its result, and the answer.",
        ),
        _wrong(
            "asked once, six entries",
            "A model sees a result only when it is asked again: every result costs a turn.",
        ),
    ),
    _question(
        "02",
        "Into how many input items do these three entries turn, and in which form do the "
        "arguments travel?",
        _wrong(
            "three items, an object",
            "The answer holds a text and a call, and in this API each of them is an item; "
            "and its arguments are sent as a text.",
        ),
        _wrong(
            "three items, a string",
            "The arguments are a string indeed. But the answer becomes two items, a message and "
            "a call.",
        ),
        _wrong(
            "four items, an object",
            "Four items indeed. But on the wire the arguments are one string that holds JSON.",
        ),
        _right(
            "four items, a string",
            "The answer becomes a message and a call side by side; the arguments are one string "
            "that holds JSON.",
        ),
    ),
    _question(
        "03",
        "At which event may the edit run?",
        _wrong(
            "at event 6, where the arguments parse",
            "A text that parses can still go on, and the response can still fail.",
        ),
        _wrong(
            "at event 7, where they are done",
            "Done is the string: it grows no more. What else the response will say is unknown.",
        ),
        _wrong(
            "at event 8, where the item is done",
            "The item is done, the response is not. Whatever is wrong with it comes later.",
        ),
        _right("never", "The response never completes, so nothing in it was decided."),
    ),
    _question(
        "04",
        "How many of the two may run?",
        _right(
            "none",
            "They are one decision. If a part of it cannot be understood, the whole is not known.",
        ),
        _wrong(
            "one, the valid one",
            "The model asked for both together. Half of a decision is another decision, one that "
            "nobody made.",
        ),
        _wrong(
            "both, the second with what arrived",
            "A text that ends too early was never the model's argument; closing its quotes "
            "invents one.",
        ),
    ),
    _question(
        "05",
        "In how many of the six may the same request be sent again, without anything further "
        "known?",
        _wrong(
            "one",
            "Without a connection nothing happened, and nothing can happen twice. A status of 500 "
            "says the same: nothing was begun.",
        ),
        _right(
            "two",
            "No connection, and status 500: in both nothing was acquired, and the cause may pass.",
        ),
        _wrong(
            "three",
            "A rate limit can be waited for where the server says how long; sent again at once, "
            "the request makes it worse.",
        ),
        _wrong(
            "five",
            "A wrong key stays wrong. And a stream that was acquired may already have cost money "
            "and had effects, even before its first event.",
        ),
    ),
    _question(
        "06",
        "How many calls would the hasty adapter run in “malformed”, and how many in "
        "“output_limit”?",
        _wrong(
            "none, and none",
            "That is what the gate releases. The adapter asks nothing of the response as a whole.",
        ),
        _wrong(
            "one, and one",
            "In “malformed” the cut call is said to be done as well, and that is all it asks. It "
            "hands on a text that is no JSON.",
        ),
        _wrong(
            "two, and none",
            "The limit is told by the last event. By then the call is done, and has run.",
        ),
        _right(
            "two, and one",
            "Each of the three calls is said to be done. What is wrong is in the arguments, or "
            "comes later.",
        ),
    ),
    _question(
        "07",
        "In how many of the three dialects does the gate see the altered character?",
        _wrong("none", "One dialect says everything twice, and the two do not agree."),
        _right(
            "one",
            "Responses restates the arguments at the end. The other two restate nothing, so there "
            "is nothing to compare.",
        ),
        _wrong(
            "two", "Chat and Messages have much in common here: what a fragment said is said once."
        ),
        _wrong(
            "all three",
            "The gate compares what was said twice. Two of the three say the arguments only once.",
        ),
    ),
    _question(
        "08",
        "How many of the four items must the next request hold?",
        _wrong(
            "one, the call",
            "A result needs its call. But the reasoning that led to it is the model's own, and "
            "without it the provider refuses, or the model begins anew.",
        ),
        _wrong(
            "two, the call and the reasoning before it",
            "The provider pairs each reasoning item with what follows it, the search included.",
        ),
        _wrong(
            "three, all but the hosted search",
            "You did not run the search, and it still stands in the model's own history.",
        ),
        _right("all four", "They go back as they came, in their order, to the last character."),
    ),
    _question(
        "09",
        "Three failures, one of each class, and a limit of two repairs. How often is the model "
        "asked?",
        _wrong("twice", "The first request is no repair. Two repairs make three requests."),
        _right(
            "three times",
            "One request and two repairs. All classes draw on one budget, so the third failure is "
            "the end.",
        ),
        _wrong(
            "four times",
            "That would be a budget for each class. Three kinds of failure would then cost three "
            "times as much.",
        ),
        _wrong("until it is right", "A limit that each new kind of failure renews is none."),
    ),
    _question(
        "10",
        "How often does the user read “The tests pass.”, and how often should they?",
        _wrong(
            "once, and once is right",
            "The first one was streamed as well, fragment by fragment, before anybody checked it.",
        ),
        _right(
            "twice, and once is right",
            "The first claim had no test behind it. It was read before it could be refused.",
        ),
        _wrong(
            "twice, and twice is right",
            "When it was said first, no test had run: at that moment it was not true.",
        ),
        _wrong(
            "once, and never is right",
            "The second claim has a test behind it. That one the user should read.",
        ),
    ),
    _question(
        "11",
        "How many results must the history hold after the stop?",
        _wrong("none", "“read” had ended: its work was done, and is not thrown away."),
        _wrong(
            "one, of the call that had ended",
            "The message asked for three. A call without a result makes the history invalid for "
            "every later request.",
        ),
        _wrong(
            "two, of the calls that had begun",
            "Also the call that never began needs a result: one that says so.",
        ),
        _right(
            "three, one for each call",
            "One has ended, one may have acted, one never began. Each says which, under its ID.",
        ),
    ),
    _question(
        "12",
        "Three replies hold JSON that stops in the middle: (1) the reply ended normally, (2) its "
        "stream broke, (3) it reached the limit of output tokens. Of which is the model told?",
        _wrong(
            "all three",
            "In (2) the rest was lost on the way. Perhaps nothing was wrong with what the model "
            "wrote.",
        ),
        _wrong(
            "(1) alone",
            "A limit stops the model and not the wire. The model can be asked for fewer words.",
        ),
        _right(
            "(1) and (3)",
            "Of both, nothing was lost on the way, and only the model can write another. In (2) "
            "the wire broke: the same request is sent again.",
        ),
        _wrong("none", "Sent again without a word, the request asks for the same mistake."),
    ),
    _question(
        "13",
        "The limit is 1.00, one request can cost 0.25 at most, and one has been sent whose cost "
        "nobody knows. How many further requests may be begun at the same time?",
        _wrong("four", "That takes the unknown cost for nothing. It may have been all of 0.25."),
        _right("three", "The reservation of the lost one stands until somebody says what it cost."),
        _wrong(
            "one", "Only what could be spent is reserved: 0.25 for each, and there is 0.75 left."
        ),
        _wrong("none", "One unknown cost is bounded: it was at most 0.25, and the rest is free."),
    ),
    _question(
        "14",
        "How many requests does the server see?",
        _wrong("four", "The one that it answered with status 500 was a request too."),
        _right("five", "One opening that failed and was tried again, and four responses."),
        _wrong(
            "seven",
            "Three openings are the most that one response may take. The second one streamed.",
        ),
        _wrong("one", "A status of 500 while opening is tried again: nothing had been acquired."),
    ),
    _question(
        "15",
        "A server gives each event of one item another item ID. All else is in order. May its "
        "call run?",
        _wrong(
            "yes: IDs are only names",
            "They say which fragment belongs to which call. Names that change say nothing.",
        ),
        _wrong(
            "no, and nothing can be done",
            "It is a known kind of server, and its fragments can still be told apart by their "
            "place.",
        ),
        _right(
            "not by itself; only if you allow this fault by name",
            "A stream that breaks a rule is not released by itself. Whoever knows the server may "
            "allow for what it gets wrong, by name.",
        ),
    ),
    _question(
        "16",
        "An agent runs a tool as soon as its arguments parse. Which of these streams makes it run "
        "something that was never decided?",
        _wrong("one that is cut after the arguments", "It runs there indeed, and not only there."),
        _wrong("one that ends with “incomplete”", "It runs there indeed, and not only there."),
        _wrong("one that fails after the call", "It runs there indeed, and not only there."),
        _right(
            "all three", "In each the arguments parse before the response is known to be complete."
        ),
    ),
)
QUESTIONS: dict[str, Question] = {question.number: question for question in _ALL}
