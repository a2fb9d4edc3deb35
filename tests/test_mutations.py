"""Mutations of a list, a tuple and a text: each does what its name says, on a copy."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlib.mutations import cut, double, drop, follow, nodes, put, remove, swap

LETTERS = st.text(min_size=1, max_size=6)
KINDS = {"list": list, "tuple": tuple, "text": "".join}
JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
EVENTS = st.dictionaries(st.text(max_size=2), JSON, min_size=1, max_size=3)


# What each leaves, written apart from it: by the place of each letter.
LEFT = {
    cut: lambda letters, at: [x for n, x in enumerate(letters) if n < at],
    drop: lambda letters, at: [x for n, x in enumerate(letters) if n != at],
    double: lambda letters, at: [x for n, x in enumerate(letters) for _ in range(1 + (n == at))],
}


@given(letters=LETTERS, data=st.data())
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mutate", LEFT, ids=lambda mutate: mutate.__name__)
def test_a_sequence_is_mutated_at_one_place(mutate, kind, letters, data):
    at = data.draw(st.integers(0, len(letters) - 1))
    items = KINDS[kind](letters)
    before = copy.copy(items)
    assert mutate(items, at) == KINDS[kind](LEFT[mutate](letters, at))
    assert items == before


@given(letters=st.text(min_size=2, max_size=6), data=st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_two_neighbours_are_swapped_and_swapped_back(kind, letters, data):
    at = data.draw(st.integers(0, len(letters) - 2))
    items = KINDS[kind](letters)
    swapped = swap(items, at)
    order = [*range(at), at + 1, at, *range(at + 2, len(letters))]
    assert list(swapped) == [letters[n] for n in order]
    assert swap(swapped, at) == items


@given(event=EVENTS)
def test_every_node_is_followed_put_and_removed_and_the_event_stays(event):
    before = copy.deepcopy(event)
    for path, value in nodes(event):
        assert follow(event, path) == value
        assert follow(put(event, path, "new"), path) == "new"
        assert put(put(event, path, "new"), path, value) == before
        gone = remove(event, path)
        holder, kept = follow(event, path[:-1]), follow(gone, path[:-1])
        assert len(kept) == len(holder) - 1
    assert event == before


@pytest.mark.parametrize("path", [("b",), (0,), ("a", 5), ("a", 0, "c"), ("a", "b")])
def test_a_path_that_leads_nowhere_leads_to_none(path):
    assert follow({"a": [1]}, path) is None
