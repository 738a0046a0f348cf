"""A fake of vLLM 0.32 and SGLang 0.5.23: samples from a model, and loads new weights while requests arrive.

Requests and replies have the fields that these tests need. Unlike the servers, it answers one request at a time.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from gem.policies import Request
from gem.rl.model.loading import load_pretrained
from gem.rl.model.policy import CausalLMPolicy


class ModelServer:
    """A server of one model, in a thread.

    Args:
        policy: the policy at the start.
        ids: whether replies have token ids.
        missing: a path that the server does not have.

    Attributes:
        policy: the policy that replies.
        posts: path and body of each request, in order.
        loaded: names of the folders of the weights that replaced the first, in order.
        adapters: names of the files of each adapter that is loaded, by its name.
    """

    def __init__(self, policy: CausalLMPolicy, *, ids: bool = True, missing: str = "") -> None:
        self.first, self.policy, self.ids, self.missing = policy, policy, ids, missing
        self._new = policy  # the weights of vLLM, while its caches still have keys and values of older ones
        self.posts: list[tuple[str, dict[str, Any]]] = []
        self.loaded: list[str] = []
        self.adapters: dict[str, list[str]] = {}
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server._lock:
                    status, answer = server.answer(self.path, body)
                data = answer.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> ModelServer:
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, str]:
        self.posts.append((path, body))
        routes = {
            "/v1/completions": self._complete,
            "/v1/load_lora_adapter": self._load_adapter,
            "/v1/unload_lora_adapter": self._unload_adapter,
            "/collective_rpc": self._call_workers,
            "/reset_prefix_cache?reset_running_requests=true": self._reset_cache,
            "/update_weights_from_disk": self._update_from_disk,
        }
        if path not in routes or path == self.missing:
            return 404, json.dumps({"detail": "Not Found"})
        try:
            return routes[path](body)
        except KeyError as e:
            return 400, json.dumps({"error": {"message": f"Field required: {e}", "code": 400}})

    def _complete(self, body: dict[str, Any]) -> tuple[int, str]:
        request = Request("", body["prompt"], (0, 0, body["seed"]), str)
        (reply,) = self.policy.variant(max_new_tokens=body["max_tokens"]).act([request])
        tokens = [f"{id}" for id in reply.sampled_ids]
        logprobs = {"tokens": tokens, "token_logprobs": reply.logprobs, "top_logprobs": [], "text_offset": []}
        choice: dict[str, Any] = {"index": 0, "text": reply.text, "finish_reason": reply.finish, "logprobs": logprobs}
        if self.ids and body["return_token_ids"]:
            choice |= {"token_ids": reply.sampled_ids, "prompt_token_ids": body["prompt"]}
        return 200, json.dumps({"object": "text_completion", "model": body["model"], "choices": [choice]})

    def _load_adapter(self, body: dict[str, Any]) -> tuple[int, str]:
        self.adapters[body["lora_name"]] = sorted(p.name for p in Path(body["lora_path"]).iterdir())
        return 200, f"Success: LoRA adapter '{body['lora_name']}' added successfully."

    def _unload_adapter(self, body: dict[str, Any]) -> tuple[int, str]:
        del self.adapters[body["lora_name"]]
        return 200, f"Success: LoRA adapter '{body['lora_name']}' removed successfully."

    def _call_workers(self, body: dict[str, Any]) -> tuple[int, str]:
        assert body["method"] == "reload_weights"
        self._new = self._load(body["kwargs"]["weights_path"])
        return 200, json.dumps({"results": [None]})

    def _reset_cache(self, body: dict[str, Any]) -> tuple[int, str]:
        self.policy = self._new
        return 200, json.dumps({"success": True})

    def _update_from_disk(self, body: dict[str, Any]) -> tuple[int, str]:
        self.policy = self._load(body["model_path"])
        return 200, json.dumps({"success": True, "message": "Succeeded to update", "num_paused_requests": 0})

    def _load(self, folder: str) -> CausalLMPolicy:
        self.loaded.append(Path(folder).name)
        model, tokenizer = load_pretrained(folder)
        return CausalLMPolicy(model, tokenizer, max_new_tokens=self.first.max_new_tokens)
