"""Give mutated documents to everything that reads from outside, and print what each reader made of them.

    scripts/fuzz_readers.py [--count 200000] [--seed 0] [--minutes M] [--reader NAME ...] [--input FILE]

The documents to mutate are in tests/fuzz_seeds/READER. Those of more than 16 KiB are only read as they are; *.z are
compressed with zlib. A reader returns a result that can be used, or raises one of its documented errors. Anything else
is a finding, and so are more than 1 CPU second and 64 MiB of memory. It is printed, and its document is kept in
build/fuzz/READER: repair the reader, and add the document to the seeds. A reader that hangs in C code ends the script
after a minute; its document is build/fuzz/last.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import faulthandler
import functools
import gc
import hashlib
import json
import logging
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from fuzz_mutations import mutated
from gem._internal import inbound
from gem._internal.http_client import HttpRequest, RequestError
from gem.conversation.observations import action_text
from gem.datasets import load as datasets
from gem.envs.computers.containers.bench_task import read_bench_task, solution_of
from gem.envs.computers.containers.harbor_task import read_harbor_task
from gem.envs.computers.containers.rewards import RewardMissing, read_rewards
from gem.envs.computers.swe.rows import read_row
from gem.envs.questions.code_env import _solution_in
from gem.envs.questions.math_visual_env import read_image
from gem.envs.web.wiki.mediawiki import MediaWikiTrawler
from gem.errors import (
    BadAction,
    BadValue,
    CallerError,
    EndpointError,
    GemError,
    MissingDependency,
    SandboxError,
    ToolError,
)
from gem.evaluation import compare
from gem.evaluation.cost import read_price
from gem.evaluation.exchange import inspect_logs, verifiers_traces
from gem.evaluation.records import read_records, read_settings
from gem.evaluation.report import read_report
from gem.evaluation.rescore import rescore
from gem.evaluation.suites import load_suite
from gem.graders.code.checker import Checker, read_checker
from gem.graders.code.tests import read_tests
from gem.graders.judge import Judge, _Vote
from gem.integrations.shared.tasks import EnvTask
from gem.parsing import boxes, code_blocks, first_tagged, last_boxed, last_boxed_int, last_tagged, readings
from gem.policies import EndpointPolicy
from gem.policies.completion import parse_completion
from gem.policies.customer import _native
from gem.policies.endpoint import Endpoint
from gem.policies.refusals import read_refusal
from gem.rl.config import TrainConfig
from gem.rl.config_file import config_to_toml, read_config
from gem.rl.run.folder import RunFolder, check_intact
from gem.rl.run.plots import RecordedRun
from gem.rollout import play_seeds
from gem.sandbox import Case, Limits, Result, Sandbox, Status
from gem.sandbox.machine_protocol import pack, unpack
from gem.sandbox.remote import server as sandbox_server
from gem.sandbox.remote.client import RemoteSandbox
from gem.sandbox.results import Report
from gem.tools import FunctionTool, ToolEnvWrapper
from gem.tools.formats import FORMATS
from gem.tools.mcp import content, schema, stdio
from gem.tools.mcp.config import ClientOptions, read_servers
from gem.tools.search import google_search_server, serp_search_server
from gem.tools.search import server as search_server
from gem.tools.search.client import SearchClient
from gem.tools.search.corpus import CorpusFile, Hit
from gem.tools.search.dense import EmbeddingsEndpoint
from gem.tools.search.web import _hit, _parse_object, excerpt, html_to_text
from gem.trajectory import Trajectory, read_jsonl
from gem.vector import make_vec
from gem.viewer.page import build_file
from gem.viewer.recordings import Recordings
from gem.viewer.tokens import Vocabulary

ROOT = Path(__file__).resolve().parents[1]
SEEDS, FOUND = ROOT / "tests" / "fuzz_seeds", ROOT / "build" / "fuzz"
MOST_S, MOST_MIB = 1.0, 64.0  # per document: CPU seconds, and memory above that of the start
STOPPED_S, HANG_S = 5.0, 60
LONGEST = 1 << 14  # bytes of a document that is mutated
SPACE = 4 << 30  # of addresses, beside those in use at the start
REQUEST = HttpRequest("POST", "http://127.0.0.1:1/", b"", 1.0)


class Reader(NamedTuple):
    read: Callable[[bytes], object]
    errors: type[Exception] | tuple[type[Exception], ...]


# --- how a reader gets a document ------------------------------------------------------------------------------------


def text(data: bytes) -> str:
    """Return text with lone surrogates for bytes that are not UTF-8, as decoded JSON may have them."""
    return data.decode("utf-8", "surrogateescape")


def parsed(read: Callable[[Any], object]) -> Callable[[bytes], object]:
    return lambda data: read(inbound.loads(data, "it", keep_surrogates=True))


@functools.cache
def place() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="gem-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
    place.folder = folder  # type: ignore[attr-defined]  # lives as long as the process
    return Path(folder.name)


def file(read: Callable[[Path], object], name: str, **others: str) -> Callable[[bytes], object]:
    """Return a reader of a folder's file.

    Args:
        read: takes the folder if there are others, else the file.
        others: name of another file, with __ for / and ___ for a dot → the reader whose first seed it is.
    """

    def reading(data: bytes) -> object:
        folder = place() / hashlib.md5(repr((name, others)).encode()).hexdigest()
        if not folder.exists():
            for other, seed in others.items():
                path = folder / other.replace("___", ".").replace("__", "/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(seeds_of(seed)[0])
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
        return read(folder if others else folder / name)

    return reading


def answering(client: Any, data: bytes) -> Any:
    """Return an HttpClient to whose requests this is the answer."""

    def send(request: HttpRequest, parse: Callable[[bytes], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(parse(data))
        except RequestError as e:
            future.set_exception(client.failure_error(request, e, 1))
        return future

    client.send = send
    return client


def served(app: Callable[[], Any], path: str, **headers: str) -> Callable[[bytes], object]:
    """Return a reader that posts a document to an ASGI application, and refuses what the application refuses."""

    def reading(data: bytes) -> object:
        return asyncio.run(post(app(), path, data, {"host": "127.0.0.1", **headers}))

    return reading


async def post(app: Any, path: str, data: bytes, headers: dict[str, str]) -> bytes:
    sent: list[Any] = []
    parts = [{"type": "http.request", "body": data, "more_body": False}]

    async def receive() -> Any:
        return parts.pop(0) if parts else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    about = {"http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 9)}
    await app({**scope, **about, "headers": pairs, "root_path": "", "asgi": {"version": "3.0"}}, receive, send)
    if (status := sent[0]["status"]) in (400, 413, 503):
        raise BadValue(sent[1]["body"])
    assert status == 200, (status, sent[1]["body"])
    return bytes(sent[1]["body"])


# --- what is read with a document ------------------------------------------------------------------------------------


def find(query: str, topk: int = 1, more: list[dict[str, Any]] | None = None) -> str:
    """Find a text."""
    return f"{query} {topk} {more}"


def reply_parts(reply: str) -> object:
    found = [parse(reply) for parse in (boxes, last_boxed, last_boxed_int, code_blocks, readings)]
    return found, last_tagged(reply, "answer"), first_tagged(reply, "answer")


def calls(reply: Any) -> object:
    """Look for calls in a text, or in a message in which everything may have any type."""
    call_format = list(FORMATS.values())[len(str(reply)) % len(FORMATS)]
    return action_text(reply), call_format.read(reply, [FunctionTool(find, tag="python")])


@functools.cache
def rollouts() -> list[tuple[Any, EndpointPolicy]]:
    wraps = [
        functools.partial(ToolEnvWrapper, tools=[FunctionTool(find, tag="python")], max_tool_uses=2, format=f)
        for f in FORMATS
    ]
    vectors = [make_vec("math:Arithmetic", [wrap], num_envs=1, backend="async", autoreset="disabled") for wrap in wraps]
    return [(vec, EndpointPolicy(Endpoint("http://127.0.0.1:1/v1", "m"))) for vec in vectors]


def rollout(data: bytes) -> object:
    """Play an episode in which each reply of the endpoint is this one, and keep it as a file would."""
    vec, policy = rollouts()[len(data) % len(FORMATS)]
    answering(policy.endpoint, data)
    trajectory = play_seeds(vec, policy, [0])[0]
    assert trajectory.failure is None or trajectory.failure.startswith(("EndpointError", "InvalidReply")), trajectory
    kept(trajectory)
    return trajectory


def kept(trajectory: Trajectory) -> None:
    line = json.dumps(trajectory.to_json())
    again = Trajectory.from_json(inbound.loads(line, "it", keep_surrogates=True))
    assert json.dumps(again.to_json()) == line


def verdict(data: bytes) -> object:
    vote = _Vote(Judge(endpoint=Endpoint("http://127.0.0.1:1/v1", "m")), "4", "4", "2 + 2?")
    vote._token = "t"
    vote._read(text(data))
    vote._read(text(data))
    return vote.grade or vote.failure


def arguments(value: Any) -> object:
    """Check the arguments of a call with the schema of a tool server."""
    if not isinstance(value, dict) or not isinstance(value.get("schema"), dict):
        raise BadValue("it has no schema")
    given = value.get("arguments")
    return schema.schema_error(value["schema"]), [
        schema.schema_validator(value["schema"])(each) for each in (given, {}, {"a": 1}) if isinstance(each, dict)
    ]


def tool_result(data: bytes) -> object:
    from mcp.types import CallToolResult

    known = {"max_chars": 1000, "vision": True, "audio": True}
    options = ClientOptions(**{name: known.get(name) for name in ClientOptions.__dataclass_fields__})
    return content.to_result(CallToolResult.model_validate_json(data), options)


def rows(path: Path) -> object:
    datasets._read_file.cache_clear()
    found = datasets.load_rows(str(path))
    for number in range(min(len(found), 20)):
        with contextlib.suppress(BadValue):
            _ = found[number]
    return found


def code_row(value: Any) -> object:
    if isinstance(value, dict):
        _solution_in(value)
    suite = read_tests(value)
    return suite.longest(1), [test.example() for test in suite.tests], [test.size for test in suite.tests]


def bench_task(folder: Path) -> object:
    return read_bench_task(folder), solution_of(folder)


def train_config(path: Path) -> object:
    config = TrainConfig(**read_config(str(path)))
    return config.saved(), config.envs, config.eval_sets, config.targets, config_to_toml(config)


def run_folder(folder: Path) -> object:
    with contextlib.suppress(BadValue):
        RunFolder.open(folder)  # which is not of this user
    run, config = RunFolder.open(folder, trust=True)
    found = RecordedRun.read(folder)
    return run.read_metrics(), run.read_evaluation(1, "greedy"), found.title, found.evaluations(), config.saved()


def rescored(folder: Path) -> object:
    with contextlib.suppress(BadValue):
        rescore(str(folder))
    return rescore(str(folder), trust=True)


def records(folder: Path) -> object:
    settings, found = read_settings(folder), list(read_records(folder))
    for each in found:
        kept(each)
    return settings, found


def page(path: Path) -> object:
    return build_file(Recordings([path]), Vocabulary())


def compared(folder: Path) -> object:
    found = compare([folder / "other.json", folder / "report.json"])
    return found.to_markdown(), found.to_json()


def exported(folder: Path) -> object:
    return inspect_logs.export_inspect(str(folder), str(folder / "out")), verifiers_traces.export_verifiers(
        str(folder), str(folder / "out")
    )


def imported(read: Callable[[str], Iterator[Trajectory]]) -> Callable[[Path], object]:
    return lambda path: [kept(each) for each in read(str(path))]


class Stub(Sandbox):
    """A sandbox that runs nothing."""

    limits = Limits()

    def _run(self, job: Any) -> Result:
        return Result(status=Status.OK, stdout=str(job.limits))

    def session(self, *, limits: Limits | None = None) -> Any:
        raise SandboxError("no sessions")

    def report(self) -> Report:
        raise SandboxError("no report")

    def close(self) -> None:
        pass


@functools.cache
def sandbox_app() -> Any:
    return sandbox_server._app(sandbox_server._Api(Stub()))


@functools.cache
def search_app() -> Any:
    async def search(queries: Any, topk: int) -> list[list[Hit]]:
        return [[Hit({"id": "1", "contents": query}, 1.0)] for query in queries]

    return search_server.make_app(search_server.Service(search, 3, access=lambda urls: [None for _ in urls]))


def sandbox_answers(data: bytes) -> object:
    sandbox = RemoteSandbox(url="http://127.0.0.1:1", token="t")
    answering(sandbox._client, data)
    uses: list[Callable[[], object]] = [
        lambda: sandbox.run("1"),
        lambda: sandbox.run_tests("1", [Case()]),
        sandbox.report,
        lambda: sandbox.session().run("1"),
        lambda: sandbox.machine().exec("1"),
        lambda: sandbox.machine().read("a"),
        lambda: sandbox.machine().entries(),
        lambda: sandbox.machine().type_keys(b"a"),
        lambda: sandbox.machine().get_state(),
    ]
    results: list[object] = []
    for use in uses:
        with contextlib.suppress(SandboxError, BadValue, OSError):
            results.append(use())
    if not results:
        raise SandboxError("no answer")
    return results


def hits(protocol: Any) -> Callable[[bytes], object]:
    client = SearchClient(timeout=1, concurrency=1, retries=0, backoff=0, cache=0)
    return lambda data: answering(client, data).search("http://127.0.0.1:1/retrieve", protocol, "q", 3).result()


def embeddings(data: bytes) -> object:
    return answering(EmbeddingsEndpoint("http://127.0.0.1:1/v1", "m"), data)(["a", "b"])


def wiki(data: bytes) -> object:
    trawler = MediaWikiTrawler("http://127.0.0.1:1/api.php", 0, contact="x")
    answering(trawler._client, data)
    return trawler.read_page("A"), trawler.random()


def web_results(data: bytes) -> object:
    found = _parse_object(data)
    results = [*serp_search_server.parse_results(found), *google_search_server.parse_results(found)]
    return [_hit(result, rank) for rank, result in enumerate(results, start=1)]


def web_page(data: bytes) -> object:
    return excerpt(html_to_text(data.decode("utf-8", "replace")), ["a", "page"])


REPORTS = {"other___json": "report"}
RUN = {"config___json": "run_config", "metrics___jsonl": "run_metrics", "evaluations___jsonl": "run_evaluations"}
EVAL = {"eval___json": "eval_settings", "trajectories___jsonl": "records", "report___json": "report"}
BENCH = {"task___yaml": "bench_task", "docker-compose___yaml": "bench_compose", "tests__test_a___py": "bench_tests"}
BENCH |= {"run-tests___sh": "bench_tests", "Dockerfile": "bench_tests", "solution___yaml": "bench_solution"}
HARBOR = {"instruction___md": "harbor_task", "tests__test___sh": "harbor_task"}
HARBOR |= {"environment__Dockerfile": "harbor_task"}
WEB = (RequestError, ToolError)

READERS: dict[str, Reader] = {
    # replies
    "completion": Reader(functools.partial(parse_completion, REQUEST), RequestError),
    "refusal": Reader(lambda data: read_refusal(400, data).resolve(600, 100), ()),
    "reply_text": Reader(lambda data: reply_parts(text(data)), ()),
    "reply_calls": Reader(lambda data: calls(text(data)), ()),
    "message": Reader(parsed(calls), (BadAction, BadValue)),
    "rollout": Reader(rollout, EndpointError),
    "verdict": Reader(verdict, ()),
    "customer_call": Reader(parsed(_native), (EndpointError, BadValue)),
    "task_text": Reader(lambda data: EnvTask.from_row(text(data)), CallerError),
    # MCP messages
    "mcp_line": Reader(stdio._parse, ()),
    "mcp_schema": Reader(parsed(arguments), BadValue),
    "mcp_result": Reader(tool_result, (BadValue, ValueError)),
    "mcp_config": Reader(file(lambda path: read_servers(path), "mcp.json"), BadValue),
    # folders of evaluations and runs
    "eval_settings": Reader(file(records, "eval.json", **EVAL), BadValue),
    "records": Reader(file(records, "trajectories.jsonl", **EVAL), BadValue),
    "report": Reader(file(compared, "report.json", **REPORTS), BadValue),
    "report_alone": Reader(file(read_report, "report.json"), BadValue),
    "rescore": Reader(file(rescored, "eval.json", **EVAL), GemError),
    "rescore_records": Reader(file(rescored, "trajectories.jsonl", **EVAL), GemError),
    "export_settings": Reader(file(exported, "eval.json", **EVAL), BadValue),
    "export_records": Reader(file(exported, "trajectories.jsonl", **EVAL), BadValue),
    "trajectories": Reader(file(imported(lambda path: read_jsonl(path)), "a.jsonl"), BadValue),
    "viewer": Reader(file(page, "a.jsonl"), BadValue),
    "viewer_metrics": Reader(file(page, "metrics.jsonl", **EVAL), BadValue),
    "run_config": Reader(file(run_folder, "config.json", **RUN), CallerError),
    "run_metrics": Reader(file(run_folder, "metrics.jsonl", **RUN), CallerError),
    "run_evaluations": Reader(file(run_folder, "evaluations.jsonl", **RUN), CallerError),
    "manifest": Reader(file(lambda path: check_intact(path.parent, "stop"), "manifest.json"), BadValue),
    "inspect_json": Reader(file(imported(inspect_logs.read_inspect), "log.json"), BadValue),
    "inspect_eval": Reader(file(imported(inspect_logs.read_inspect), "log.eval"), (BadValue, MissingDependency)),
    "verifiers": Reader(file(imported(verifiers_traces.read_verifiers), "traces.jsonl"), BadValue),
    # datasets
    "rows_jsonl": Reader(file(rows, "a.jsonl"), BadValue),
    "rows_gz": Reader(file(rows, "a.jsonl.gz"), BadValue),
    "rows_json": Reader(file(rows, "a.json"), BadValue),
    "rows_csv": Reader(file(rows, "a.csv"), BadValue),
    "code_row": Reader(parsed(code_row), BadValue),
    "code_text": Reader(lambda data: code_row(text(data)), BadValue),
    "checker": Reader(lambda data: isinstance(read_checker(text(data)), Checker), BadValue),
    "image": Reader(lambda data: read_image(data, "image"), BadValue),
    "swe_row": Reader(parsed(read_row), BadValue),
    "corpus": Reader(file(lambda path: list(CorpusFile(path).documents()), "a.jsonl"), BadValue),
    # task files and settings
    "harbor_task": Reader(file(read_harbor_task, "task.toml", **HARBOR), CallerError),
    "rewards": Reader(file(lambda path: read_rewards(path.parent), "reward.json"), RewardMissing),
    "bench_task": Reader(file(bench_task, "task.yaml", **BENCH), CallerError),
    "bench_compose": Reader(file(bench_task, "docker-compose.yaml", **BENCH), CallerError),
    "bench_tests": Reader(file(bench_task, "tests/test_a.py", **BENCH), CallerError),
    "bench_solution": Reader(file(bench_task, "solution.yaml", **BENCH), CallerError),
    "prices": Reader(file(lambda path: read_price(str(path), "m"), "prices.toml"), CallerError),
    "suite": Reader(file(lambda path: load_suite(str(path)), "suite.toml"), CallerError),
    "train_config": Reader(file(train_config, "train.toml"), CallerError),
    # requests, and the answers of servers
    "sandbox_run": Reader(served(sandbox_app, "/run"), BadValue),
    "sandbox_exec": Reader(served(sandbox_app, "/exec"), BadValue),
    "sandbox_tests": Reader(served(sandbox_app, "/tests"), BadValue),
    "sandbox_machine": Reader(served(sandbox_app, "/machines"), BadValue),
    "sandbox_answer": Reader(sandbox_answers, (SandboxError, BadValue)),
    "archive": Reader(lambda data: pack(unpack(data)), ValueError),
    "search_request": Reader(served(search_app, "/retrieve"), BadValue),
    "access_request": Reader(served(search_app, "/access"), BadValue),
    "search_reply": Reader(hits("gem"), ToolError),
    "search_r1_reply": Reader(hits("search-r1"), ToolError),
    "embeddings": Reader(embeddings, ToolError),
    "wiki": Reader(wiki, ToolError),
    "web_results": Reader(web_results, WEB),
    "web_page": Reader(web_page, ()),
}


# --- the run ---------------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What one reader made of its documents."""

    reader: str
    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    slowest_ms: float = 0.0
    peak_mib: float = 0.0
    findings: dict[str, int] = field(default_factory=dict)  # what → how often

    @property
    def wrong(self) -> int:
        return sum(self.findings.values())


