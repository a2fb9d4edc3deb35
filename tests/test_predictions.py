"""The predict beats: every chapter has a question, and every choice says why."""

import json
import re
from pathlib import Path

import pytest
import traitlets

from workbook.quiz.predictions import predict
from workbook.quiz.questions import QUESTIONS, Choice, Question, read

CHAPTERS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("[01]*.ipynb"))
HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.fixture(params=QUESTIONS.values(), ids=QUESTIONS)
def question(request):
    return request.param


def code_of(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", CHAPTERS[1:], ids=lambda path: path.name[:2])
def test_each_chapter_asks_its_question_and_explains_it_later(path):
    code = code_of(path)
    number = path.name[:2]
    asks = [at for at, text in enumerate(code) if f'predict("{number}")' in text]
    explains = [at for at, text in enumerate(code) if re.search(r"\bguess\.explain\(\)", text)]

    assert len(asks) == len(explains) == 1
    assert asks[0] < explains[0]


def test_there_is_no_question_without_its_chapter():
    assert list(QUESTIONS) == [path.name[:2] for path in CHAPTERS[1:]]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("choices = []", "'text'"),
        ('text = "?"', "'choices'"),
        ('text = "?"\nchoices = [{text = "a", why = "b", right = true}]', "saw 1, 1 of them right"),
        ('text = "?"\nchoices = [{text = "a", reason = "b"}]', "'reason'"),
    ],
)
def test_a_file_that_holds_no_question_is_refused_by_the_number(tmp_path, text, problem):
    path = tmp_path / "questions.toml"
    path.write_text(f'["07"]\n{text}\n', encoding="utf-8")

    with pytest.raises(ValueError, match=r"questions\.toml, question 07: .*" + re.escape(problem)):
        read(path)


def test_each_choice_has_its_own_explanation(question):
    whys = {choice.why for choice in question.choices}
    wrong = [choice.why for choice in question.choices if not choice.right]
    texts = [choice.text for choice in question.choices]

    assert len(set(texts)) == len(texts) >= 3
    assert all(why.endswith((".", "!")) and len(why) >= 30 for why in whys)
    assert next(c.why for c in question.choices if c.right) not in wrong


def test_a_question_is_plain_text_since_a_form_shows_no_markup(question):
    texts = [question.text, *(each for choice in question.choices for each in choice[:2])]

    assert not any(mark in text for mark in "`*_" for text in map(without_names, texts))


def without_names(text):
    """A text without what stands in quotation marks: a name may have an underscore."""
    return re.sub(r"“[^”]*”", "", text)


def test_before_the_guess_the_text_form_tells_no_answer(question):
    form = repr(predict(question.number))

    assert all(choice.text in form for choice in question.choices)
    assert not any(choice.why in " ".join(form.split()) for choice in question.choices)
    assert "●" not in form


def test_each_guess_is_answered_in_every_form(question):
    for letter, choice in question.by_letter.items():
        guess = predict(question.number).choose(letter)
        shown = " ".join(repr(guess).split())

        assert (guess.choice, guess.right) == (letter, choice.right)
        assert choice.why in shown
        assert ("right: " if choice.right else "not so: ") in shown
        assert f"● {letter} {choice.text}" in shown
        assert "· your choice" in guess.explain()._repr_html_()


def test_all_choices_are_explained_afterwards(question):
    explained = predict(question.number).explain()
    shown = " ".join(repr(explained).split())

    assert all(choice.why in shown for choice in question.choices)
    assert shown.count("✓") == 1
    assert shown.count("✗") == len(question.choices) - 1


def test_a_letter_that_is_none_is_refused_and_changes_nothing():
    guess = predict("03").choose("b")
    with pytest.raises(traitlets.TraitError, match="expected one of a, b, c, d, saw 'x'"):
        guess.choose("x")

    assert guess.choice == "b"


def test_an_unknown_question_is_said_to_be_one():
    with pytest.raises(ValueError, match="no question '99'; there are: 01, 02"):
        predict("99")


@pytest.mark.parametrize(
    "choices",
    [
        [Choice("a", "b", right=True)],
        [Choice("a", "b"), Choice("c", "d")],
        [Choice("a", "b", right=True), Choice("c", "d", right=True)],
        [Choice(str(n), "b", right=not n) for n in range(7)],
    ],
    ids=["one", "none right", "two right", "seven"],
)
def test_a_question_that_cannot_be_asked_is_refused(choices):
    with pytest.raises(ValueError, match=r"expected 2 to 6 choices, one right; saw \d"):
        Question("99", "Which?", tuple(choices))


def test_a_question_of_ones_own_is_asked_and_its_markup_stays_text():
    own = Question("99", HOSTILE, (Choice(HOSTILE, HOSTILE, right=True), Choice("no", "Not so.")))
    guess = predict(own)
    page = guess._repr_mimebundle_()[0]["text/html"] + guess.explain()._repr_html_()

    assert HOSTILE not in page
    assert page.count("&lt;img") == 6
