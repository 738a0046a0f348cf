"""Write recorded episodes as one HTML file, to read in a browser and to share.

Takes folders of training runs and evaluations, and JSON Lines files of trajectories. The file works without a server or
a network. With more than 5,000 episodes, use --serve.

  gem view runs/demo                          writes runs/demo/view.html
  gem view a.jsonl b.jsonl -o both.html       two files, side by side
  gem view runs/large --serve                 reads the episodes from disk as they are opened
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from gem._internal.folders import plain
from gem._internal.text import counted
from gem.cli.flags import REQUIRED, flag
from gem.cli.output import output_file
from gem.errors import BadValue
from gem.viewer.page import MAX_EPISODES, build_file
from gem.viewer.recordings import Recordings
from gem.viewer.server import ViewerServer
from gem.viewer.tokens import Vocabulary


@dataclass(frozen=True, kw_only=True)
class Config:
    paths: list[Path] = flag(REQUIRED, help="run folders, or JSON Lines files of trajectories", positional=True)
    out: Path | None = flag(
        None, help="HTML file to write; default: view.html in the folder, or the file's name with .html", short="o"
    )
    tokenizer: Path | None = flag(
        None, help="tokenizer.json, or a folder with one, for the token view; default: that of the run's checkpoint"
    )
    serve: bool = flag(False, help="serve the viewer over HTTP instead of writing a file")
    host: str = flag("127.0.0.1", help="for --serve: address to listen on")
    port: int = flag(8910, help="for --serve: port to listen on; 0 selects a free port")


def run(config: Config) -> int:
    if config.serve and config.out is not None:
        raise BadValue("--serve writes no file; leave out --out")
    out = None if config.serve else _target(config)
    recordings = Recordings(config.paths)
    vocabulary = Vocabulary.load(config.tokenizer, recordings.tokenizer())
    if out is None:
        return _serve(ViewerServer(recordings, vocabulary, host=config.host, port=config.port))
    if len(recordings.rows) > MAX_EPISODES:
        raise BadValue(f"{_count(recordings)}; a file holds at most {MAX_EPISODES:,}. Use --serve")
    page = build_file(recordings, vocabulary)
    out.write_text(page, encoding="utf-8")
    print(f"{out}: {_count(recordings)}, {len(page) / 1e6:.1f} MB")
    return 0


def _target(config: Config) -> Path:
    first = config.paths[0]
    out = config.out or plain(first / "view.html" if first.is_dir() else first.with_suffix(".html"))
    output_file(out, ".html", ".htm")
    if out in config.paths:
        raise BadValue(f"--out must not be an input, got {str(out)!r}")
    return out


def _serve(server: ViewerServer) -> int:
    print(f"{_count(server.recordings)} at {server.url}; stop with Ctrl-C", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print(file=sys.stderr)
    finally:
        server.server_close()
    return 0


def _count(recordings: Recordings) -> str:
    return counted(len(recordings.rows), "episode")
