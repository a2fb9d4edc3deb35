"""Strict JSON: what is refused, what a value keeps, and that nothing can change a frozen one."""

import copy
import json
import math
import pickle
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentlib.jsonvalues import (
    MAX_NESTING,
    MAX_QUOTED_CHARACTERS,
    FrozenObject,
    StrictJSONError,
    dumps,
    freeze,
    join_surrogates,
    loads_unique,
    one_line,
    printable,
    quote,
    strict_loads,
    thaw,
)

REFUSED = {
    "empty": "",
    "white space": " \n\t\r ",
    "other white space": "\u00a0{}",
    "vertical tab": "\x0b{}",
    "byte order mark": "\ufeff{}",
    "no JSON": "hello",
    "python": "{'a': 1}",
    "python constants": '{"a": None}',
    "line comment": '{"a": 1} // one',
    "block comment": '{/* one */"a": 1}',
    "trailing comma in an object": '{"a": 1,}',
    "trailing comma in an array": "[1,]",
    "leading comma": "[,1]",
    "missing comma": '{"a": 1 "b": 2}',
    "missing colon": '{"a" 1}',
    "bare name": "{a: 1}",
    "number as name": "{1: 1}",
    "single quotes": "['a']",
    "leading zero": "[01]",
    "leading plus": "[+1]",
    "no digit after the point": "[1.]",
    "no digit before the point": "[.5]",
    "no digit in the exponent": "[1e]",
    "hexadecimal": "[0x10]",
    "underscore": "[1_000]",
    "other digits": "[\u0661]",
    "lone minus": "[-]",
    "NaN": '{"a": NaN}',
    "infinity": "[Infinity]",
    "minus infinity": "[-Infinity]",
    "too large for a double": "[1e400]",
    "too small for a double, negative": "[-1e400]",
    "more digits than may be converted": "[" + "9" * 5000 + "]",
    "second value": "{} {}",
    "second value without a space": "{}[]",
    "stray brace": "{}}",
    "stray word": "{} x",
    "cut object": '{"a": ',
    "cut string": '{"a',
    "cut literal": "[tru",
    "cut escape": '["\\u12',
    "bad escape": '["\\x41"]',
    "bad hex": '["\\uzz00"]',
    "upper-case escape": '["\\U0041"]',
    "raw line end in a string": '["a\nb"]',
    "raw NUL in a string": '["a\0b"]',
    "upper-case literal": "[True]",
    "duplicate names": '{"path": "/safe", "path": "/danger"}',
    "duplicate names, equal values": '{"a": 1, "a": 1}',
    "duplicate names by escape": '{"a": 1, "\\u0061": 2}',
    "duplicate names deep inside": '[{"x": [{"a": 1, "b": 2, "a": 3}]}]',
    "lone high surrogate": '["\\ud83d"]',
    "lone low surrogate": '["\\ude00"]',
    "surrogates the wrong way round": '["\\ude00\\ud83d"]',
    "lone surrogate in a name": '{"\\ud83d": 1}',
    "raw lone surrogate": '["\ud83d"]',
    "half raw, half escaped": '["\ud83d\\ude00"]',
    "one level too many": "[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1),
    "objects, one level too many": '{"a":' * (MAX_NESTING + 1) + "1" + "}" * (MAX_NESTING + 1),
    "deeper than the parser's stack": "[" * 200_000,
    "deep and closed": "[" * 200_000 + "]" * 200_000,
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_two_readers_could_understand_differently_is_refused(text):
    with pytest.raises(StrictJSONError) as refused:
        strict_loads(text)
    reason = str(refused.value)
    assert 0 < len(reason) < 300
    assert one_line(reason) == reason


ACCEPTED = {
    "{}": {},
    " \t\r\n{} \n": {},
    '{"a": {"a": 1}, "A": 2}': {"a": {"a": 1}, "A": 2},
    '"\\ud83d\\ude00"': "😀",
    '{"\\ud83d\\ude00": "😀"}': {"😀": "😀"},
    '["\\u2028\u2028", "\\u0000"]': ["\u2028\u2028", "\0"],
    "[0, -0, 1e3, 1E-400, 0.1]": [0, 0, 1000.0, 0.0, 0.1],
    "[true, false, null]": [True, False, None],
    '""': "",
}


@pytest.mark.parametrize(("text", "value"), ACCEPTED.items())
def test_what_the_standards_allow_is_accepted(text, value):
    found = strict_loads(text)
    assert found == value
    assert json.dumps(found) == json.dumps(value)


def test_a_whole_number_keeps_every_digit():
    number = 12345678901234567890 * 10**300 + 7
    assert strict_loads(f"[{number}]") == [number]


def test_nesting_up_to_the_limit_is_accepted():
    for leaf in ("", "1", "1, 2"):
        assert strict_loads("[" * MAX_NESTING + leaf + "]" * MAX_NESTING)
    assert strict_loads('{"a":' * MAX_NESTING + "1" + "}" * MAX_NESTING)
    assert strict_loads('["' + "[" * 5000 + '"]') == ["[" * 5000]


def test_half_an_escape_pair_may_stand_in_one_event_and_duplicates_may_not():
    assert loads_unique('{"delta": "\\ud83d"}') == {"delta": "\ud83d"}
    with pytest.raises(StrictJSONError):
        loads_unique('{"delta": "a", "delta": "b"}')


def test_the_reason_names_what_is_wrong():
    for text, word in {
        '{"path": 1, "path": 2}': '"path"',
        "[NaN]": "NaN",
        "{} {}": "second value",
        "": "empty",
        '{"a": ': "ends early",
        "[" * 100_000: str(MAX_NESTING),
        '["\\ud83d"]': "lone surrogate",
    }.items():
        with pytest.raises(StrictJSONError, match=word):
            strict_loads(text)


def test_many_names_cost_no_more_than_their_number():
    # A duplicate at the end of 50,000 names: a search for each takes far longer than this bound.
    names = ",".join(f'"n{number}":0' for number in range(50_000))
    begun = time.process_time()
    with pytest.raises(StrictJSONError, match='"n49999"'):
        strict_loads(f'{{{names},"n49999":0}}')
    assert time.process_time() - begun < 5


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
json_objects = st.dictionaries(st.text(max_size=8), json_values, max_size=5)


@settings(deadline=None)
@given(json_values)
def test_a_value_survives_writing_and_reading(value):
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), dumps(value)):
        assert json.dumps(strict_loads(text)) == json.dumps(value)
    assert json.dumps(thaw(freeze(value))) == json.dumps(value)