@functools.cache
def seeds_of(name: str) -> list[bytes]:
    """Return the documents of a reader, the valid ones first."""
    files = sorted((SEEDS / name).iterdir(), key=lambda path: (path.name.startswith("found"), path.name))
    return [zlib.decompress(path.read_bytes()) if path.suffix == ".z" else path.read_bytes() for path in files]


def document(name: str, number: int, seed: int) -> bytes:
    """Return a mutated document."""
    seeds = [data for data in seeds_of(name) if len(data) <= LONGEST]
    return mutated(seeds, Random(f"{seed}/{name}/{number}"))


class Slow(BaseException):
    pass


def stop(*_: object) -> None:
    raise Slow


def try_read(name: str, data: bytes) -> tuple[bool, str]:
    """Return whether a reader accepts a document, and what it did wrong; "" if nothing."""
    reader = READERS[name]
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, STOPPED_S)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            reader.read(data)
        return True, ""
    except reader.errors:
        return False, ""
    except (Exception, Slow) as e:
        frames = [frame for frame in traceback.extract_tb(e.__traceback__) if "/src/gem/" in frame.filename]
        where = f" in {Path(frames[-1].filename).name}, {frames[-1].name}" if frames else ""
        return False, f"{type(e).__name__}{where}: {str(e).splitlines()[0][:80] if str(e) else ''}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def memory_mib(kind: str = "VmRSS") -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{kind}:")[2].split()[0]) / 1024


