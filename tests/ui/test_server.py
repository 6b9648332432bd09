"""The web application from outside, without a browser: who gets in, what is given out, what is refused."""

from __future__ import annotations

import contextlib
import csv
import http.client
import io
import json
import re
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from core.engine import Engine
from core.settings import load_settings
from library.digest import Digest, digest_bytes
from tests.ui.doubles import add_attempt
from tests.ui.serving import PASSWORD, PROBLEMS, ROOT, Server, served
from ui.access import COOKIE


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The page without users."""
    with served(tmp_path_factory.mktemp("open")) as running:
        yield running


@pytest.fixture(scope="module")
def local(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """The page of a library with users."""
    users = {"ada": "admin", "val": "viewer", "sol": "solver"}
    with (
        served(tmp_path_factory.mktemp("guarded"), users=users) as running,
        httpx.Client(base_url=running.url, trust_env=False, timeout=60) as client,
    ):
        yield client


@pytest.fixture
def nobody(guarded: httpx.Client) -> httpx.Client:
    guarded.cookies.clear()
    return guarded


def login(client: httpx.Client, name: str, **more: str) -> httpx.Client:
    client.cookies.clear()
    answer = client.post("/login", data={"username": name, "password": PASSWORD, **more})
    assert answer.status_code == 200
    return client


def test_health_needs_no_login(nobody: httpx.Client) -> None:
    assert nobody.get("/healthz").json() == {"status": "ok"}


def test_the_page_is_served_to_the_local_person(local: httpx.Client) -> None:
    answer = local.get("/")
    assert answer.status_code == 200
    assert "Scion" in answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'self'")


def test_the_first_page_holds_nothing_of_the_library(local: httpx.Client) -> None:
    """Data comes by events, which are authorised; the page itself would be readable by anybody who gets it."""
    assert PROBLEMS[1][0] not in local.get("/").text


def test_the_first_page_names_no_outside_address(local: httpx.Client) -> None:
    page = local.get("/").text
    for name in ("fonts.googleapis", "fonts.gstatic", "cdn.", "cdnjs", "unpkg", "google-analytics"):
        assert f"//{name}" not in page


def test_the_first_page_asks_for_nothing_outside_its_folder(local: httpx.Client) -> None:
    """A browser fetches these without a script, so that no browser test sees them: manifest, icon, a link's preview."""
    head = local.get("/").text.partition("</head>")[0]
    links = re.findall(r'<(?:link|meta|script)\b[^>]*\b(?:href|src|content)="([^"]*)"', head)
    assert [link for link in links if link.startswith(("/", "http"))] == []
    assert len([link for link in links if link.startswith("./assets/")]) >= 2, "Gradio's template has changed"
    assert len(re.findall(r'<link rel="icon"[^>]*href="data:image/svg', head)) == 1


def test_without_a_session_the_page_leads_to_the_login_and_back(nobody: httpx.Client) -> None:
    answer = nobody.get("/?tab=review&id=a1")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2F%3Ftab%3Dreview%26id%3Da1"
    form = nobody.get(answer.headers["location"])
    assert "/?tab=review&amp;id=a1" in form.text
    goal = {"username": "ada", "password": PASSWORD, "next": "/?tab=review&id=a1"}
    entered = nobody.post("/login", data=goal, headers={"accept": "text/html"})
    assert entered.status_code == 303
    assert entered.headers["location"] == "/?tab=review&id=a1"
    assert nobody.get("/").status_code == 200


@pytest.mark.parametrize(
    "goal", ["//evil.example", "http://evil.example", "/\\evil.example", "javascript:x", "/\nx", ""]
)
def test_the_login_leads_to_no_other_site(nobody: httpx.Client, goal: str) -> None:
    data = {"username": "ada", "password": PASSWORD, "next": goal}
    assert nobody.post("/login", data=data, headers={"accept": "text/html"}).headers["location"] == "/"


def test_the_session_cookie_is_out_of_reach_of_scripts_and_other_sites(nobody: httpx.Client) -> None:
    answer = nobody.post("/login", data={"username": "ada", "password": PASSWORD})
    said = answer.headers["set-cookie"].lower()
    assert COOKIE in said
    assert "httponly" in said
    assert "samesite=lax" in said


def test_a_wrong_password_is_told_and_slowed_down(nobody: httpx.Client) -> None:
    wrong = {"username": "eve", "password": "wrong password"}
    seen = [nobody.post("/login", data=wrong).status_code for _ in range(7)]
    assert seen[:5] == [401] * 5
    assert seen[5:] == [429] * 2
    assert nobody.cookies.get(COOKIE) is None
    time.sleep(2.1)
    assert nobody.post("/login", data={"username": "ada", "password": PASSWORD}).status_code == 200


PRIVATE = [
    "/config", "/gradio_api/info", "/gradio_api/startup-events", "/artifacts/blake3:" + "0" * 64, "/figures/saved.csv",
    "/bundle", "/labels.jsonl", "/gradio_api/queue/data?session_hash=x",
]  # fmt: skip


@pytest.mark.parametrize("path", PRIVATE)
def test_nothing_is_given_to_nobody(nobody: httpx.Client, path: str) -> None:
    assert nobody.get(path).status_code in (401, 403), path


