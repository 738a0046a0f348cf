"""OpenTelemetry spans of episodes."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs the extra [otel]")
pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="needs the extra [otel]")
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gem.evaluation import evaluate
from gem.evaluation.logs.spans import SpanLog
from gem.trajectory import Trajectory, Turn

TURNS = [
    Turn(
        "What is 2 + 2?",
        "<python>print(2 + 2)</python>",
        finish="stop",
        seconds={"policy": 1.5, "env": 0.5},
        usage={"prompt_tokens": 20, "completion_tokens": 198, "total_tokens": 623},  # Gemini
        model="served",
        tool_calls=[{"name": "python", "arguments": {}, "fault": None}, {"name": "sql", "fault": "unknown_tool"}],
    ),
    Turn(
        "4",
        "secret",
        finish="length",
        seconds={"policy": 2.0, "env": 0.25},
        reward=1.0,
        invalid="no_action",
        usage={"prompt_tokens": 300, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 128}},
    ),
]
PLAYED = Trajectory(
    "math:X",
    episode=3,
    turns=TURNS,
    group_id="task",
    model="m",
    sampling={"temperature": 0.5, "system": "secret"},
    terminated=True,
    stop_reason="solved",
)


@pytest.fixture
def sent(monkeypatch) -> InMemorySpanExporter:
    """The spans that reach the tracer provider of the process."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return exporter


def seconds(span: Any) -> float:
    return (span.end_time - span.start_time) / 1e9


def test_an_episode_is_a_trace_of_requests_steps_and_tool_calls(sent):
    log = SpanLog()
    log.episode(PLAYED, "math:X")
    log.close()
    spans = sorted(
        sent.get_finished_spans(), key=lambda span: (span.start_time, -span.end_time, span.name[:1] == "e", span.name)
    )
    names = {span.context.span_id: span.name for span in spans}
    assert [(span.name, span.parent and names[span.parent.span_id], seconds(span)) for span in spans] == [
        ("invoke_agent m", None, 4.25),
        ("chat m", "invoke_agent m", 1.5),
        ("step math:X", "invoke_agent m", 0.5),
        ("execute_tool python", "step math:X", 0.5),
        ("execute_tool sql", "step math:X", 0.5),
        ("chat m", "invoke_agent m", 2.0),
        ("step math:X", "invoke_agent m", 0.25),
    ]
    assert len({span.context.trace_id for span in spans}) == 1
    operations = [(span.attributes or {}).get("gen_ai.operation.name") for span in spans]
    assert operations == ["invoke_agent", "chat", None, "execute_tool", "execute_tool", "chat", None]
    assert [span.attributes.get("error.type") for span in spans] == [*[None] * 4, "unknown_tool", None, "no_action"]
    assert [span.kind.name for span in spans if span.name == "chat m"] == ["CLIENT", "CLIENT"]
    assert "secret" not in str([span.to_json() for span in spans])


def test_the_usage_has_the_names_of_the_conventions(sent):
    SpanLog().episode(PLAYED, "math:X")
    first, second, whole = (
        span.attributes for span in sent.get_finished_spans() if "step" not in span.name and "tool" not in span.name
    )
    assert {name: value for name, value in first.items() if name.startswith("gen_ai")} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.model": "served",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 603,
        "gen_ai.usage.reasoning.output_tokens": 405,
    }
    assert second["gen_ai.usage.cache_read.input_tokens"] == 128 and "gen_ai.response.model" not in second
    assert (whole["gen_ai.usage.input_tokens"], whole["gen_ai.usage.output_tokens"]) == (320, 610)


def test_the_score_is_an_evaluation_event_and_a_failure_an_error(sent):
    log = SpanLog()
    log.episode(PLAYED, "math:X")
    log.episode(Trajectory("math:X", failure="EndpointError: down", model="m"), "math:X")
    played, failed = (span for span in sent.get_finished_spans() if span.name == "invoke_agent m")
    (event,) = played.events
    assert (event.name, dict(event.attributes)) == (
        "gen_ai.evaluation.result",
        {
            "gen_ai.evaluation.name": "reward",
            "gen_ai.evaluation.score.value": 1.0,
            "gen_ai.evaluation.score.label": "solved",
        },
    )
    assert not failed.status.is_ok and failed.attributes["error.type"] == "EndpointError" and not failed.events


def test_an_evaluation_sends_a_trace_per_sample(sent):
    report = evaluate("random", "game:GuessTheNumber-v0-easy", limit=5, log="otel")
    roots = [span for span in sent.get_finished_spans() if span.parent is None]
    assert report.complete and sorted(span.attributes["gem.sample"] for span in roots) == [0, 1, 2, 3, 4]
    assert {span.attributes["gem.env"] for span in roots} == {"game:GuessTheNumber-v0-easy"}


def test_a_collector_that_cannot_be_reached_costs_one_warning(monkeypatch, caplog):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")
    report = evaluate("random", "game:GuessTheNumber-v0-easy", limit=3, log="otel")
    assert report.complete
    warnings = [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
    assert warnings == [
        "--log otel failed, and gets no more of this run: http://127.0.0.1:9/v1/traces accepts no spans"
    ]
