"""What every tab is given, and what all of them do alike: who asks, rows that can be chosen, follow a job.

Knows Gradio and the engine's interface; shows nothing by itself.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gradio as gr

from library.errors import NotFound, ScionError, StaleVersion
from ui.access import Access, Denied, Person, Right
from ui.render import parts
from ui.render.html import Html

if TYPE_CHECKING:
    from core.engine import Engine
    from core.jobs import JobView
    from core.settings import Settings

# Between two looks. A browser on the model's own machine takes some 30 ms of a core to paint one: often at first, while
# an eye waits for it, then as often as one reads.
POLL_SECONDS, READING_SECONDS = 0.2, 0.5
_EAGER_SECONDS = 3.0
_QUIET_SECONDS = 3.0
_PATIENCE_SECONDS, _GLANCE_SECONDS = 2.0, 0.02
_KEPT = 10_000
# Options of the page's events: none is an endpoint of the API.
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
# For events that listen to a job: every one is let in, and ends the one before it (`Watched`).
LISTENING: dict[str, Any] = {**PRIVATE, "concurrency_limit": None, "trigger_mode": "multiple"}
Place = tuple[str | None, str]  # a browser session and a panel of it
Turn = tuple[Place, int]

# Rows carry `data-key`; a click, or Enter on the button in a row, becomes the event `pick` with that key.
_PICK = """
element.addEventListener('click', (event) => {
  if (event.target.closest('[data-copy], a, summary, pre')) return;
  const row = event.target.closest('[data-key]');
  if (row && element.contains(row)) trigger('pick', {key: row.dataset.key});
});
"""


class Watched:
    """Which job a panel of a browser tab shows last; an older listener sees that it was replaced and ends.

    The newer one waits for that: what the older one said last must not arrive after what the newer one says first.
    """

    def __init__(self) -> None:
        self._turns: OrderedDict[Place, int] = OrderedDict()
        self._listening: Counter[Place] = Counter()
        self._count = 0

    def begin(self, session: str | None, panel: str) -> Turn:
        self._count += 1
        place = (session, panel)
        self._turns[place] = self._count
        self._turns.move_to_end(place)
        while len(self._turns) > _KEPT:
            self._turns.popitem(last=False)
        self._listening[place] += 1
        return place, self._count

    def end(self, turn: Turn) -> None:
        """The listener says nothing more. Every `begin` has its `end`."""
        self._listening[turn[0]] -= 1
        if self._listening[turn[0]] <= 0:
            del self._listening[turn[0]]

    def current(self, turn: Turn) -> bool:
        return self._turns.get(turn[0]) == turn[1]

    async def alone(self, turn: Turn) -> None:
        """Returns when no other listens in the turn's place, or soon after: one that was given up may never end."""
        for _ in range(round(_PATIENCE_SECONDS / _GLANCE_SECONDS)):
            if self._listening[turn[0]] <= 1 or not self.current(turn):
                return
            await asyncio.sleep(_GLANCE_SECONDS)


@dataclass(frozen=True)
class Page:
    """The engine and the person check; one a server."""

    engine: Engine
    access: Access
    settings: Settings
    watched: Watched

    def who(self, request: gr.Request | None, right: Right = Right.VIEW) -> Person:
        """The person who asks and has the right; `Denied` otherwise. The first line of every handler."""
        return self.access.require(request, right)

    def job(self, job_id: str, person: Person) -> JobView:
        """One's own job, or anybody's for a reviewer; others do not exist."""
        view: JobView = self.engine.job(job_id)
        if view.owner != person.name and not person.may(Right.REVIEW):
            raise NotFound(f"no job {job_id}")
        return view

    def stop(self, job_id: str, request: gr.Request) -> Html:
        """Ask a job to stop that the person may see; nothing to show, or why not."""
        try:
            person = self.who(request, Right.SOLVE)
            self.engine.cancel(self.job(job_id, person).id, by=person.name)
        except ScionError as error:
            return fault(error)
        return Html("")

    async def follow(self, job_id: str, request: gr.Request | None, panel: str) -> AsyncIterator[JobView]:
        """The job each time that something about it changed, until it is over or the panel shows another job.

        Ends silently if there is no such job. Stopping to listen does not stop the job. Gradio says a listener's last
        word once more when it has ended, perhaps after a newer listener's first: let it be `unchanged`.
        """
        turn = self.watched.begin(getattr(request, "session_hash", None), panel)
        try:
            await self.watched.alone(turn)
            async for view in self._changes(job_id, request, turn):
                yield view
        finally:
            self.watched.end(turn)

    async def _changes(self, job_id: str, request: gr.Request | None, turn: Turn) -> AsyncIterator[JobView]:
        last: object = None
        waited = followed = 0.0
        while True:
            try:
                person = self.who(request)
                view = await asyncio.to_thread(self.job, job_id, person)
            except (NotFound, Denied):
                return
            if not self.watched.current(turn):
                return
            seen = (view.state, view.progress)
            if seen != last or waited > _QUIET_SECONDS:
                last, waited = seen, 0.0
                yield view
            if view.over:
                return
            pause = POLL_SECONDS if followed < _EAGER_SECONDS else READING_SECONDS
            await asyncio.sleep(pause)
            waited, followed = waited + pause, followed + pause


def in_turn(tab: str, mode: str = "once") -> dict[str, Any]:
    """Options of events that write to the same places of a tab: they are answered one at a time, in the order asked.

    Gradio answers events side by side, so what was asked first may be shown last, over what was asked after it; a
    `gr.State` (such as the record that a decision is about) could then differ from what is seen. One at a time is over
    all sessions: keep such handlers short.

    `mode`, while an event waits for its answer: "once" drops the next (decisions), "multiple" answers each (steps and
    picks), "always_last" answers the last, with what the inputs hold by then (searches, and whatever fills a tab).
    """
    return {**PRIVATE, "concurrency_id": tab, "concurrency_limit": 1, "trigger_mode": mode}


def unchanged(outputs: int) -> list[Any]:
    """A last word that changes nothing."""
    return [gr.skip()] * outputs


def panel(value: str = "", **options: Any) -> gr.HTML:
    """A place for HTML that `ui.render` made."""
    options.setdefault("js_on_load", None)
    return gr.HTML(Html(value), apply_default_css=False, **options)


def pickable(value: str = "", **options: Any) -> gr.HTML:
    """Like `panel`, with rows that can be chosen: it has the event `pick`."""
    return gr.HTML(Html(value), js_on_load=_PICK, apply_default_css=False, **options)


def picked(event: gr.EventData) -> str:
    """The key that a `pick` event carries. It came from the browser: treat it as any other input."""
    data = getattr(event, "_data", None)
    key = data.get("key") if isinstance(data, dict) else None
    return key if isinstance(key, str) and len(key) <= 200 else ""


def fault(error: ScionError) -> Html:
    """An error of ours as a notice with its way out."""
    title = "Not allowed" if isinstance(error, Denied) else "Not done"
    if isinstance(error, StaleVersion):
        title = "Changed since you looked"
    if isinstance(error, NotFound):
        title = "Not found"
    return parts.notice("bad", title, str(error))


def done(text: str) -> Html:
    return parts.notice("good", text)
