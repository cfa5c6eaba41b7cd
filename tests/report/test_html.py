"""The HTML page: what it says, what it ties together, that anyone can use it, and that no ledger can break it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files
from itertools import pairwise

import pytest
from page import Element, Page
from stories import STORIES, backward, ended, reset, started

from ledgers import Book, folded_loop, freed_graph, gradient_lab, scalar, term, value
from whygrad.ledger import Ledger, events
from whygrad.ledger.events import ModuleId, Shape
from whygrad.report.html import render
from whygrad.report.page.course import course
from whygrad.report.view import view

Golden = Callable[[str, str], None]

LEDGERS: dict[str, Callable[[], Ledger]] = STORIES | {
    made.__name__: made for made in (gradient_lab, folded_loop, freed_graph)
}

TWO_MEGABYTES = 2_000_000


@lru_cache
def page_of(name: str) -> Page:
    return Page(render(LEDGERS[name]()))


def size(html: str) -> int:
    return len(html.encode("utf-8"))


def said(page: Page) -> str:
    """The page's text without the source, one block a line: what a person reads of it."""
    blocks = {"h1", "h2", "h3", "p", "li", "summary", "tr", "caption", "div", "br"}
    lines: list[str] = [""]

    def walk(element: Element) -> None:
        for child in element.children:
            if isinstance(child, str):
                lines[-1] += child
            elif child["class"] != "source":
                if child.tag in blocks:
                    lines.append("")
                walk(child)
                if child.tag in blocks:
                    lines.append("")
                elif child.tag in ("td", "th", "br"):
                    lines[-1] += " "

    walk(page.root.one("header"))
    walk(page.root.one("main"))
    return "\n".join(filter(None, (" ".join(line.split()) for line in lines))) + "\n"


def cells(table: Element) -> list[list[str]]:
    return [[cell.text for cell in row.all("td")] for row in table.all("tr")]


# --- what it says ---------------------------------------------------------------------------------


def test_golden_text(golden: Golden) -> None:
    golden("gradient_lab_page.txt", said(page_of("gradient_lab")))


def test_a_buffers_states_are_told_in_order() -> None:
    states = page_of("gradient_lab").by_id("g1").one("ol", "states")
    assert [state.text for state in states.all("li")] == ["None", "20", "40", "None", "20"]


@pytest.mark.parametrize("name", LEDGERS)
def test_the_course_of_a_buffer_is_its_states(name: str) -> None:
    for buffer in view(LEDGERS[name]()).buffers:
        assert tuple(state.value for state in course(buffer)) == buffer.states()


def test_an_addition_shows_what_was_there_and_what_came() -> None:
    added = page_of("gradient_lab").by_id("g1").one("li", "added")
    assert "20 → 40 added by backward #2" in added.text
    assert cells(added.one("table", "terms")) == [
        ["", "20", "was there: no reset since backward #1"],
        ["+", "20", "through w * 2.0, line 13"],
    ]


def test_every_term_of_one_backward_is_listed() -> None:
    assert cells(page_of("two_terms").by_id("g1").all("table", "terms")[0]) == [
        ["", "27", "through w ** 3, line 8"],
        ["+", "20", "through w * 20, line 8"],
    ]


def test_an_uncaught_exception_stands_before_the_gradients() -> None:
    html = render(freed_graph())
    assert html.index("its saved tensors were freed by backward #1, line 3") < html.index('id="gradients"')


def test_nothing_to_look_at_first_leaves_no_empty_place() -> None:
    assert "Look here first" not in render(gradient_lab())


def test_the_call_inside_is_told_under_the_call_that_made_it() -> None:
    calls = page_of("gradient_lab").by_id("modules").closest("section").all("div", "call")
    line_32 = next(call for call in calls if "(1, 2) → (1, 1) = 0" in call.text)
    inside = line_32.closest("li").one("details")
    assert [call.one("code").text for call in inside.all("div", "call")] == ["model.0", "model.1"]


