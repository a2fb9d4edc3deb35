"""What every chapter and every solution must hold, beside the outputs that nbval compares."""

import ast
import copy
import itertools
import json
import re
import warnings
from pathlib import Path

import nbformat
import prose
import pytest

from tools.notebooks import METADATA, WIDGET_VIEW, execute, without_volatile

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
CHAPTERS = sorted(NOTEBOOKS.glob("*.ipynb"))
SOLUTIONS = sorted((NOTEBOOKS / "solutions").glob("*.ipynb"))
EVERY = CHAPTERS + SOLUTIONS
CHAPTER_LINES, SOLUTION_LINES = 12, 24

MACHINE_PATH = re.compile(
    r"(?:^|[^\w.~-])/(?:h" + r"ome|r" + r"oot|w" + r"ork|U" + r"sers|tmp)/[\w.-]+"
    r"|\b[A-Z]:\\{1,2}\w"
)
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}")
EMOJI = re.compile("[\U0001f300-\U0001faff]")
# nbval can follow none of these, an event loop is running already, or errors would be hidden.
NOT_IN_A_CELL = re.compile(
    r"clear_output|display_id|\bOutput\(|asyncio\.run\(|anyio\.run\(|time\.sleep\(|^\s*[%!]",
    re.MULTILINE,
)


def name_of(path):
    return path.relative_to(NOTEBOOKS).as_posix()


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def source(cell):
    return "".join(cell["source"])


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def texts_of(output):
    """The text forms of one output, by kind."""
    if output["output_type"] == "stream":
        return {output["name"]: "".join(output["text"])}
    if output["output_type"] == "error":
        return {"ename": output["ename"], "evalue": output["evalue"]}
    return {
        kind: "".join(value)
        for kind, value in output["data"].items()
        if kind.startswith("text/") and isinstance(value, str | list)
    }


def outputs_of(notebook):
    return [output for cell in code_cells(notebook) for output in cell["outputs"]]


def page_of(notebook):
    return "\n\n".join(prose.markdown_cells(notebook))


def targets_of(notebook):
    return [target.partition("#")[0] for _, _, target in prose.links(page_of(notebook))]


def test_there_are_chapters_in_reading_order():
    assert CHAPTERS[0].name == "00_start_here.ipynb"
    assert len(CHAPTERS) > 1
    for path in EVERY:
        assert re.fullmatch(r"\d\d_[a-z0-9]+(_[a-z0-9]+)*\.ipynb", path.name), path.name
    # Chapters come in parts, so a number may still be open; none is given twice.
    numbers = [path.name[:2] for path in CHAPTERS]
    assert len(set(numbers)) == len(numbers)


def test_each_chapter_after_the_first_has_its_solution():
    assert [path.name for path in SOLUTIONS] == [path.name for path in CHAPTERS[1:]]


@pytest.fixture(params=EVERY, ids=name_of)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return read(path)


@pytest.fixture(params=CHAPTERS, ids=name_of)
def chapter(request):
    return request.param


def test_it_is_valid(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = nbformat.read(path, as_version=nbformat.NO_CONVERT)
        nbformat.validate(loaded)
    assert (loaded.nbformat, loaded.nbformat_minor) >= (4, 5)
    ids = [cell.id for cell in loaded.cells]
    assert len(set(ids)) == len(ids)


def test_every_cell_was_run_in_order(notebook):
    counts = [cell["execution_count"] for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1)), "run `make notebooks`"
    for cell in code_cells(notebook):
        for output in cell["outputs"]:
            assert output.get("execution_count", cell["execution_count"]) == cell["execution_count"]


def test_no_cell_is_empty(notebook):
    assert all(source(cell).strip() for cell in notebook["cells"])


def test_nothing_volatile_is_left(notebook):
    assert "widgets" not in notebook["metadata"]
    assert notebook["metadata"] == METADATA, "run `make notebooks`"
    assert all("execution" not in cell["metadata"] for cell in notebook["cells"])
    live = [output for output in outputs_of(notebook) if WIDGET_VIEW in output.get("data", ())]
    assert live == [], "a widget's model ID is another one in every run: run `make notebooks`"


def test_it_names_no_machine_and_no_address(notebook):
    problems = []
    for cell in notebook["cells"]:
        texts = [source(cell)]
        for output in cell.get("outputs", ()):
            shown = list(texts_of(output).values())
            problems += [found.group() for text in shown for found in ADDRESS.finditer(text)]
            texts += shown
        problems += [found.group() for text in texts for found in MACHINE_PATH.finditer(text)]
    assert not problems, "\n".join(problems)


