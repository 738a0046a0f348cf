"""What the errors of providers mean: their own words, each with the expected cause."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gem.policies.refusals import WORDINGS, read_refusal

# Errors as providers send them to a request with max_tokens=1000, one per line.
ROWS = [json.loads(line) for line in (Path(__file__).parent / "provider_errors.jsonl").read_text("utf-8").splitlines()]


def cause_of(row: dict[str, Any]) -> str | None:
    return read_refusal(row["status"], json.dumps(row["body"]).encode()).resolve(None, 1000)


def error(message: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error"}}).encode()


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['cause']}-{row['provider']}-{i}" for i, row in enumerate(ROWS)])
def test_the_words_of_a_provider_have_their_cause(row):
    assert cause_of(row) == row["cause"]


def test_a_quota_per_day_is_no_limit_to_wait_for():
    details = b'[{"quotaId": "GenerateRequestsPerDayPerProject"}, {"retryDelay": "26s"}]'
    said = b'{"error": {"message": "You exceeded your current quota.", "details": ' + details + b"}}"
    assert read_refusal(429, said).cause == "access"


def test_every_provider_of_the_table_has_a_row():
    named = {(name, cause) for cause, rows in WORDINGS.items() for names, _ in rows for name in names.split(", ")}
    tested = {(row["provider"], read_refusal(row["status"], json.dumps(row["body"]).encode()).cause) for row in ROWS}
    assert named - tested == set()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error("Unrecognized request argument supplied: reasoning_effort")),
        (400, error("Invalid 'messages': array too long. Expected at most 2048 items, but got 3000.")),
        (400, error("'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")),
        (400, error("Unsupported value: 'temperature' does not support 0.5 with this model.")),
        (400, b'{"error": {"message": "Invalid prompt: messages do not match the schema", "code": "invalid_prompt"}}'),
        (429, b'{"error": {"message": "You exceeded your current quota. Please retry in 32.4s."}}'),
        (429, b'{"error": {"message": "You exceeded your current quota.", "details": [{"retryDelay": "26s"}]}}'),
        (400, error("`max_tokens` must be greater than `thinking.budget_tokens`.")),
        (403, b"<html><title>Attention Required!</title><h1>Sorry, you have been blocked</h1>"),
        (429, error("The server is currently overloaded with other requests.")),
        (400, error("1 validation error: temperature [input_value='the prompt is too long', input_type=str]")),
        (422, b'{"detail": [{"msg": "Input should be a string", "input": {"message": "maximum context length"}}]}'),
        (429, b'{"message": "Too many tokens, please wait before trying again."}'),
        (429, error("Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.")),
        (413, b"<html><h1>413 Request Entity Too Large</h1></html>"),
        (401, error("Incorrect API key provided: the prompt is too long.")),
        (500, error("Internal server error")),
        (500, error("rpc error: context deadline exceeded after 30000 ms with 4096 tokens of the prompt")),
        (500, error("worker failed: the prompt of 4096 tokens exceeds a buffer of 2048 tokens")),
        (500, error("CUDA out of memory for an input of 4096 tokens: 2048 MiB is too large")),
        (400, b""),
        (400, b"\xff" + b"{" * 1000),
    ],
)
def test_other_errors_have_no_cause(status, body):
    assert read_refusal(status, body).resolve(None, 1000) is None


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("The conversation has 9001 tokens, which is beyond what model m handles: 8,192.", "context_overflow"),
        ("Total prompt tokens (11573) exceeds safe limit (2048) for 1 requests.", "context_overflow"),
        ("The prompt is 4309 tokens long, but the maximum supported sequence length is just 4096!", "context_overflow"),
        ("max_tokens (10000) cannot exceed 8192. Please reduce the length.", "max_tokens"),
        ("The maximum tokens you requested exceeds the model limit of 2048.", "max_tokens"),
        ("The prompt is too much for 8192 tokens.", None),
    ],
)
def test_words_that_are_not_known_are_recognized_by_what_they_compare(said, cause):
    assert read_refusal(400, error(said)).cause == cause


@pytest.mark.parametrize(
    ("prompt_tokens", "max_tokens", "cause"),
    [(9001, 50, "context_overflow"), (8951, 50, None), (8151, 850, "total"), (9001, None, "context_overflow")],
)
def test_a_length_that_the_message_repeats_decides_in_any_language(prompt_tokens, max_tokens, cause):
    assert read_refusal(400, error("长度 9001 超过上限 8192")).resolve(prompt_tokens, max_tokens) == cause


def test_the_limit_of_the_server_is_read():
    totals = [row for row in ROWS if row["cause"] == "total"]
    limits = [read_refusal(row["status"], json.dumps(row["body"]).encode()).limit for row in totals]
    assert limits == [8193, 4096, 128000, 2048, 4097, 131072, 202752, 200000, 4096]
