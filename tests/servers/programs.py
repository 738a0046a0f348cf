"""Real model servers on the CPU, started as processes; `make test-servers` installs them.

The folder $GEM_SERVERS holds their virtual environments, and SmolLM2-135M-Instruct as a GGUF file and in the format of
transformers.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVERS = Path(os.environ.get("GEM_SERVERS", "missing"))
MODEL = SERVERS / "SmolLM2-135M-Instruct"
GGUF = SERVERS / "SmolLM2-135M-Instruct.gguf"
CONTEXT = 1024  # tokens
KEY = "sk-of-the-test"
START_S = 300  # a server has to answer within so many seconds, also on a busy machine


@dataclass(frozen=True)
class ModelServer:
    """A running server: its base URL, its model's name, and the environment variable with its key."""

    url: str
    model: str
    api_key_env: str | None = None


@contextmanager
def llama_cpp(folder: Path) -> Iterator[ModelServer]:
    port = free_port()
    script = Path(__file__).with_name("llama_server.py")
    command = [SERVERS / "llama" / "bin" / "python", script, GGUF, port, CONTEXT]
    with running(command, f"http://127.0.0.1:{port}/health", folder / "llama.log"):
        yield ModelServer(f"http://127.0.0.1:{port}/v1", "smollm2")


@contextmanager
def vllm(folder: Path) -> Iterator[ModelServer]:
    port = free_port()
    command = [SERVERS / "vllm" / "bin" / "vllm", "serve", MODEL, "--served-model-name", "smollm2", "--port", port]
    command += ["--host", "127.0.0.1", "--dtype", "float32", "--max-model-len", CONTEXT, "--max-num-seqs", "8"]
    command += ["--enforce-eager", "--return-tokens-as-token-ids"]
    settings = {"VLLM_TARGET_DEVICE": "cpu", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    settings |= {"OMP_NUM_THREADS": "1", "VLLM_NO_USAGE_STATS": "1"}
    with running(command, f"http://127.0.0.1:{port}/health", folder / "vllm.log", settings):
        yield ModelServer(f"http://127.0.0.1:{port}/v1", "smollm2")


@contextmanager
def transformers_serve(folder: Path) -> Iterator[ModelServer]:
    port = free_port()
    command = [SERVERS / "transformers" / "bin" / "transformers", "serve", MODEL, "--dtype", "float32"]
    command += ["--host", "127.0.0.1", "--port", port]
    with running(
        command,
        f"http://127.0.0.1:{port}/health",
        folder / "transformers.log",
        {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
    ):
        yield ModelServer(f"http://127.0.0.1:{port}/v1", str(MODEL))


@contextmanager
def litellm(folder: Path, behind: ModelServer, requests_per_minute: int | None = None) -> Iterator[ModelServer]:
    """Start LiteLLM in front of another server."""
    port = free_port()
    upstream: dict[str, Any] = {"model": f"hosted_vllm/{behind.model}", "api_base": behind.url, "api_key": "none"}
    if requests_per_minute is not None:
        upstream["rpm"] = requests_per_minute
    limits = (
        {}
        if requests_per_minute is None
        else {"router_settings": {"optional_pre_call_checks": ["enforce_model_rate_limits"]}}
    )
    config = {"model_list": [{"model_name": "smollm2", "litellm_params": upstream}], **limits}
    config["general_settings"] = {"master_key": KEY}
    (folder / "litellm.yaml").write_text(json.dumps(config))  # JSON is YAML
    command = [SERVERS / "litellm" / "bin" / "litellm", "--config", folder / "litellm.yaml"]
    command += ["--host", "127.0.0.1", "--port", port]
    os.environ["GEM_TEST_KEY"] = KEY
    with running(command, f"http://127.0.0.1:{port}/health/liveliness", folder / "litellm.log"):
        yield ModelServer(f"http://127.0.0.1:{port}/v1", "smollm2", "GEM_TEST_KEY")


@contextmanager
def running(
    command: Sequence[Any], health: str, log: Path, settings: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a server until the end of the block, which begins when the server answers at ``health``."""
    with log.open("w") as output:
        process = subprocess.Popen(
            list(map(str, command)), env={**os.environ, **(settings or {})}, stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + START_S
        while not is_up(health):
            assert process.poll() is None, log.read_text()[-5000:]
            assert time.monotonic() < deadline, f"{health} did not answer within {START_S} s: {log.read_text()[-5000:]}"
            time.sleep(1)
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def openai_replies(server: ModelServer, bodies: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Send requests with the openai client, and return what it got."""
    script = Path(__file__).with_name("ask_openai.py")
    question = {"url": server.url, "key": KEY if server.api_key_env else "none", "bodies": list(bodies)}
    asked = subprocess.run(
        [SERVERS / "litellm" / "bin" / "python", script],
        input=json.dumps(question),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(asked.stdout)