def test_a_broken_contract_is_unfolded() -> None:
    contract = next(p for p in page_of("gradient_lab").root.all("p") if p.text.startswith("Linear(2, 1) expected"))
    assert "open" in contract.closest("details").attributes


def test_a_light_loop_is_counted() -> None:
    assert "Steps 4 to 303, recorded lightly: 300 writes, 300 resets" in page_of("folded_loop").by_id("g1").text


def test_a_derivation_stands_under_its_buffer() -> None:
    class Derived:
        def lines(self) -> list[str]:
            return ["d/dw (2*w - 1)^2 = 4*(2*w - 1) = 20"]

    ledger = gradient_lab()
    page = Page(render(ledger, derivations={ledger.leaves()[0]: Derived()}))
    assert "4*(2*w - 1) = 20" in page.by_id("g1").one("div", "derivation").text


def test_a_ledger_without_anything_is_a_page() -> None:
    page = Page(render(Book("", program="empty.py").ledger))
    assert "No tensor requires grad, and no backward ran." in page.root.text
    assert "The ledger breaks off before the program ended." in page.root.text


# --- what it ties together ------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEDGERS)
def test_ids_are_unique_and_every_link_leads_to_one(name: str) -> None:
    page = page_of(name)
    assert len(page.ids) == len(set(page.ids))
    links = {link["href"] for link in page.root.all("a")}
    assert links <= {f"#{name}" for name in page.ids}
    sites = {site for element in page.root.all() for site in element["data-sites"].split()}
    assert sites <= set(page.ids)
    assert {mark["data-of"] for mark in page.root.all("mark") if mark["data-of"]} <= set(page.ids)


@pytest.mark.parametrize("name", LEDGERS)
def test_every_buffer_event_with_a_line_is_tied_to_it(name: str) -> None:
    page = page_of(name)
    for event in page.root.all("li", "event"):
        if event.all("a", "where"):
            if not event["data-sites"]:
                continue  # a fold: the events in it have their own
            link = event.all("a", "where")[0]
            assert link["href"].removeprefix("#") in event["data-sites"].split()
            assert page.by_id(link["href"].removeprefix("#")).closest("li").parent is not None


def test_a_term_points_at_the_very_expression() -> None:
    page = page_of("gradient_lab")
    link = page.by_id("g1").all("table", "terms")[0].one("a")
    assert (page.by_id(link["href"].removeprefix("#")).text, link.text) == ("w * 2.0", "w * 2.0")


def test_a_line_that_did_something_leads_to_its_events() -> None:
    page = page_of("gradient_lab")
    line_13 = page.by_id("f1L13").one("a", "no")
    assert line_13["aria-label"] == "line 13, 2 events"
    assert "20 → 40" in page.by_id(line_13["href"].removeprefix("#")).text
    assert not page.by_id("f1L12").all("a")


def test_source_is_shown_as_it_was() -> None:
    source = gradient_lab().source("gradient_lab.py")
    assert source is not None
    shown = [line.one("code").raw for line in page_of("gradient_lab").root.one("ol", "lines").all("li")]
    assert shown == source.splitlines()


def test_each_file_has_its_section_and_the_programs_own_comes_first() -> None:
    titles = [section.one("h2").text for section in page_of("not_a_number").root.all("section", "file")]
    assert len(titles) == 2
    assert titles[0] == "train.py"
    assert titles[1].endswith("losses.py")


def test_a_long_file_shows_what_did_something_and_folds_the_rest() -> None:
    source = "\n".join(["import torch", *["pass"] * 298, "w.grad = None", *["pass"] * 100])
    book = Book(source, program="long.py")
    weight = book.leaf("w", scalar(1.0))
    reset(book, book.site(300, "w.grad = None"), weight, scalar(2.0), by="= None")
    page = Page(render(ended(book)))
    open_lines = [line["id"] for line in page.root.all("li") if line["id"].startswith("f1L") and not _is_folded(line)]
    assert open_lines == [f"f1L{number}" for number in range(297, 304)]
    summaries = [fold.text for fold in page.root.one("section", "file").all("summary")]
    assert summaries == ["Lines 1 to 296: nothing recorded", "Lines 304 to 400: nothing recorded"]


