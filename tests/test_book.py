"""The book as a whole: its map, its words, and where each word is defined."""

import json
import re
from pathlib import Path

import prose
import pytest

from workbook.exercises.catalogue import exercise as task

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
CHAPTERS = sorted(NOTEBOOKS.glob("*.ipynb"))
MINUTES = re.compile(r"About (\d+) minutes, with one exercise of (\d+)\.")
# What a reader does in a minute: words, lines of code, lines of output.
WORDS_A_MINUTE, CODE_A_MINUTE, OUTPUT_A_MINUTE = 200, 12, 60
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


def questions(text):
    """The question of each chapter in a map, by the chapter's number and title."""
    return re.findall(r"(?m)^\| \[(\d\d [^\]]+)\]\([^)]+\) \| ([^|]+?) \|", text)


def test_the_readme_asks_the_questions_of_the_map():
    readme = questions((NOTEBOOKS.parent / "README.md").read_text(encoding="utf-8"))
    assert len(readme) == len(CHAPTERS)
    assert readme[1:] == questions(page(CHAPTERS[0]))


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


def reading_minutes(path):
    """How long it takes to read a chapter, its exercise left out."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    lines = sum(len("".join(cell["source"]).splitlines()) for cell in code)
    texts = [
        "".join(output.get("data", {}).get("text/plain", output.get("text", "")))
        for cell in code
        for output in cell["outputs"]
    ]
    shown = sum(len(text.splitlines()) for text in texts)
    words = len(re.findall(r"\w+", page(path)))
    return words / WORDS_A_MINUTE + lines / CODE_A_MINUTE + shown / OUTPUT_A_MINUTE


@pytest.mark.parametrize("path", CHAPTERS[1:], ids=lambda path: path.name[:2])
def test_a_chapter_says_how_long_it_takes_and_the_map_says_the_same(path):
    said, exercise = map(int, MINUTES.search(page(path)).groups())
    row = re.search(rf"\({path.name}\) \|.*\| (\d+) \|", page(CHAPTERS[0]))

    assert 15 <= said <= 25
    assert said == int(row[1])
    assert exercise == task(path.name[:2]).minutes
    assert said * 0.4 <= reading_minutes(path) <= said


def test_each_chapter_opens_in_another_place():
    """The first words of each question; no hour or place stands in two of them."""
    openings = [
        re.search(r"## The question\s+((?:[\w']+\W+){4})", page(path))[1] for path in CHAPTERS[1:]
    ]
    assert len(set(openings)) == len(openings)
    hours = [
        hour
        for path in CHAPTERS[1:]
        for hour in re.findall(r"\d+ [ap]\.m\.", page(path).partition("## Predict")[0])
    ]
    assert len(set(hours)) == len(hours)
