"""OpenTelemetry spans of episodes, by the semantic conventions for generative AI.

An episode is a trace, which is made when it has ended, from the seconds that each turn records: ``invoke_agent`` around
``chat`` (a request to the policy) and ``step`` (the environment's answer), around ``execute_tool`` (a call of a tool).
The seconds of single calls are not recorded; their spans are as long as the step. Spans hold no text of prompts,
replies and tool calls.

Attributes that begin with "gen_ai." are those of https://opentelemetry.io/docs/specs/semconv/gen-ai/, version 1.41.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from typing import Any

from gem.errors import require
from gem.policies.usage import total_usage
from gem.trajectory import Trajectory, Turn

logger = logging.getLogger(__name__)
_USAGE = {
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}
_SAMPLING = ("temperature", "top_p", "max_tokens", "seed")


class SpanLog:
    """Sends the spans of episodes to the process's tracer provider, or without one to an OTLP collector.

    The collector is that of $OTEL_EXPORTER_OTLP_ENDPOINT, by default http://localhost:4318.

    Raises:
        MissingDependency: OpenTelemetry is not installed.
    """

    def __init__(self) -> None:
        self._api: Any = require("opentelemetry.trace", extra="otel")
        sdk: Any = require("opentelemetry.sdk.trace", extra="otel")
        provider: Any = self._api.get_tracer_provider()
        self._own = None if isinstance(provider, sdk.TracerProvider) else _to_collector(sdk)
        self._tracer = (self._own or provider).get_tracer("gem")

    def episode(self, trajectory: Trajectory, env: str) -> None:
        """Send the spans of an episode that has just ended.

        Args:
            env: name of the environment in the report.
        """
        turns, model = trajectory.turns, trajectory.model or "unknown"
        clock = time.time_ns() - sum(_ns(turn, "policy") + _ns(turn, "env") for turn in turns)
        about = {"gem.env": env, "gem.sample": trajectory.episode, "gem.task": str(trajectory.group_id)}
        whole = {**_of_model(trajectory, turns), **about, "gen_ai.agent.name": model, **_usage(turns)}
        root = self._begin(f"invoke_agent {model}", "invoke_agent", clock, whole, None)
        for k, turn in enumerate(turns):
            asked = {**_of_model(trajectory, [turn]), **_usage([turn]), "gem.turn": k}
            if turn.model is not None:
                asked["gen_ai.response.model"] = turn.model
            if turn.finish is not None:
                asked["gen_ai.response.finish_reasons"] = [turn.finish]
            asked |= _numbers({f"gen_ai.request.{name}": trajectory.sampling.get(name) for name in _SAMPLING})
            chat = self._begin(f"chat {model}", "chat", clock, asked, root, client=True)
            clock += _ns(turn, "policy")
            chat.end(clock)
            found = {"gem.turn": k, **_numbers({"gem.reward": turn.reward})}
            step = self._begin(f"step {env}", None, clock, found | about, root, error=turn.invalid)
            for call in turn.tool_calls:
                name, fault = str(call.get("name")), call.get("fault")
                of_call = {"gen_ai.tool.name": name, "gen_ai.tool.type": "function"}
                tool = self._begin(f"execute_tool {name}", "execute_tool", clock, of_call, step, error=fault)
                tool.end(clock + _ns(turn, "env"))
            clock += _ns(turn, "env")
            step.end(clock)
        if trajectory.failure is None:
            score = {"name": "reward", "score.value": trajectory.total_reward, "score.label": trajectory.stop_reason}
            result = {f"gen_ai.evaluation.{name}": value for name, value in score.items() if value is not None}
            root.add_event("gen_ai.evaluation.result", result, clock)
        else:
            root.set_attribute("error.type", trajectory.failure.partition(":")[0])
            root.set_status(self._api.StatusCode.ERROR, trajectory.failure)
        root.end(clock)

    def close(self) -> None:
        """Send what has not been sent yet."""
        if self._own is not None:
            self._own.shutdown()

    def _begin(
        self,
        name: str,
        operation: str | None,
        clock: int,
        attributes: Mapping[str, Any],
        parent: Any,
        *,
        client: bool = False,
        error: Any = None,
    ) -> Any:
        named = {**attributes} if operation is None else {"gen_ai.operation.name": operation, **attributes}
        if error is not None:
            named["error.type"] = str(getattr(error, "value", error))
        kind = self._api.SpanKind.CLIENT if client else self._api.SpanKind.INTERNAL
        around: Any = require("opentelemetry.context", extra="otel").Context()
        around = around if parent is None else self._api.set_span_in_context(parent, around)
        return self._tracer.start_span(name, around, kind, named, start_time=clock)


def _to_collector(sdk: Any) -> Any:
    """Return a provider that sends spans by OTLP."""
    processors: Any = require("opentelemetry.sdk.trace.export", extra="otel")
    name = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": "gem"}
    provider = sdk.TracerProvider(resource=require("opentelemetry.sdk.resources", extra="otel").Resource.create(name))
    provider.add_span_processor(processors.BatchSpanProcessor(_Exporter()))
    return provider


class _Exporter:
    """The OTLP exporter. If it cannot send, one warning says so, and the rest is not sent."""

    def __init__(self) -> None:
        self._library: Any = require("opentelemetry.exporter.otlp.proto.http.trace_exporter", extra="otel")
        logging.getLogger(self._library.__name__).addFilter(lambda record: False)  # a line per batch and retry
        self._exporter, self._fails = self._library.OTLPSpanExporter(), False

    def export(self, spans: Any) -> Any:
        if self._fails:
            return None
        result = self._exporter.export(spans)
        if result.name != "SUCCESS":
            self._fails = True
            where = self._exporter._endpoint
            logger.warning("--log otel failed, and gets no more of this run: %s accepts no spans", where)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True


def _of_model(trajectory: Trajectory, turns: list[Turn]) -> dict[str, Any]:
    has_server = any(turn.usage or turn.model for turn in turns)
    model = {} if trajectory.model is None else {"gen_ai.request.model": trajectory.model}
    return {"gen_ai.provider.name": "openai" if has_server else "gem", **model}  # "openai" is the protocol


def _usage(turns: list[Turn]) -> dict[str, int]:
    return {_USAGE[name]: count for name, count in total_usage(turn.usage for turn in turns).items()}


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if isinstance(value, (int, float))}


def _ns(turn: Turn, part: str) -> int:
    return int(turn.seconds.get(part, 0.0) * 1e9)