def _is_folded(element: Element) -> bool:
    while element.parent is not None:
        if element.tag == "details" and "open" not in element.attributes:
            return True
        element = element.parent
    return False


# --- that anyone can use it -----------------------------------------------------------------------


@pytest.mark.parametrize("name", LEDGERS)
def test_the_page_has_landmarks_a_language_and_ordered_headings(name: str) -> None:
    page = page_of(name)
    assert page.root.one("html")["lang"] == "en"
    assert page.root.one("title").text
    for landmark in ("main", "header", "footer", "nav", "h1"):
        assert len(page.root.all(landmark)) == 1
    levels = [int(element.tag[1]) for element in page.root.all() if re.fullmatch("h[1-6]", element.tag)]
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    first = page.root.one("body").all()[0]
    assert (first.tag, first["class"], first["href"]) == ("a", "skip", "#gradients")


@pytest.mark.parametrize("name", LEDGERS)
def test_everything_has_a_name_and_can_be_reached(name: str) -> None:
    page = page_of(name)
    for element in page.root.all():
        if "aria-labelledby" in element.attributes:
            assert page.by_id(element["aria-labelledby"]).text
        if element.tag in ("a", "button", "summary"):
            assert element.text or element["aria-label"]
        if element.tag == "details":
            first = element.all()[0]
            assert first.tag == "summary"
            assert not first.all("a")
        if element.tag == "th":
            assert element["scope"]
        if {"scroll", "wide"} & set(element["class"].split()):
            assert (element["tabindex"], element["role"]) == ("0", "group")
            assert element["aria-label"] or element["aria-labelledby"]
        assert not element["tabindex"].startswith("-")


def test_the_theme_button_needs_its_script_and_hides_without() -> None:
    assert "hidden" in page_of("gradient_lab").root.one("button").attributes


def test_no_event_is_told_by_colour_alone() -> None:
    for event in page_of("gradient_lab").by_id("g1").all("li", "event"):
        (kind,) = set(event["class"].split()) - {"event"}
        assert f"{kind} by" in event.text


@pytest.mark.parametrize("theme", [0, 1])
def test_all_text_has_enough_contrast(theme: int) -> None:
    css = files("whygrad.report.page").joinpath("page.css").read_text(encoding="utf-8")
    colours = {
        name: pair.split(",")[theme].strip() for name, pair in re.findall(r"--([\w-]+): light-dark\(([^)]+)\)", css)
    }
    inks = [colour for name, colour in colours.items() if name.startswith("ink")]
    papers = [colour for name, colour in colours.items() if name.startswith("paper")]
    assert (len(inks), len(papers)) == (3, 3)
    assert min(contrast(ink, paper) for ink in inks for paper in papers) >= 4.5


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours (WCAG 2, 1.4.3)."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# --- that no ledger can break it ------------------------------------------------------------------


@pytest.mark.parametrize("name", LEDGERS)
def test_the_page_loads_nothing(name: str) -> None:
    page = page_of(name)
    assert not page.root.all("img") + page.root.all("iframe") + page.root.all("object")
    for element in page.root.all():
        assert "src" not in element.attributes
        assert element["href"][:1] in ("", "#") or element["href"] == "data:,"
        assert not [name for name in element.attributes if name.startswith("on")]
    assert not re.search(r"url\(|@import|https?:", page.root.one("style").raw + page.root.one("script").raw)


def test_only_its_own_script_may_run() -> None:
    page = page_of("gradient_lab")
    digest = base64.b64encode(hashlib.sha256(page.root.one("script").raw.encode()).digest()).decode()
    (policy,) = [meta for meta in page.root.all("meta") if meta["http-equiv"] == "Content-Security-Policy"]
    assert f"script-src 'sha256-{digest}'" in policy["content"]
    assert policy["content"].startswith("default-src 'none'")