@settings(deadline=None)
@given(st.text(alphabet=st.characters(codec=None) | st.sampled_from('{}[]",:\\u0123dDe 1.-+\n')))
def test_no_text_raises_anything_but_the_strict_error(text):
    try:
        value = strict_loads(text)
    except StrictJSONError:
        return
    assert json.dumps(value) == json.dumps(json.loads(text))
    dumps(value).encode()


FROZEN = FrozenObject({"path": "a.py", "lines": [1, {"deep": [2]}], "x": {"y": None}})


def test_a_frozen_object_reads_as_what_it_was_made_of():
    assert FROZEN == {"path": "a.py", "lines": [1, {"deep": [2]}], "x": {"y": None}}
    assert FrozenObject(thaw(FROZEN)) == FROZEN
    assert FROZEN != {"path": "a.py"}
    assert FROZEN != 1
    assert hash(FROZEN) == hash(FrozenObject(thaw(FROZEN)))
    assert list(FROZEN) == ["path", "lines", "x"]
    assert len(FROZEN) == 3
    assert repr(FROZEN) == repr(thaw(FROZEN))


def test_a_frozen_object_cannot_be_changed_all_the_way_down():
    for inside in (FROZEN, FROZEN["x"], FROZEN["lines"][1]):
        assert isinstance(inside, FrozenObject)
        with pytest.raises(TypeError):
            inside["path"] = "/etc/passwd"
        with pytest.raises(TypeError):
            del inside["path"]
        with pytest.raises(AttributeError):
            inside._items = {}
        with pytest.raises(AttributeError):
            inside.new = 1
        with pytest.raises(AttributeError):
            del inside._items
        with pytest.raises(TypeError):
            inside._items["path"] = "/etc/passwd"
        for name in ("update", "pop", "popitem", "clear", "setdefault", "__ior__"):
            assert not hasattr(inside, name)
    assert isinstance(FROZEN["lines"], tuple)
    assert isinstance(FROZEN["lines"][1]["deep"], tuple)


