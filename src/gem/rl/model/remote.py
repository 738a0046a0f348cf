"""Sample the training episodes from a model server, and send it the new weights after each update.

The server is OpenAI-compatible and returns the token ids and log-probabilities of its replies, as vLLM and SGLang do.
Its arithmetic differs from that of training, and an episode may go on under newer weights than it began with; truncated
importance sampling (TrainConfig.truncated_is) corrects for both.

The requests follow vLLM 0.32 and 0.33 and SGLang 0.5.23: vllm/entrypoints/serve, and managers/io_struct.py of SGLang.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from gem._internal.http_client import HttpRequest, wait_for
from gem._internal.inbound import MESSAGE, loads
from gem.errors import BadValue, EndpointError
from gem.policies import AccessRefused, Endpoint, EndpointPolicy, Request, RequestRefused, Unreachable
from gem.rl.model.lora import save_merged
from gem.rl.model.policy import CausalLMPolicy

KEPT = 2  # versions of the weights on disk and, with vLLM, on the server: that of the requests in flight may be older
TIMEOUT = 600.0  # seconds for the server to load weights, and for a reply

Push: TypeAlias = Callable[[CausalLMPolicy, Endpoint, Path], str]
"""Sends the weights of a policy to the server of an endpoint, through a new folder that both can read.