EVIL = "</code></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;{{ 7*7 }}{% raw %}"


def hostile(text: str) -> Ledger:
    """`text` wherever a program, or whoever wrote the ledger, can put some."""
    source = f"w = {text}\nloss = w * '{text}'\nloss.backward()\nassert '{text}'\n"
    book = Book(source, program=text, python=text, platform=text, argv=(text, text))
    book.add(
        events.Environment, engine=text, version=text, numpy=text, threads=1, deterministic=True, default_dtype=text,
        device=text,
    )  # fmt: skip
    site = book.site(1, text, function=text)
    call = book.site(3, "loss.backward()")
    weight = book.leaf(f"{text}.weight", scalar(1.0), site, dtype=text, device=text)
    root, node = book.operation(book.site(2, f"w * '{text}'"), text, [], scalar(2.0))
    backward(book, call, root, scalar(2.0), {weight: (None, (term(1.0, node, site, text),), scalar(1.0))})
    book.add(events.GradChanged, site=site, tensor=weight, by=text, before=scalar(1.0), after=scalar(float("nan")))
    reset(book, site, weight, scalar(1.0), by=text)
    module = ModuleId(1)
    book.add(events.Module, id=module, path=text, kind=text, config=text)
    shape = Shape(tensor=root, shape=(1,), dtype=text)
    book.add(
        events.ModuleCalled, site=site, module=module, training=True, grad_mode=text, inputs=(shape,), error=text,
        broken=text,
    )  # fmt: skip
    book.add(events.ModeChanged, site=site, module=module, call=text, training=True, changed=((text, False),))
    book.add(events.GradModeChanged, site=site, by=text, entered=True, mode=text)
    book.add(events.DataChanged, site=site, tensor=weight, by=text, version_before=0, version=1)
    book.add(events.RequiresGradChanged, site=site, tensor=weight, to=False, by=text)
    book.add(events.Operation, site=site, function=text, inputs=(), cut=text)
    book.check(4, text, False, (text, text))
    book.add(events.Raised, site=site, kind=text, text=text, caught=site)
    book.add(events.Raised, site=call, kind=text, text=text)
    book.add(events.Warned, site=site, kind=text, text=text)
    book.add(events.Seeded, site=site, generator=text, seed=text)
    book.add(events.Lost, what=text, why=text)
    book.add(events.Noted, text=text)
    return ended(book, how=text, code=1)


def test_hostile_text_stays_text() -> None:
    page = Page(render(hostile(EVIL)))
    assert len(page.root.all("script")) == 1
    assert not page.root.all("img")
    assert "{{ 7*7 }}" in page.root.text
    assert "49" not in page.root.one("main").text


def test_what_cannot_be_seen_is_written_out() -> None:
    html = render(hostile("a\u202eb\x00c\u200bd"))
    assert "a\\u202eb\\x00c\\u200bd" in html
    assert not re.search("[\x00\u202e\u200b]", html)


@pytest.mark.parametrize("text", ["<" * 100_000, "名" * 100_000, "\x00" * 100_000], ids=["signs", "wide", "unseen"])
def test_long_texts_are_cut(text: str) -> None:
    assert size(render(hostile(text))) < TWO_MEGABYTES


def test_a_place_outside_its_file_is_said_but_not_linked() -> None:
    book = started("import torch\n", "short.py")
    weight = book.leaf("w", scalar(1.0), book.site(1, "import torch"))
    reset(book, book.site(99, "w.grad = None"), weight, scalar(2.0))
    reset(book, book.site(5, "w.grad = None", path="gone.py"), weight, scalar(2.0))
    page = Page(render(ended(book)))
    assert [place.text for place in page.root.all("span", "where")] == ["line 99", "gone.py:5"]


