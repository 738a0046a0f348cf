"""gem view --serve."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from recorded import guessing, varied

from gem.trajectory import write_jsonl
from gem.viewer import server
from gem.viewer.recordings import Recordings
from gem.viewer.server import ViewerServer
from gem.viewer.tokens import Vocabulary

Get = Callable[..., tuple[int, Any]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_jsonl(tmp_path / "a.jsonl", varied(12))
    return tmp_path / "a.jsonl"


@pytest.fixture
def get(file: Path) -> Iterator[Get]:
    """Sends a request to a server of the file; returns the status, and the JSON or text of the answer."""
    with ViewerServer(Recordings([file]), Vocabulary(), port=0) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()

        def request(path: str, host: str | None = None) -> tuple[int, Any]:
            connection = HTTPConnection("127.0.0.1", serving.server_port, timeout=30)
            connection.request("GET", path, headers={} if host is None else {"Host": host})
            answer = connection.getresponse()
            text = answer.read().decode()
            connection.close()
            return answer.status, json.loads(text) if answer.headers["Content-Type"].startswith(
                "application/json"
            ) else text

        yield request
        serving.shutdown()
        thread.join()


def test_rows_come_in_pages(get: Get, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server, "ROWS_PER_PAGE", 5)
    pages = [get(f"/rows?from={first}")[1] for first in (0, 5, 10)]
    assert [len(page["rows"]) for page in pages] == [5, 5, 2]
    assert {page["total"] for page in pages} == {12}


def test_a_body_is_read_by_its_number(get: Get, file: Path):
    assert get("/body?n=11") == (200, Recordings([file]).body(11))


def test_search_finds_texts_and_not_the_names_of_fields(get: Get):
    assert get("/search?q=What+is+6+TIMES")[1] == [10]
    assert get("/search?q=fork+server")[1] == [11]
    assert get("/search?q=print%286")[1] == [10]
    assert get("/search?q=logprobs")[1] == []


def test_loading_the_page_again_shows_appended_episodes(get: Get, file: Path):
    write_jsonl(file, [guessing(1)])
    status, page = get("/")
    assert status == 200 and "<!doctype html>" in page
    assert get("/rows?from=0")[1]["total"] == 13


@pytest.mark.parametrize("path", ["/body?n=12", "/body?n=-1", "/body?n=x", "/body", "/rows?from=x", "/search"])
def test_a_wrong_request_is_answered_with_its_reason(path: str, get: Get):
    status, text = get(path)
    assert status == 400 and text


def test_other_paths_do_not_exist(get: Get):
    assert get("/../../etc/passwd")[0] == 404


def test_a_request_under_another_host_name_is_refused(get: Get):
    assert get("/body?n=0", host="attacker.example")[0] == 403
