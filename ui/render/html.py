"""HTML that cannot be forgotten to be escaped: every child that is not already `Html` is text and is escaped.

Knows elements and escaping, nothing of what the page shows. No other module of `ui` may write a `<`.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

# Besides the five of HTML: `{`, `$` and a back-tick mean something to the page's template engine (Handlebars inside
# a JavaScript template literal), so a text that reaches a template by mistake is still inert.
_TEMPLATE_SIGNS = str.maketrans({"{": "&#123;", "}": "&#125;", "$": "&#36;", "`": "&#96;", "\\": "&#92;"})
_CONTROLS = dict.fromkeys([*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F], "�")
# Bidirectional overrides and invisible format signs can make a text read differently from what it says.
_INVISIBLE = {code: f"⟨U+{code:04X}⟩" for code in [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200B, 0xFEFF]}
_VOID = frozenset({"br", "hr", "img", "input", "meta", "link", "wbr"})


class Html(str):
    """Text that is HTML already. Made by this package only."""

    __slots__ = ()


Child = Html | str | int | float | None


def visible(text: str) -> str:
    """The text with control and direction-changing signs made visible."""
    return text.translate(_CONTROLS).translate(_INVISIBLE)


def text(value: object) -> Html:
    """Any value as inert text."""
    return Html(html.escape(visible(str(value)), quote=True).translate(_TEMPLATE_SIGNS))


def join(children: Iterable[Child], separator: str = "") -> Html:
    """The children one after another; `None` is left out, plain text is escaped."""
    return Html(separator.join(c if isinstance(c, Html) else text(c) for c in children if c is not None))


def tag(name: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """One element. `class_` is class and `data_key` is data-key; `True` is a bare attribute, `None`/`False` none.

    Names come from our own code; values and children are escaped.
    """
    parts = [name]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if attribute.startswith("on") or attribute in {"style", "srcdoc"}:
            raise ValueError(f"attribute {attribute!r} is not allowed: it would be run or would carry style")
        if value is None or value is False:
            continue
        parts.append(attribute if value is True else f'{attribute}="{text(value)}"')
    opening = f"<{' '.join(parts)}>"
    if name in _VOID:
        return Html(opening)
    return Html(f"{opening}{join(children)}</{name}>")


def div(class_: str, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    return tag("div", *children, class_=class_, **attributes)


def span(class_: str, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    return tag("span", *children, class_=class_, **attributes)