@pytest.mark.parametrize("path", ["/gradio_api/queue/join", "/gradio_api/run/predict", "/gradio_api/call/artifacts"])
def test_nothing_is_run_for_nobody(nobody: httpx.Client, path: str) -> None:
    answer = nobody.post(path, json={"data": [], "fn_index": 0, "session_hash": "x"})
    assert answer.status_code in (401, 403), path


def test_logout_ends_the_session(guarded: httpx.Client) -> None:
    login(guarded, "ada")
    token = guarded.cookies.get(COOKIE)
    assert guarded.get("/").status_code == 200
    assert guarded.post("/logout").status_code == 303
    guarded.cookies.set(COOKIE, token or "")
    assert guarded.get("/").status_code == 303


def test_an_artifact_is_the_bytes_that_its_name_says(local: httpx.Client, server: Server) -> None:
    row = server.library.index.artifacts(limit=1)[0]
    answer = local.get(f"/artifacts/{row.digest}")
    assert answer.status_code == 200
    assert str(digest_bytes(answer.content)) == row.digest
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "name",
    [
        "blake3:" + "0" * 63, "blake3:" + "A" * 64, "0" * 64, "sha256:" + "0" * 64, "..%2f..%2fetc%2fpasswd",
        "blake3:" + "0" * 64 + "%0a", "blake3:" + "0" * 64 + "%00", "blake3%3A..%2f" + "0" * 61,
    ],
)  # fmt: skip
def test_a_name_that_is_no_digest_is_refused(local: httpx.Client, name: str) -> None:
    assert local.get(f"/artifacts/{name}").status_code in (400, 404)


def test_an_unknown_artifact_is_not_found(local: httpx.Client) -> None:
    assert local.get(f"/artifacts/{Digest('0' * 64)}").status_code == 404


def test_a_revoked_artifact_is_not_given_out(local: httpx.Client, server: Server) -> None:
    attempt = add_attempt(server.library, "Revoke me: 1 + 1?", "2", answer="2")
    engine = Engine(load_settings(library=server.library.root), server.library)
    made = engine.decide(attempt, version=1, reviewer="ada", action="approve").artifact
    assert made is not None
    server.library.revoke(made.digest, reason="test", actor="ada")
    assert local.get(f"/artifacts/{made.digest}").status_code == 404


@pytest.mark.parametrize("where", ["library.db", "."])
@pytest.mark.parametrize(
    "route", ["/gradio_api/file=", "/file=", "/gradio_api/file/", "/static/", "/assets/", "/theme.css/"]
)
def test_the_library_is_not_served(local: httpx.Client, server: Server, where: str, route: str) -> None:
    root = server.library.root
    names = [path for path in root.rglob("*") if path.is_file()] if where == "." else [root / where]
    assert names
    for path in names[:40]:
        for form in (str(path), "../" * 12 + str(path).lstrip("/"), "..%2f" * 12 + str(path).lstrip("/")):
            answer = local.get(route + form)
            assert answer.status_code != 200 or answer.content != path.read_bytes(), (route, path)


def test_the_source_is_not_served(local: httpx.Client) -> None:
    path = ROOT / "pyproject.toml"
    assert local.get(f"/gradio_api/file={path}").status_code in (403, 404)


@pytest.mark.parametrize("name", ["saved", "verdicts", "artifacts", "labels", "reviewers"])
def test_each_figure_has_its_data(local: httpx.Client, name: str) -> None:
    answer = local.get(f"/figures/{name}.csv")
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert answer.headers["content-type"].startswith("text/csv")
    assert len(rows) > 1


def test_the_data_is_of_the_days_that_were_asked_for(local: httpx.Client) -> None:
    def days(**asked: str) -> list[str]:
        rows = csv.DictReader(io.StringIO(local.get("/figures/verdicts.csv", params=asked).text))
        return [row["date"] for row in rows]

    everything = days()
    assert len(everything) >= 4
    first, last = everything[1], everything[-2]
    assert days(days="Dates", first=first, last=last) == everything[1:-1]
    assert days(days="Dates", first=last) == everything[-2:]
    assert days(days="Dates", last="1999-12-31") == []
    refused = local.get("/figures/verdicts.csv", params={"days": "Dates", "first": "soon"})
    assert (refused.status_code, refused.text) == (400, "the first day is not a date such as 2026-01-31: 'soon'")


def test_an_unknown_figure_is_not_found(local: httpx.Client) -> None:
    assert local.get("/figures/passwords.csv").status_code == 404


def test_labels_are_exported(local: httpx.Client) -> None:
    rows = [json.loads(line) for line in local.get("/labels.jsonl").text.splitlines()]
    assert {row["label"] for row in rows} == {"safe", "unsafe", "unsure"}


def test_an_upload_that_is_too_large_is_refused(server: Server) -> None:
    place = urlsplit(server.url)
    with contextlib.closing(http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)) as connection:
        connection.putrequest("POST", "/gradio_api/upload")
        connection.putheader("Content-Length", str(1 << 30))
        connection.endheaders()
        assert connection.getresponse().status == 413
