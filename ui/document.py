"""The document that Gradio's page comes in, made ours: an icon of its own, no address outside the page's own folder.

Gradio 6.31 asks for `/manifest.json` at the site's root whatever prefix the page has, has no icon in its head, so that
a browser asks the root for `/favicon.ico`, and names itself and an image of GitHub's to whoever previews a link.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from jinja2 import BaseLoader, Environment

from ui.render.html import Html, tag
from ui.theme import ASSETS

_TOLD = re.compile(r'\s*<meta\s+(?:property="og:|name="twitter:)[^>]*>')
_MANIFEST = re.compile(r'<link rel="manifest"[^>]*>')
NAME = "A curated library of verified KV-cache grafts"


def icon() -> Html:
    """The icon's link. The picture stands in it: nothing is fetched, so that it is there before a login too."""
    drawn = (ASSETS / "favicon.svg").read_text(encoding="utf-8")
    return tag("link", rel="icon", type="image/svg+xml", href=f"data:image/svg+xml,{quote(drawn)}")


def ours(source: str) -> str:
    """Gradio's template with our head; an unknown template comes back as it is."""
    described = tag("meta", name="description", content=NAME)
    early = f"<script>\n{(ASSETS / 'early.js').read_text(encoding='utf-8')}</script>"
    return _MANIFEST.sub(lambda _: f"{icon()}{described}{early}", _TOLD.sub("", source))


class _Ours(BaseLoader):
    """Gives out what another loader gives, as ours."""

    def __init__(self, inner: BaseLoader) -> None:
        self._inner = inner

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        source, path, fresh = self._inner.get_source(environment, template)
        return ours(source), path, fresh


def adopt(environment: Any) -> None:
    """Make the templates of a jinja environment ours. Twice is once."""
    if not isinstance(environment.loader, _Ours):
        environment.loader = _Ours(environment.loader)
