from __future__ import annotations

from html.parser import HTMLParser

import pytest

from tests.ui.hostile import TEXTS
from ui.render.html import Html, div, join, tag, text


class Elements(HTMLParser):
    """Every element and attribute that a browser would see in a piece of HTML."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.append((name, dict(attributes)))

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.mark.parametrize("hostile", TEXTS)
def test_a_text_child_never_becomes_an_element(hostile: str) -> None:
    seen = Elements(div("sc-x", hostile)).seen
    assert seen == [("div", {"class": "sc-x"})]


@pytest.mark.parametrize("hostile", TEXTS)
def test_an_attribute_value_stays_in_its_attribute(hostile: str) -> None:
    shown = Elements(tag("code", "x", title=hostile)).seen
    assert len(shown) == 1
    assert set(shown[0][1]) == {"title"}


@pytest.mark.parametrize("hostile", TEXTS)
def test_signs_of_the_template_engine_are_inert(hostile: str) -> None:
    shown = text(hostile)
    assert not set("{}$`\\<>\"'") & set(shown)


def test_a_text_survives_unchanged_for_the_reader() -> None:
    said = 'if 3 < x & y > 2 then "{a}" costs $5 \\frac{1}{2} `q`'
    assert Elements(div("", said)).words == said


def test_html_is_not_escaped_twice_and_text_always_is() -> None:
    assert join([tag("b", "<"), "<"]) == Html("<b>&lt;</b>&lt;")
    assert tag("b", None, 3) == "<b>3</b>"


@pytest.mark.parametrize("name", ["onclick", "onerror", "style", "srcdoc"])
def test_attributes_that_run_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not allowed"):
        tag("div", **{name: "x"})


def test_direction_changes_are_made_visible() -> None:
    assert "⟨U+202E⟩" in text("a\u202eb")
    assert "�" in text("a\x00b")


def test_attributes_without_value() -> None:
    assert tag("button", "x", disabled=True, hidden=False, title=None) == "<button disabled>x</button>"
    assert tag("td", class_="a", data_key="k", for_="f") == '<td class="a" data-key="k" for="f"></td>'
