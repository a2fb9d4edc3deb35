"""Reading Markdown as its readers do: headings, links, and the anchors that links may name."""

import json
import re
from urllib.parse import unquote

FENCE = re.compile(r"^ {0,3}(```+|~~~+).*?^ {0,3}\1[ \t]*$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(`+)(?!`)(?:.|\n(?!\n))+?(?<!`)\1(?!`)")
HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
INLINE = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\]\([^)]*\))*)\]\(\s*<?([^)\s>]+)>?[^)]*\)")
HTML_LINK = re.compile(r"<(a|img)\b([^>]*)>", re.IGNORECASE)
ATTRIBUTE = re.compile(r"""([\w-]+)\s*=\s*("[^"]*"|'[^']*')""")


def without_code(text):
    """The text less its fenced blocks; of a code span, what it says, but no link and no mark-up."""
    return SPAN.sub(lambda span: re.sub(r"[^\w .-]", "", span[0]), FENCE.sub("", text))


def headings(text):
    """(level, title) of each heading, the title without its markup."""
    return [
        (len(marks), re.sub(r"[`*]|\]\([^)]*\)|\[", "", title))
        for marks, title in HEADING.findall(FENCE.sub("", text))
    ]


def links(text):
    """(is an image, its text, its target) of each link."""
    prose = without_code(text)
    found = []
    for mark, label, target in INLINE.findall(prose):
        found.append((bool(mark), label.strip(), target))
        found += links(label)
    for tag, inside in HTML_LINK.findall(prose):
        attributes = {name.lower(): value[1:-1] for name, value in ATTRIBUTE.findall(inside)}
        image = tag.lower() == "img"
        target = attributes.get("src" if image else "href")
        if target is not None:
            found.append((image, attributes.get("alt", "").strip(), target))
    return found


def markdown_cells(notebook):
    """The text of each Markdown cell of a notebook."""
    return ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "markdown"]


def anchors(path):
    """The anchors of a page: JupyterLab's form in a notebook, GitHub's in a Markdown file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        pages = markdown_cells(json.loads(text))
        return {title.replace(" ", "-") for page in pages for _, title in headings(page)}
    titles = [title.lower() for _, title in headings(text)]
    return {re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles}


def broken_links(path, text):
    """What is wrong with the relative links of a page's text, each as a sentence."""
    problems = []
    for _, label, target in links(text):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            if not target.startswith(("https://", "mailto:")):
                problems.append(f"{target}: links to the outside use https")
            continue
        place, _, fragment = unquote(target).partition("#")
        page = (path.parent / place).resolve() if place else path
        if not page.exists():
            problems.append(f"[{label}]({target}): there is no such file")
        elif fragment and page.suffix in {".md", ".ipynb"} and fragment not in anchors(page):
            problems.append(f"[{label}]({target}): that page has no such heading")
    return problems