def test_columns_that_do_not_fit_point_at_the_line() -> None:
    book = started("import torch\nw.grad = None\n", "short.py")
    weight = book.leaf("w", scalar(1.0), book.site(1, "import torch"))
    site = book.add(
        events.Site, id=90, path="short.py", line=2, column=50, end_line=2, end_column=60, function="", code="w"
    )
    reset(book, site.id, weight, scalar(2.0))
    assert Page(render(ended(book))).root.one("li", "reset").one("a", "where")["href"] == "#f1L2"


# --- that it stays small --------------------------------------------------------------------------


def test_many_buffers_are_told_in_brief() -> None:
    book = started("import torch\nmodel = build()\nloss.backward()\n", "wide.py")
    made, call = book.site(2, "build()"), book.site(3, "loss.backward()")
    leaves = [book.leaf(f"model.{number}.weight", value((3,), 1, 2, 3), made) for number in range(2_000)]
    root, node = book.operation(call, "sum", [], scalar(2.0))
    gradient = value((3,), 1, 2, 3)
    backward(
        book, call, root, scalar(2.0), {leaf: (None, (term(gradient, node, call, "sum"),), gradient) for leaf in leaves}
    )
    html = render(ended(book))
    page = Page(html)
    assert size(html) < TWO_MEGABYTES
    told = len(page.root.all("article", "buffer"))
    brief = int(re.search(r"([\d,]+) more buffers in brief", page.root.text)[1].replace(",", ""))  # type: ignore[index]
    assert told + brief == 2_000


def test_a_long_program_that_did_something_on_every_line_is_bounded() -> None:
    lines = 8_000
    book = started("import torch\n" + f"w.mul_(1)  # {'x' * 60}\n" * lines, "unrolled.py")
    weight = book.leaf("w", scalar(1.0), book.site(1, "import torch"))
    for line in range(2, lines + 2):
        site = book.site(line, "w.mul_(1)")
        book.add(events.DataChanged, site=site, tensor=weight, by="mul_", version_before=line, version=line + 1)
        book.add(
            events.GradChanged,
            site=site,
            tensor=weight,
            by="mul_",
            before=value((2,), 1, 2),
            after=value((2,), 1, line),
        )
        book.check(line, f"w[0] == {line}", True, ("w[0]", str(line)))
    html = render(ended(book))
    assert size(html) < TWO_MEGABYTES
    text = Page(html).root.text
    assert "are left out: this page has no room for them" in text
    assert "And 7,900 more rows, for which this page has no room." in text


def test_a_program_that_did_something_here_and_there_is_bounded() -> None:
    source = "import torch\n" + ("x = 1\n" * 9 + "w.mul_(1)\n") * 10_000
    book = started(source, "sparse.py")
    weight = book.leaf("w", scalar(1.0), book.site(1, "import torch"))
    for line in range(11, 100_002, 10):
        book.add(
            events.GradChanged, site=book.site(line, "w.mul_(1)"), tensor=weight, by="mul_", before=scalar(1.0),
            after=scalar(1.0),
        )  # fmt: skip
    assert size(render(ended(book))) < TWO_MEGABYTES


def test_a_ledger_made_to_burst_the_page_gets_less_room() -> None:
    signs = "<" * 80
    book = started("import torch\n" + f"x = '{signs}'\n" * 400, "burst.py")
    for number in range(400):
        site, text = book.site(number + 2, f"'{signs}'"), signs * 6 + str(number)
        book.add(events.Warned, site=site, kind=text, text=text)
        book.add(events.Raised, site=site, kind=text, text=text * 5, caught=site)
        book.add(events.Lost, site=site, what=text, why=text)
        book.add(events.DataChanged, site=site, tensor=number, by=text, version_before=0, version=1)
        book.check(number + 2, text, False, (text, text + "1"))
    page = render(ended(book))
    assert size(page) < TWO_MEGABYTES
    assert "for which this page has no room" in page