def fuzz(name: str, numbers: range, seed: int, until: float) -> Outcome:
    outcome = Outcome(name)
    for data in seeds_of(name):
        try_read(name, data)  # imports, and fills caches
    gc.collect()
    trim, start = ctypes.CDLL(None).malloc_trim, memory_mib()
    for number in numbers:
        if time.monotonic() > until:
            break
        data = document(name, number, seed)
        (FOUND / "last").write_bytes(data)
        if memory_mib() > start + 4:
            gc.collect()
            trim(0)
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        before = time.process_time()
        accepted, wrong = try_read(name, data)
        seconds, peak = time.process_time() - before, memory_mib("VmHWM") - start
        faulthandler.cancel_dump_traceback_later()
        outcome.inputs, outcome.accepted = outcome.inputs + 1, outcome.accepted + accepted
        outcome.refused += not accepted and not wrong
        outcome.slowest_ms, outcome.peak_mib = max(outcome.slowest_ms, seconds * 1000), max(outcome.peak_mib, peak)
        slow, large = seconds > MOST_S, peak > MOST_MIB
        if wrong or slow or large:
            wrong = wrong or f"more than {MOST_S:g} s" * slow + f"more than {MOST_MIB:g} MiB" * large
            keep(outcome, wrong, data, f"{number}: {seconds:.2f} s, {peak:.0f} MiB")
    return outcome


