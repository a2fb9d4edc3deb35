"""Schemas: the strict form, validation by draft 2020-12, and those that a capture carries."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import COUNT, ONE_CALL, TOOLS, Call, Story, read, rejected, tell

from agentlib import Catalog, ToolSpec
from agentlib.errors import CatalogError
from agentlib.jsonvalues import FrozenObject
from agentlib.schemas import (
    MAX_PROBLEM_CHARACTERS,
    problem,
    strict_strings,
    takes_nothing,
    unevaluated,
    validator,
)


def tool(schema, name="t"):
    return ToolSpec(name, "", FrozenObject(schema))


def captured(schema, name="t"):
    return Catalog([tool(schema, name)], captured=True)


def status(outcome, check="schema"):
    return next(f for f in outcome.reader.assembly.findings() if f.check == check)


def test_named_string_parameters_are_all_required_and_no_others_allowed():
    schema = strict_strings({"path": "The file.", "old": ""})
    assert schema == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file."},
            "old": {"type": "string"},
        },
        "required": ["path", "old"],
        "additionalProperties": False,
    }
    checker = validator(schema)
    assert problem(checker, {"path": "a", "old": "b"}) is None
    for broken in ({}, {"path": "a"}, {"path": "a", "old": 1}, {"path": "a", "old": "", "x": ""}):
        assert problem(checker, broken)


@pytest.mark.parametrize("value", [True, False, 1.5, "1", None, [1], {}])
def test_only_a_whole_number_is_an_integer(value):
    assert TOOLS.problem("count", {"to": value})
    assert TOOLS.problem("count", {"to": 1}) is None
    assert TOOLS.problem("count", {"to": 2.0}) is None


def test_a_problem_says_where_and_stays_short():
    assert "'to'" in TOOLS.problem("count", {"to": "x"})
    assert "to" in TOOLS.problem("count", {})
    long = TOOLS.problem("count", {"to": "x" * 100_000})
    assert len(long) <= MAX_PROBLEM_CHARACTERS


PARAMETERLESS = [
    {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    {"type": "object", "properties": {}},
    {"type": "object"},
]
WITH_PARAMETERS = [
    {"type": "object", "properties": {"depth": {"type": "integer", "default": 1}}},
    {"type": "object", "properties": {}, "additionalProperties": True},
    {"type": "object", "additionalProperties": {"type": "string"}},
    {"type": "object", "patternProperties": {"^x": {}}},
    {"type": "object", "anyOf": [{"properties": {"a": {}}}]},
    {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"a": {}}}}},
]


def test_a_tool_without_any_parameter_is_told_from_one_with_defaults():
    assert all(takes_nothing(schema) for schema in PARAMETERLESS)
    assert not any(takes_nothing(schema) for schema in WITH_PARAMETERS)


@pytest.mark.parametrize("schema", [*PARAMETERLESS, *WITH_PARAMETERS])
def test_empty_arguments_are_an_empty_object_only_for_a_tool_without_parameters(schema):
    events = tell(Story((Call("t", "", "call_1"),)))
    catalog = Catalog([tool(schema)])
    if schema in PARAMETERLESS:
        assert read(events, catalog).decision.calls[0].arguments == {}
    else:
        assert rejected(events, catalog).check == "strict_json"
    assert rejected(events).check == "strict_json"
    blank = tell(Story((Call("t", " ", "call_1"),)))
    assert rejected(blank, catalog).check == "strict_json"


NO_SCHEMAS = {
    "unknown type": {"type": "text"},
    "type is a number": {"type": 3},
    "properties is a list": {"properties": []},
    "required is text": {"required": "path"},
    "negative length": {"minLength": -1},
    "pattern is no expression": {"pattern": "("},
    "pattern overflows": {"pattern": "x{99999999999}"},
    "pattern nests": {"pattern": "(" * 20_000},
}


@pytest.mark.parametrize("schema", NO_SCHEMAS.values(), ids=NO_SCHEMAS)
def test_what_is_no_schema_is_refused_when_the_catalog_is_made(schema):
    with pytest.raises(CatalogError, match='tool "t": not a JSON Schema') as refused:
        Catalog([tool({"type": "object", "properties": {"a": schema}})])
    assert len(str(refused.value)) < 400


UNWRITABLE = {
    "NaN": {"type": "object", "default": float("nan")},
    "no JSON value": {"type": "object", "default": {1, 2}},
    "lone surrogate": {"type": "object", "description": "\ud800"},
}


@pytest.mark.parametrize("schema", UNWRITABLE.values(), ids=UNWRITABLE)
def test_a_schema_that_cannot_be_sent_is_refused(schema):
    with pytest.raises(CatalogError, match='tool "t"'):
        Catalog([tool(schema)])
    with pytest.raises(CatalogError, match='tool "t"'):
        Catalog([ToolSpec("t", "\udc00", FrozenObject({"type": "object"}))])


BOMB = {"$defs": {"d0": {"type": "string"}}, "type": "object"}
BOMB["$defs"] |= {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n - 1}"}] * 2} for n in range(1, 60)}
BOMB["properties"] = {"path": {"$ref": "#/$defs/d59"}}

UNSAFE = {
    "catastrophic pattern": {"properties": {"path": {"pattern": "^(([a-z/.])+.)+[0-9]$"}}},
    "pattern for names": {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
    "pattern inside a name rule": {"propertyNames": {"pattern": "^(a+)+$"}},
    "remote reference": {"properties": {"path": {"$ref": "http://127.0.0.1:9/schema"}}},
    "file reference": {"$ref": "file:///etc/passwd"},
    "reference to itself": {"$ref": "#"},
    "references in a ring": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
    "references that double": BOMB,
    "dynamic reference": {"$dynamicRef": "#x", "$dynamicAnchor": "x"},
    "unknown keyword": {"properties": {"path": {"x-check": 1}}},
    "negation": {"not": {"pattern": "a"}},
    "unevaluated properties": {"unevaluatedProperties": False},
    "unique items": {"properties": {"path": {"uniqueItems": True}}},
    "too many rules": {"anyOf": [{"type": "string"}] * 20_000},
    "too many values": {"properties": {"path": {"enum": list(range(20_000))}}},
    "malformed": {"properties": ["path"]},
    "an identity of its own": {"$id": "http://[", "type": "object"},
}


@pytest.mark.parametrize("schema", UNSAFE.values(), ids=UNSAFE)
def test_a_captured_schema_that_could_do_harm_is_not_evaluated_and_the_finding_says_so(schema):
    long = "a" * 40 + "/"
    events = tell(Story((Call("read_file", f'{{"path": "{long}"}}', "call_1"),)))
    outcome = read(events, captured({"type": "object", **schema}, "read_file"))
    finding = status(outcome)
    assert outcome.decision is not None
    assert finding.status == "not_checked"
    assert finding.detail.startswith('the captured schema of "read_file" is not evaluated: ')
    assert len(finding.detail) < 300


def test_a_captured_schema_of_plain_rules_is_evaluated():
    schema = {
        "type": "object",
        "title": "Arguments",
        "properties": {
            "pattern": {"type": "string", "description": "a parameter named as a keyword"},
            "not": {"type": ["integer", "null"], "minimum": 1, "default": 2},
            "mode": {"enum": ["fast", "slow"]},
            "files": {"type": "array", "items": {"type": "string", "minLength": 1}},
            "either": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {}}]},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    }
    assert unevaluated(schema, {"pattern": "x"}) is None
    catalog = captured(schema)
    for arguments in ('{"pattern": "("}', '{"pattern": "", "not": null, "files": ["a"]}'):
        outcome = read(tell(Story((Call("t", arguments, "call_1"),))), catalog)
        assert status(outcome) == ("schema", "pass", "")
    for arguments in (
        "{}",
        '{"pattern": 1}',
        '{"pattern": "", "not": true}',
        '{"pattern":"","x":1}',
    ):
        assert rejected(tell(Story((Call("t", arguments, "call_1"),))), catalog).check == "schema"


def test_a_captured_schema_beside_an_unsafe_one_still_rejects():
    tools = [tool({"properties": {"a": {"pattern": "a"}}}, "loose"), COUNT]
    catalog = Catalog(tools, captured=True)
    story = Story((Call("loose", "{}", "call_1"), Call("count", '{"to": true}', "call_2")))
    assert rejected(tell(story), catalog).check == "schema"


@pytest.mark.exhaustive
def test_a_captured_catalog_costs_nothing_for_tools_that_are_not_called():
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(100)}}
    catalog = Catalog([tool(schema, f"t{n}") for n in range(500)], captured=True)
    failure = rejected(tell(ONE_CALL), catalog)
    assert failure.check == "exposed"
    assert len(failure.reason) < 1000


UNIQUE = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}


def test_equal_items_are_told_as_json_understands_equal():
    catalog = Catalog([tool(UNIQUE)])
    for items in ([1, True], [0, False, None, "", [], {}], [{"a": 1}, {"a": True}], [[1], ["1"]]):
        assert catalog.problem("t", {"a": items}) is None
    for items in ([1, 1.0], ["a", "a"], [{"a": 1, "b": [2]}, {"b": [2], "a": 1.0}], [None, None]):
        assert "not unique" in catalog.problem("t", {"a": items})


def test_unique_items_cost_no_more_than_their_number():
    items = [{}, *([n] for n in range(20_000))]
    catalog = Catalog([tool(UNIQUE)])
    begun = time.process_time()
    assert catalog.problem("t", {"a": items}) is None
    assert time.process_time() - begun < 5


def test_a_schema_of_ones_own_may_use_patterns_and_references_of_its_own():
    schema = {
        "type": "object",
        "properties": {"path": {"$ref": "#/$defs/path"}},
        "$defs": {"path": {"type": "string", "pattern": "^[a-z.]+$"}},
    }
    catalog = Catalog([tool(schema, "read_file")])
    assert catalog.problem("read_file", {"path": "a.py"}) is None
    assert catalog.problem("read_file", {"path": "A.py"})


@pytest.mark.parametrize(
    "reference", ["http://127.0.0.1:9/x", "file:///etc/passwd", "#/$defs/no", "#"]
)
def test_nothing_is_fetched_and_no_reference_crashes(reference):
    schema = {
        "type": "object",
        "properties": {"path": {"$ref": reference}},
        "allOf": [{"$ref": reference}],
    }
    catalog = Catalog([tool(schema, "read_file")])
    failure = rejected(tell(ONE_CALL), catalog)
    assert failure.check == "schema"
    assert len(failure.reason) < 400


KEYWORDS = (
    "type properties items anyOf allOf $ref pattern required enum minimum additionalProperties "
    "patternProperties const multipleOf maxLength $defs not"
)
keywords = st.sampled_from(KEYWORDS.split())
schemas = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["string", "#", "(", "object", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keywords, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(keywords, schemas, max_size=4))
def test_no_captured_schema_makes_anything_but_a_finding(schema):
    outcome = read(tell(Story((Call("t", '{"a": [1, "x", {"b": null}]}', "c"),))), captured(schema))
    assert status(outcome).status in ("pass", "fail", "not_checked")
    assert (outcome.decision is None) == (status(outcome).status == "fail")
