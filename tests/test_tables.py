"""One description of a table, written twice: its text and its HTML say the same."""

import html
import re

from agentlib.tables import Cell, Table, scrollable, table

HOSTILE = '<img src=x onerror="alert(1)">'


def words(markup):
    return html.unescape(re.sub(r"<[^>]+>", " ", markup)).split()


def test_text_and_html_have_the_same_words():
    shown = Table(("", "b"), (("row", Cell("1", "color:red")), ("other", "2")), named_rows=True)
    lines = [line for line in repr(shown).splitlines() if "---" not in line]

    assert words(shown._repr_html_()) == " ".join(lines).split()


def test_every_text_is_escaped_wherever_it_stands():
    shown = Table(
        (HOSTILE,), ((HOSTILE,), (Cell(HOSTILE),)), title=HOSTILE, kinds=(HOSTILE,), named_rows=True
    )

    assert "<img" not in shown._repr_html_()
    assert "<img" not in scrollable(HOSTILE, shown._repr_html_())


def test_headings_name_their_columns_and_rows():
    markup = Table(("", "b"), (("c", "d"),), named_rows=True, style="")._repr_html_()

    assert markup == (
        '<table><thead><tr><td></td><th scope="col">b</th></tr></thead>'
        '<tbody><tr><th scope="row">c</th><td>d</td></tr></tbody></table>'
    )


def test_a_cell_adds_its_style_and_its_own_markup():
    row = (Cell("a; b", "color:red", "a<br>b"), "c")
    markup = Table((), (row,), kinds=("leak",))._repr_html_()

    assert markup == (
        '<table><tr class="leak"><td style="text-align:left;color:red">a<br>b</td>'
        '<td style="text-align:left">c</td></tr></table>'
    )


def test_a_caption_is_the_title():
    markup = Table(("a",), (), title="T & t")._repr_html_()

    assert "<strong>T &amp; t</strong></caption><thead>" in markup
    assert repr(table("a, b", [(1, None)])).splitlines()[-1] == "1  None"