def test_no_output_is_an_accident(notebook):
    for cell in code_cells(notebook):
        for output in cell["outputs"]:
            kind = output["output_type"]
            assert output.get("name") != "stderr", texts_of(output)
            if kind == "error":
                assert "raises-exception" in cell["metadata"].get("tags", ()), output["evalue"]
            if kind in {"display_data", "execute_result"}:
                plain = texts_of(output).get("text/plain", "")
                assert plain.strip(), "what a cell displays has a text form"
                assert not re.match(r"<[\w.]+( object|>)", plain), f"no text form: {plain[:80]}"


def test_each_cell_is_small_enough(path, notebook):
    limit = SOLUTION_LINES if path in SOLUTIONS else CHAPTER_LINES
    long = {
        f"cell [{cell['execution_count']}]": source(cell).count("\n") + 1
        for cell in code_cells(notebook)
        if source(cell).count("\n") + 1 > limit
    }
    assert long == {}, f"at most {limit} lines"


def test_each_cell_uses_what_a_reader_and_nbval_can_follow(notebook):
    for cell in code_cells(notebook):
        found = NOT_IN_A_CELL.search(source(cell))
        assert found is None, f"{found.group()!r} in cell [{cell['execution_count']}]"
        for node in ast.walk(ast.parse(source(cell), mode="exec")):
            if isinstance(node, ast.ImportFrom):
                assert all(alias.name != "*" for alias in node.names), "names come from somewhere"


def test_the_set_up_is_one_import_line(chapter):
    first = source(code_cells(read(chapter))[0]).strip()
    statements = ast.parse(first).body
    assert "\n" not in first, first
    assert len(statements) == 1, first
    assert isinstance(statements[0], ast.Import | ast.ImportFrom), first


def test_headings_are_a_tree_under_one_title(notebook):
    first = notebook["cells"][0]
    assert first["cell_type"] == "markdown"
    assert source(first).lstrip().startswith("# ")
    levels = [level for level, _ in prose.headings(page_of(notebook))]
    assert levels.count(1) == 1
    assert levels[0] == 1
    for above, below in itertools.pairwise(levels):
        assert below <= above + 1, f"a heading skips a level: {levels}"


def test_all_links_lead_somewhere(path, notebook):
    problems = prose.broken_links(path, page_of(notebook))
    assert not problems, "\n".join(problems)


def test_links_and_images_say_what_they_are(notebook):
    for image, label, target in prose.links(page_of(notebook)):
        assert label, f"{'an image' if image else 'a link'} without a text: {target}"
        assert label.lower() not in {"here", "link", "this", "image"}, f"[{label}]({target})"


def test_the_prose_has_no_emoji(notebook):
    assert EMOJI.findall(page_of(notebook)) == []


def test_the_first_cell_lists_the_contents(chapter):
    notebook = read(chapter)
    sections = [title for level, title in prose.headings(page_of(notebook)) if level == 2]
    linked = {target for _, _, target in prose.links(source(notebook["cells"][0]))}
    assert sections
    missing = [title for title in sections if "#" + title.replace(" ", "-") not in linked]
    assert missing == [], "the first cell links to each section: [Title](#Title-as-written)"


def test_a_chapter_links_back_next_to_its_source_and_to_the_words(chapter):
    targets = targets_of(read(chapter))
    place = CHAPTERS.index(chapter)
    assert "glossary.md" in targets
    assert any(re.fullmatch(r"(\.\./agentlib|workbook)/[\w/]+\.py", target) for target in targets)
    for neighbour in (place - 1, place + 1):
        if 0 <= neighbour < len(CHAPTERS):
            assert CHAPTERS[neighbour].name in targets
    if place > 0:
        assert f"solutions/{chapter.name}" in targets


@pytest.mark.parametrize("path", SOLUTIONS, ids=name_of)
def test_a_solution_links_to_its_chapter(path):
    assert f"../{path.name}" in targets_of(read(path))


@pytest.mark.exhaustive(keep=1)
def test_running_each_cell_twice_changes_nothing(chapter):
    """Each cell runs twice in a row; the second time shows what is committed."""
    stored = nbformat.read(chapter, as_version=4)
    doubled = copy.deepcopy(stored)
    doubled.cells = [
        twin
        for cell in stored.cells
        if cell.cell_type == "code"
        for twin in (copy.deepcopy(cell), copy.deepcopy(cell))
    ]
    for number, cell in enumerate(doubled.cells):
        cell.id = f"run-{number}"
    execute(doubled, chapter.parent)
    again = without_volatile(doubled).cells[1::2]
    for before, after in zip(code_cells(stored), again, strict=True):
        shown = [texts_of(output) for output in after.outputs]
        assert shown == [texts_of(output) for output in before["outputs"]], source(before)


def test_the_glossary_and_its_links():
    path = NOTEBOOKS / "glossary.md"
    text = path.read_text(encoding="utf-8")
    problems = prose.broken_links(path, text)
    assert not problems, "\n".join(problems)
    assert [level for level, _ in prose.headings(text)].count(1) == 1
