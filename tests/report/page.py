"""Reads an HTML page back, strictly: what was opened is closed, and every element can be asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parent: Element | None = None
    children: list[Element | str] = field(default_factory=list)

    def __getitem__(self, name: str) -> str:
        return self.attributes.get(name, "")

    @property
    def text(self) -> str:
        """The text inside, with the white space as a browser shows it."""
        return " ".join("".join(self._texts()).split())

    @property
    def raw(self) -> str:
        return "".join(self._texts())

    def _texts(self) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, str):
                yield child
            else:
                yield from child._texts()

    def all(self, tag: str = "", css_class: str = "") -> list[Element]:
        """The elements inside, in order."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                if tag in ("", child.tag) and (not css_class or css_class in child["class"].split()):
                    found.append(child)
                found.extend(child.all(tag, css_class))
        return found

    def one(self, tag: str = "", css_class: str = "") -> Element:
        found = self.all(tag, css_class)
        assert len(found) == 1, f"{len(found)} of {tag}.{css_class}"
        return found[0]

    def closest(self, tag: str) -> Element:
        element = self
        while element.tag != tag:
            assert element.parent is not None, f"not inside a {tag}"
            element = element.parent
        return element


class Page(HTMLParser):
    """A page as a tree.

    >>> Page("<p>one <b>two</b></p>").root.one("b").text
    'two'
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.root = Element("", {})
        self._open = self.root
        self.feed(html)
        self.close()
        assert self._open is self.root, f"{self._open.tag} is never closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute of {tag} is there twice: {names}"
        element = Element(tag, {name: value or "" for name, value in attrs}, self._open)
        self._open.children.append(element)
        if tag not in VOID:
            self._open = element

    def handle_endtag(self, tag: str) -> None:
        assert self._open.tag == tag, f"</{tag}> closes {self._open.tag}"
        assert self._open.parent is not None
        self._open = self._open.parent

    def handle_data(self, data: str) -> None:
        self._open.children.append(data)

    @property
    def ids(self) -> list[str]:
        return [element["id"] for element in self.root.all() if "id" in element.attributes]

    def by_id(self, name: str) -> Element:
        (found,) = [element for element in self.root.all() if element["id"] == name]
        return found
