"""The book as a whole: its map, its words, and where each word is defined."""

import json
import re
from pathlib import Path

import prose
import pytest

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
CHAPTERS = sorted(NOTEBOOKS.glob("*.ipynb"))
DEFINED = re.compile(r"\[\*\*([^\]*]+)\*\*\]\(glossary\.md#([\w-]+)\)")
# The words of which a learner must not be in doubt.
WORDS = {
    "attempt",
    "buffer",
    "call",
    "call ID",
    "capture",
    "check",
    "committed",
    "decision",
    "draft",
    "event",
    "finding",
    "gate",
    "item",
    "receipt",
    "replay",
    "run",
    "stream",
    "turn",
    "verdict",
}


def page(path):
    return "\n\n".join(prose.markdown_cells(json.loads(path.read_text(encoding="utf-8"))))


def anchor(word):
    return word.lower().replace(" ", "-")


@pytest.fixture(scope="module")
def glossary():
    """The text of each entry, by its word."""
    text = (NOTEBOOKS / "glossary.md").read_text(encoding="utf-8")
    return {
        part.partition("\n")[0].strip(): part.partition("\n")[2].strip()
        for part in re.split(r"(?m)^## ", text)[1:]
    }


def test_the_map_has_every_chapter_in_order():
    rows = re.findall(r"(?m)^\| \[[^\]]+\]\((\w+\.ipynb)\) \|", page(CHAPTERS[0]))

    assert rows == [path.name for path in CHAPTERS[1:]]


def test_the_glossary_is_in_order_and_has_every_word(glossary):
    assert list(glossary) == sorted(glossary, key=str.lower)
    assert set(glossary) >= WORDS
    assert all(glossary.values())


def test_each_word_is_defined_in_one_chapter_and_the_glossary_leads_there(glossary):
    homes = {}
    for path in CHAPTERS:
        for _, target in DEFINED.findall(page(path)):
            homes.setdefault(target, []).append(path.name)
    assert {word: names for word, names in homes.items() if len(names) > 1} == {}

    led = {
        anchor(word): target
        for word, text in glossary.items()
        for _, _, target in prose.links(text)
        if target.endswith(".ipynb")
    }
    assert led == {word: names[0] for word, names in homes.items()}