def keep(outcome: Outcome, wrong: str, data: bytes, about: str) -> None:
    """Count a finding, and keep the first document of its kind."""
    kind = wrong.partition(":")[0]
    outcome.findings[kind] = outcome.findings.get(kind, 0) + 1
    if outcome.findings[kind] == 1:
        path = FOUND / outcome.reader / f"found-{hashlib.sha256(data).hexdigest()[:8]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        print(f"{outcome.reader} {about}\n  {wrong}\n  {len(data):,} bytes in {path.relative_to(ROOT)}", flush=True)


def table(outcomes: list[Outcome]) -> str:
    lines = ["| reader | inputs | accepted | refused | slowest, ms | peak, MiB | findings |", "|---|" + "--:|" * 6]
    for each in outcomes:
        numbers = [each.inputs, each.accepted, each.refused, each.slowest_ms, each.peak_mib, each.wrong]
        lines.append(f"| {each.reader} | {' | '.join(f'{number:,.0f}' for number in numbers)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200_000, help="documents, over all readers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after that time")
    parser.add_argument("--reader", nargs="+", choices=READERS, metavar="NAME", help="only these")
    parser.add_argument("--input", type=Path, help="read only this file, with the one --reader")
    options = parser.parse_args()
    names = options.reader or list(READERS)
    logging.disable(logging.CRITICAL)
    if options.input:
        before = time.process_time()
        print(repr(READERS[names[0]].read(options.input.read_bytes()))[:2000])
        print(f"{time.process_time() - before:.3f} s, {memory_mib('VmHWM'):.0f} MiB")
        return 0
    shutil.rmtree(FOUND, ignore_errors=True)
    FOUND.mkdir(parents=True)
    os.environ["XDG_STATE_HOME"] = str(place() / "state")  # of the folders that this user trusts
    resource.setrlimit(resource.RLIMIT_AS, (int(memory_mib("VmSize") * 2**20) + SPACE, resource.RLIM_INFINITY))
    started, each = time.monotonic(), max(1, options.count // len(names))
    outcomes = []
    for position, name in enumerate(names):
        until = started + options.minutes * 60 * (position + 1) / len(names)
        outcomes.append(fuzz(name, range(each), options.seed, until))
    print(table(outcomes))
    total, found = sum(each.inputs for each in outcomes), sum(each.wrong for each in outcomes)
    print(f"\n{total:,} inputs in {time.monotonic() - started:,.0f} s, {found} findings")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
