"""A fake of vLLM and SGLang: samples from a model, and loads new weights and LoRA adapters while requests arrive."""

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

    Attributes:
        models: the policies, by the name of the version that requests ask for.
        posts: path and body of each request, in order.
    """

    def __init__(self, policy: CausalLMPolicy, *, ids: bool = True) -> None:
        self.first, self.policy, self.ids = policy, policy, ids
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
        if path == "/update_weights_from_disk":
            model, tokenizer = load_pretrained(body["model_path"])
            self.policy = CausalLMPolicy(model, tokenizer, max_new_tokens=self.first.max_new_tokens)
            self.loaded.append(Path(body["model_path"]).name)
            return 200, json.dumps({"success": True, "message": "loaded"})
        if path == "/v1/load_lora_adapter":
            self.adapters[body["lora_name"]] = sorted(p.name for p in Path(body["lora_path"]).iterdir())
            return 200, f"Success: LoRA adapter '{body['lora_name']}' added successfully."
        if path == "/v1/unload_lora_adapter":
            del self.adapters[body["lora_name"]]
            return 200, "Success"
        request = Request("", body["prompt"], (0, 0, body["seed"]), str)
        (reply,) = self.policy.variant(max_new_tokens=body["max_tokens"]).act([request])
        choice: dict[str, Any] = {"text": reply.text, "finish_reason": reply.finish}
        if self.ids:
            choice |= {"token_ids": reply.sampled_ids, "logprobs": {"tokens": [], "token_logprobs": reply.logprobs}}
        return 200, json.dumps({"choices": [choice]})