def test_a_frozen_object_does_not_follow_what_it_was_made_of():
    source = {"a": [1], "b": {"c": 2}}
    frozen = FrozenObject(source)
    source["a"].append(2)
    source["b"]["c"] = 3
    source["d"] = 4
    assert frozen == {"a": [1], "b": {"c": 2}}
    copied = thaw(frozen)
    copied["a"].append(5)
    assert frozen == {"a": [1], "b": {"c": 2}}


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]
)
def test_a_copy_is_as_frozen_as_its_original(again):
    other = again(FROZEN)
    assert other == FROZEN
    assert isinstance(other["x"], FrozenObject)
    assert isinstance(other["lines"][1]["deep"], tuple)
    with pytest.raises(AttributeError):
        other._items = {}


def test_what_is_no_json_is_not_written():
    for value in (math.nan, math.inf, {"a": -math.inf}):
        with pytest.raises(ValueError):
            dumps(value)
    with pytest.raises(TypeError):
        dumps({"a": {1, 2}})


def test_an_escape_pair_that_was_cut_is_joined_and_a_lone_half_stays():
    assert join_surrogates("a\ud83d\ude00b") == "a😀b"
    assert join_surrogates("\ude00\ud83d") == "\ude00\ud83d"
    assert join_surrogates("\ud83d\ud83d\ude00") == "\ud83d😀"
    assert join_surrogates("plain") == "plain"


HOSTILE = ["\x1b[2J", "\x9b31m", "\u202e", "\u2066", "\ufeff", "\u200b", "\u00ad", "\U000e0041"]


@pytest.mark.parametrize("text", [*HOSTILE, "\0", "\x7f", "\r", "\ud800", "\u2028", "\u061c"])
def test_no_character_hides_text_or_turns_it_around(text):
    shown = printable(f"a{text}b")
    assert shown.startswith("a\\")
    assert shown.isprintable()
    assert one_line(f"a{text}b") == shown
    assert quote(f"a{text}b").isprintable()


def test_a_line_stays_one_line():
    assert printable("a\n\tb") == "a\n\tb"
    assert one_line("a\n\tb") == "a\\n\\tb"


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


VALUES = [
    None,
    True,
    0,
    10**5000,
    1e308,
    "",
    "x" * 100_000,
    [],
    {"a": [1]},
    deep(5000),
    "\ud800",
    b"\0",
]


def test_a_value_is_quoted_in_the_words_of_json():
    value = {"a": [None, True, 1.5, "b"]}
    assert quote(value) == quote(FrozenObject(value)) == '{"a": [null, true, 1.5, "b"]}'
    assert (quote(None), quote(False), quote(7)) == ("null", "false", "7")
    assert (quote(b"a"), quote(object)) == ("a value of type bytes", "a value of type type")
    assert quote(deep(5000)) == "an array, too large to be shown"


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_any_value_is_quoted_short_and_printable(value):
    shown = quote(value)
    assert (shown[0] == shown[-1] == '"') is isinstance(value, str)
    assert len(shown) <= 12 * MAX_QUOTED_CHARACTERS
    assert shown.isprintable()
