"""The frame of the page: its head, the dashboard's tiles, the login. Takes numbers, asks nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from ui.render import parts, words
from ui.render.html import Html, div, join, span, tag

if TYPE_CHECKING:
    from library.reviews import ReviewCounts
    from library.statistics import Statistics

# A cut twig set into a stem. Ours; drawn here, so that nothing is fetched.
_LOGO = Html(
    '<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" '
    'aria-hidden="true"><path d="M12 22V13"/><path d="M12 13 7.5 8.5"/><path d="M12 13l4-4V4"/>'
    '<path d="M16 6.5c2.8 0 4-1.4 4-4-2.6 0-4 1.4-4 4Z" fill="currentColor" stroke="none"/>'
    '<path d="M8 9C5 9 3.6 7.4 3.6 4.600 6.500 4.600 8 6.200 8 9Z" fill="currentColor" stroke="none"/></svg>'
)


def brand() -> Html:
    return div("sc-brand", _LOGO, tag("h1", "Scion"))


def top(model: str, artifacts: int, pending: int, person: str, role: str, *, root: str, login: bool) -> Html:
    """The bar above the tabs: what is loaded, what is held, who is here."""
    facts = join(
        [
            span("", "model ", tag("b", model)),
            span("", tag("b", words.count(artifacts)), " artifact" if artifacts == 1 else " artifacts"),
            span("", tag("b", words.count(pending)), " to review"),
        ]
    )
    out = (
        tag("form", tag("button", "Log out", type="submit", class_="sc-plain"), method="post", action=f"{root}/logout")
        if login
        else None
    )
    return div(
        "sc-top",
        brand(),
        div("sc-top-facts", facts),
        div(
            "sc-top-side",
            span("", person, span("sc-muted", f" · {role}") if login else None),
            tag(
                "button",
                "◐",
                type="button",
                class_="sc-plain",
                data_theme_toggle=True,
                title="Light or dark",
                aria_label="Switch between light and dark",
            ),
            out,
        ),
    )


def title(text: str, name: str, root: str, period: Mapping[str, str]) -> Html:
    """A figure's heading with the link to its data, over the same days."""
    address = f"{root.rstrip('/')}/figures/{name}.csv?{urlencode(period)}"
    link = tag("a", "CSV", href=address, download=f"{name}.csv", aria_label=f"{text} as CSV")
    return div("sc-heading", tag("h2", text), span("sc-push sc-small", link))


def blanks(items: Sequence[tuple[str, str]]) -> Html:
    """The figures that have nothing to draw, each with what would make it: one sheet for all of them."""
    if not items:
        return Html("")
    lines = [join([tag("dt", name), tag("dd", hint)]) for name, hint in items]
    return div(
        "sc-sheet sc-blanks",
        parts.heading("Nothing to draw yet", "in this range"),
        tag("dl", *lines, class_="sc-facts"),
    )


def export(root: str) -> Html:
    """The link to all labelled pairs."""
    return tag("a", "Export as JSONL", href=f"{root.rstrip('/')}/labels.jsonl", download="labels.jsonl")


def tiles(numbers: Statistics, counts: ReviewCounts) -> Html:
    """The numbers that matter, once."""
    held = dict(numbers.artifacts)
    rate = numbers.hit_rate
    wrong = f"of {words.plural(numbers.grafts, 'graft')}"
    joules = words.joules(numbers.joules)
    return div(
        "sc-tiles",
        parts.stat("Tokens saved", words.count(numbers.tokens_saved), f"by {words.plural(numbers.grafts, 'graft')}"),
        parts.stat("Seconds saved", words.seconds(numbers.seconds_saved), "against solving again"),
        parts.stat("Energy of asks", joules, f"about {words.count(numbers.flops)} FLOP" if numbers.flops else None),
        parts.stat("Hit rate", "–" if rate is None else f"{rate:.0%}", f"of {words.plural(numbers.asks, 'ask')}"),
        parts.stat("Wrong grafts", words.count(numbers.wrong), wrong),
        parts.stat(
            "Reviewers agree",
            "–" if numbers.agreement is None else f"{numbers.agreement:.0%}",
            "nothing judged twice" if numbers.agreement is None else "of words on one attempt",
        ),
        parts.stat("Artifacts", words.count(held.get("published", 0)), words.bytes_(numbers.stored_bytes)),
        parts.stat(
            "To review",
            words.count(counts.open),
            f"{counts.disputed} disputed, {counts.flagged} flagged" if counts.disputed else f"{counts.flagged} flagged",
        ),
    )


def login_page(style: str, icon: Html, action: str, goal: str, fault: str = "") -> Html:
    """A whole document: name, password, and where to go afterwards."""
    body = div(
        "sc-page",
        tag(
            "main",
            brand(),
            tag("h2", "Log in"),
            parts.notice("bad", fault) if fault else None,
            tag(
                "form",
                tag("input", type="hidden", name="next", value=goal),
                tag("label", "Name", for_="username"),
                tag("input", id="username", name="username", autocomplete="username", required=True, autofocus=True),
                tag("label", "Password", for_="password"),
                tag(
                    "input",
                    id="password",
                    name="password",
                    type="password",
                    autocomplete="current-password",
                    required=True,
                ),
                tag("button", "Log in", type="submit", class_="sc-go"),
                method="post",
                action=action,
            ),
            class_="sc-card",
        ),
    )
    return _document("Log in · Scion", style, icon, body)


def message_page(style: str, icon: Html, heading: str, text: str) -> Html:
    """A whole document that says one thing."""
    body = div("sc-page", tag("main", brand(), tag("h2", heading), tag("p", text), class_="sc-card"))
    return _document(f"{heading} · Scion", style, icon, body)


_DARK = "if(matchMedia('(prefers-color-scheme: dark)').matches)document.documentElement.classList.add('dark')"


def _document(name: str, style: str, icon: Html, body: Html) -> Html:
    head = join(
        [
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("title", name),
            icon,
            Html(f"<style>{style}</style><script>{_DARK}</script>"),
        ]
    )
    return Html(f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>')