Returns the name of the model for the requests that follow.
"""


@dataclass(frozen=True)
class WeightSync:
    """How a kind of server gets new weights.

    Args:
        route: the path that loads them, below the server's URL without "/v1".
        start: what to start for a server that has this route.
        push: sends the weights.
    """

    route: str
    start: str
    push: Push


class RemoteSampler:
    """Policies that sample from a server, and the version of the weights it has.

    Args:
        url: the server's URL with "/v1", such as "http://127.0.0.1:8000/v1".
        model: the model's name at the server.
        policies: the policies to sample from, one per environment; their limits, temperature and seeds apply.
        sync: how the server gets new weights, such as SGLANG.
        folder: holds the weights that are sent. The server must be able to read it, under the same path.

    Attributes:
        players: one per policy; their version is that of the weights at the server.

    Raises:
        BadValue: if the server does not return token ids and log-probabilities, or cannot load weights, with the
            reason.
        EndpointError: if the server cannot be reached.
    """

    def __init__(
        self, url: str, model: str, policies: Sequence[CausalLMPolicy], sync: WeightSync, folder: Path
    ) -> None:
        self.endpoint = Endpoint(url, model, timeout=TIMEOUT, concurrency=256)
        self.players = [_player(self.endpoint, policy) for policy in policies]
        self.sync, self.folder = sync, folder
        self.version: int | None = None  # None until the first push
        try:
            self._check()
        except BaseException:
            self.endpoint.close()
            raise

    def update(self, policy: CausalLMPolicy) -> None:
        """Send the weights of a policy to the server, unless it has this version.

        Requests in flight go on; their turns keep the version of the weights that they were sent under, although a
        server that replaces its weights may answer them with the new ones. Their log-probabilities, and so their
        ratios, are those of the answer.

        Raises:
            EndpointError: if the server does not accept the weights.
        """
        if self.version == policy.version:
            return
        if self.version is None:  # left by a run that was resumed
            for old in self.folder.glob("version-*"):
                shutil.rmtree(old)
        # A new name each time: vLLM refuses one that it knows, for example from before the run was resumed.
        path = self.folder.absolute() / f"version-{policy.version:06d}-{uuid.uuid4().hex[:8]}"
        path.mkdir(parents=True)
        self.endpoint.model = self.sync.push(policy, self.endpoint, path)
        self.version = policy.version
        for player in self.players:
            player.version = policy.version
        for old in sorted(self.folder.glob("version-*"))[:-KEPT]:
            shutil.rmtree(old)

    def close(self) -> None:
        """Close the connections to the server."""
        self.endpoint.close()

    def _check(self) -> None:
        player = self.players[0]
        assert player.chat is not None
        try:
            (reply,) = player.act([Request("", player.chat.prompt([{"role": "user", "content": "1"}]), (0, 0, 0), str)])
            reason = reply.failure
        except (BadValue, Unreachable) as e:
            reason = str(e)
        if reason is not None:
            raise BadValue(
                f"cannot train with the sampler {self.endpoint.url}, which has to return the token ids and "
                f"log-probabilities of its replies: {reason}"
            )
        try:
            _post(self.endpoint, self.sync.route, {})
        except RequestRefused:
            pass  # it has the route, and misses the arguments
        except AccessRefused as e:
            raise BadValue(
                f"cannot train with the sampler {self.endpoint.url}, which has to load new weights: {e}; start "
                f"{self.sync.start}"
            ) from e


def _player(endpoint: Endpoint, policy: CausalLMPolicy) -> EndpointPolicy:
    player = EndpointPolicy(
        endpoint,
        tokenizer=policy.tokenizer,
        max_prompt_tokens=policy.max_prompt_tokens,
        seed=policy.seed,
        max_tokens=policy.max_new_tokens,
        temperature=policy.temperature,
        # The defaults of servers come from the model's generation_config. The scored distribution has none of these.
        top_p=1.0,
        top_k=-1,
        min_p=0.0,
        repetition_penalty=1.0,
    )
    player.chat = policy.chat  # which knows the tokens that end replies of the model
    return player


def _push_adapter_to_vllm(policy: CausalLMPolicy, endpoint: Endpoint, path: Path) -> str:
    """Load the LoRA adapter of a policy under a new name, and unload an old one."""
    policy.save(path)
    _post(endpoint, VLLM_ADAPTER.route, {"lora_name": path.name, "lora_path": str(path)})
    for old in sorted(path.parent.glob("version-*"))[:-KEPT]:
        _post(endpoint, "/v1/unload_lora_adapter", {"lora_name": old.name})
    return path.name


def _push_to_vllm(policy: CausalLMPolicy, endpoint: Endpoint, path: Path) -> str:
    """Replace the weights by those of a policy, and drop all keys and values computed with the old ones.

    Requests in flight compute theirs again.
    """
    policy.save(path)
    _post(endpoint, VLLM.route, {"method": "reload_weights", "kwargs": {"weights_path": str(path)}})
    _post(endpoint, "/reset_prefix_cache?reset_running_requests=true", {})
    return endpoint.model


def _push_to_sglang(policy: CausalLMPolicy, endpoint: Endpoint, path: Path) -> str:
    """Replace the weights by those of a policy; with LoRA, by the merged ones.

    SGLang waits for the requests in flight before, and clears its prefix cache after.
    """
    if policy.has_adapter:
        save_merged(policy.model, policy.tokenizer, path)
    else:
        policy.save(path)
    _post(endpoint, SGLANG.route, {"model_path": str(path)})
    return endpoint.model


VLLM_ADAPTER = WeightSync(
    "/v1/load_lora_adapter",
    "vLLM with --enable-lora --max-loras 2 and VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 in its environment",
    _push_adapter_to_vllm,
)
VLLM = WeightSync("/collective_rpc", "vLLM with VLLM_SERVER_DEV_MODE=1 in its environment", _push_to_vllm)
SGLANG = WeightSync("/update_weights_from_disk", "SGLang, or set sync=vllm for vLLM", _push_to_sglang)


def weight_sync(engine: Literal["vllm", "sglang"], *, lora: bool) -> WeightSync:
    """Return how an engine gets the weights of a model that is trained whole, or as a LoRA adapter."""
    if engine == "sglang":
        return SGLANG
    return VLLM_ADAPTER if lora else VLLM


def _post(endpoint: Endpoint, path: str, body: Mapping[str, Any]) -> None:
    """Post JSON to the server. Raises EndpointError if it refuses, or answers {"success": false, "message": …}."""
    url = endpoint.url.removesuffix("/v1") + path
    headers = {"Content-Type": "application/json"}
    request = HttpRequest("POST", url, json.dumps(body).encode(), TIMEOUT, headers)
    reply = wait_for(endpoint.send(request, lambda data: data)).decode("utf-8", "replace")
    try:
        answer = loads(reply, url, MESSAGE)
    except ValueError:
        return  # vLLM answers in plain text
    if isinstance(answer, dict) and answer.get("success") is False:
        raise EndpointError(f"{url} did not carry out {body}: {answer.get('message', reply)}")
