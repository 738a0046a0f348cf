"""The viewer as one HTML file: template, style, script and data, which loads nothing else.

Text of models is hostile. The script builds elements with textContent only, the data is JSON without "<", and a content
security policy allows no other script than the viewer's own.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from gem.viewer.episodes import Json, dump
from gem.viewer.recordings import Recordings
from gem.viewer.results import results_of
from gem.viewer.tokens import Vocabulary

MAX_EPISODES = 5_000  # more are slow to open in a browser
_SCRIPTS = ("text.js", "results.js", "episode.js", "viewer.js")


def build_file(recordings: Recordings, vocabulary: Vocabulary) -> str:
    """Return an HTML file that holds all episodes."""
    bodies, used = [], set[int]()
    for number in range(len(recordings.rows)):
        body = recordings.body(number)
        used.update(token for turn in body["turns"] for token in (*turn["fed"], *turn["ids"]))
        bodies.append(f'<script type="application/json" id="body-{number}">{dump(body)}</script>')
    return _page({**overview(recordings), "rows": recordings.rows, "vocabulary": vocabulary.texts(used)}, bodies)


def build_served_page(recordings: Recordings, vocabulary: Vocabulary) -> str:
    """Return the page of gem.viewer.server, which requests the episodes from the server."""
    return _page({**overview(recordings), "vocabulary": vocabulary.texts(None)}, connects=True)


def overview(recordings: Recordings) -> Json:
    """Return what the front page shows besides the list."""
    files = [str(file) for file in recordings.files]
    return {"files": files, "curve": recordings.curve, "results": results_of(recordings.files, recordings.rows)}


def _page(data: Json, bodies: list[str] | None = None, *, connects: bool = False) -> str:
    style, script = _read("viewer.css"), "(() => {\n" + "\n".join(map(_read, _SCRIPTS)) + "\n})();\n"
    allowed = "'self'" if connects else "'none'"
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        f"connect-src {allowed}; base-uri 'none'; form-action 'none'"
    )
    parts = {"policy": policy, "style": style, "data": dump(data), "bodies": "\n".join(bodies or []), "script": script}
    head, *rest = _read("viewer.html").split("{{")  # what replaces a {{name}} is not searched
    return head + "".join(parts[name] + tail for name, tail in (part.split("}}", 1) for part in rest))


def _read(name: str) -> str:
    return files("gem.viewer").joinpath("data").joinpath(name).read_text("utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
