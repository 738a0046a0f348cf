"""What an evaluation costs: prices, the cost of a turn, and the cost limit."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable

import pytest

from gem._internal.folders import is_own
from gem.cli import main
from gem.errors import BadValue, UnknownArgument
from gem.evaluation import CostLimitReached, EvalReport, Price, evaluate, rescore
from gem.evaluation.columns import BY_KEY, Sample
from gem.evaluation.cost import read_price, turn_cost
from gem.evaluation.exchange.inspect_logs import export_inspect
from gem.evaluation.report import env_score, read_report
from gem.policies import Reply, Request
from gem.trajectory import Trajectory, Turn, read_jsonl
from gem.viewer.recordings import Recordings

GAME = "game:GuessTheNumber-v0-easy"
PRICE = Price(input=2.0, output=8.0, cached_input=0.5)  # dollars per million tokens


def turn(finish: str | None = None, **usage: object) -> Turn:
    return Turn("q", "a", usage=usage, finish=finish)


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        ({"prompt_tokens": 1_000_000, "completion_tokens": 0}, 2.0),
        ({"prompt_tokens": 0, "completion_tokens": 100_000}, None),  # a prompt has tokens: this one is not reported
        ({"prompt_tokens": 500_000, "completion_tokens": 100_000}, 1.0 + 0.8),
        # OpenAI: the cached tokens are part of the prompt, the reasoning is part of the reply
        (
            {
                "prompt_tokens": 500_000,
                "prompt_tokens_details": {"cached_tokens": 400_000},
                "completion_tokens": 100_000,
                "completion_tokens_details": {"reasoning_tokens": 90_000},
            },
            0.2 + 0.2 + 0.8,
        ),
        # Anthropic: they are not
        ({"input_tokens": 100_000, "cache_read_input_tokens": 400_000, "output_tokens": 100_000}, 0.2 + 0.2 + 0.8),
        # xAI: the reasoning is not
        ({"prompt_tokens": 500_000, "completion_tokens": 10_000, "total_tokens": 600_000}, 1.0 + 0.8),
        ({"prompt_tokens": 500_000, "completion_tokens": 100_000, "cost": 9.0}, 1.8),  # a given price comes first
        ({"prompt_tokens": 5}, None),
        ({"prompt_tokens": "5", "completion_tokens": "5"}, None),
        ({}, None),
    ],
)
def test_a_turn_costs_its_tokens_at_the_price(usage, dollars):
    assert turn_cost(turn(**usage), PRICE) == (None if dollars is None else pytest.approx(dollars))


def test_without_a_price_a_turn_costs_what_the_endpoint_charges_or_is_unknown():
    assert turn_cost(turn(prompt_tokens=5, completion_tokens=5, cost=0.25), None) == 0.25
    assert turn_cost(turn(prompt_tokens=5, completion_tokens=5), None) is None
    assert turn_cost(turn(prompt_tokens=5, completion_tokens=5, cost="free"), None) is None


@pytest.mark.parametrize("price", [PRICE, None])
def test_a_request_that_the_endpoint_refused_costs_nothing(price):
    assert turn_cost(turn("context_overflow"), price) == turn_cost(turn("content_filter"), price) == 0.0
    assert turn_cost(turn("stop"), price) is None


def test_tokens_that_a_model_in_this_process_fed_and_sampled_have_the_price_too():
    assert turn_cost(Turn("q", "a", context=[1] * 1000, sampled_ids=[2] * 500), PRICE) == pytest.approx(0.006)


def test_cached_tokens_cost_as_others_without_a_price_of_their_own():
    assert Price(input=2.0, output=8.0).of(1_000_000, 0, 400_000) == 2.0


def test_one_turn_of_unknown_cost_makes_that_of_the_episode_unknown_and_not_lower():
    known = turn(prompt_tokens=1_000_000, completion_tokens=0)
    assert Sample.of(Trajectory(turns=[known, known]), PRICE).cost == 4.0
    assert Sample.of(Trajectory(turns=[known, turn()]), PRICE).cost is None
    assert Sample.of(Trajectory(turns=[known]), None).cost is None


PRICES = {"small": {"input": 0.1, "output": 0.4}, "gpt-4.1": {"input": 2, "output": 8, "cached_input": 0.5}}
TOML = """
[small]
input = 0.1
output = 0.4

["gpt-4.1"]
input = 2
output = 8
cached_input = 0.5
"""


@pytest.mark.parametrize(("name", "text"), [("prices.json", json.dumps(PRICES)), ("prices.toml", TOML)])
def test_prices_are_read_from_json_and_toml(name, text, tmp_path):
    if name.endswith(".toml"):
        pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")
    (tmp_path / name).write_text(text)
    assert read_price(str(tmp_path / name), "gpt-4.1") == PRICE
    assert read_price(str(tmp_path / name), "small").cached_input is None


@pytest.mark.parametrize(
    ("prices", "error", "message"),
    [
        ({"gpt-4": {"input": 1, "output": 2}}, BadValue, "no price of 'gpt-4.1'; did you mean 'gpt-4'"),
        ({"gpt-4": {"1": {"input": 1}}}, BadValue, r'\["gpt-4.1"\]'),  # the key without quotes, in TOML
        ({"gpt-4.1": {"input": 1}}, BadValue, "needs the prices of input and output"),
        ({"gpt-4.1": {"input": 1, "output": -1}}, BadValue, "output must be at least 0"),
        ({"gpt-4.1": {"input": 1, "output": "2"}}, BadValue, "output must be of type float"),
        ({"gpt-4.1": {"input": 1, "output": 2, "cache_input": 1}}, UnknownArgument, "did you mean 'cached_input'"),
        ([], BadValue, "no price of"),
    ],
)
def test_unusable_prices_are_refused(prices, error, message, tmp_path):
    (tmp_path / "prices.json").write_text(json.dumps(prices))
    with pytest.raises(error, match=message):
        read_price(str(tmp_path / "prices.json"), "gpt-4.1")
    with pytest.raises(BadValue, match=r"cannot read the prices"):
        read_price(str(tmp_path / "none.json"), "gpt-4.1")


class Spender:
    """Each reply costs a dollar at PRICE; the function gives its text, or a Reply, for (episode, turn)."""

    chat, max_prompt_tokens, version, model_name = None, None, 0, "spender"

    def __init__(self, reply: Callable[[int, int], str | Reply] = lambda episode, turn: r"\boxed{1}") -> None:
        self.reply, self.asked = reply, Counter[int]()

    def act(self, requests: list[Request]) -> list[Reply]:
        return [self._said(*request.key[1:]) for request in requests]

    def _said(self, episode: int, turn: int) -> Reply:
        self.asked[episode] += 1
        said = self.reply(episode, turn)
        usage = {"prompt_tokens": 400_000, "completion_tokens": 25_000}
        return said if isinstance(said, Reply) else Reply(said, usage=usage)


def run(policy: Spender, out: str | None = None, **options) -> EvalReport:
    return evaluate(policy, "qa:Facts", price=PRICE, concurrency=4, backoff=0.0, out=out, **options)


def test_the_report_has_the_cost_of_each_environment_and_says_what_is_unknown(tmp_path):
    report = run(Spender(), str(tmp_path / "run"), limit=5)
    assert report["qa:Facts"].cost == pytest.approx(5.0) and "| 5.0000 |" in report.to_markdown()
    assert read_report(tmp_path / "run")["envs"][0]["cost"] == pytest.approx(5.0)
    assert report.settings["price"] == {"input": 2.0, "output": 8.0, "cached_input": 0.5}
    assert rescore(str(tmp_path / "run")).after["qa:Facts"].cost == pytest.approx(5.0)
    unknown = evaluate(Spender(), "qa:Facts", limit=5, out=str(tmp_path / "unknown"))
    assert unknown.to_markdown().splitlines()[4].endswith("| 0 |  |")
    assert read_report(tmp_path / "unknown")["envs"][0]["cost"] is None


def test_a_run_stops_at_its_cost_limit_and_goes_on_with_a_higher_one(tmp_path):
    out, policy = str(tmp_path / "run"), Spender()
    with pytest.raises(CostLimitReached, match=r"\$8 spent of the cost limit of \$6; continue with: gem eval --resume"):
        run(policy, out, limit=20, cost_limit=6.0)
    assert sum(policy.asked.values()) == 8  # two batches of four; what was asked is finished
    assert len(list(read_jsonl(f"{out}/trajectories.jsonl"))) == 8
    stopped = read_report(out)
    assert (stopped["envs"][0]["done"], stopped["envs"][0]["failed"], stopped["complete"]) == (8, 0, False)
    with pytest.raises(CostLimitReached):
        run(policy, out, limit=20, cost_limit=8.0, resume=True)
    assert sum(policy.asked.values()) == 8
    report = run(policy, out, limit=20, cost_limit=20.0, resume=True)
    assert report.complete and sum(policy.asked.values()) == 20 and report["qa:Facts"].cost == pytest.approx(20.0)


@pytest.mark.parametrize("mine", [True, False])
def test_the_price_of_a_resumed_run_is_recorded_and_its_folder_stays_as_trusted_as_it_was(mine, tmp_path):
    out = tmp_path / "run"
    evaluate(Spender(), "qa:Facts", price=PRICE, limit=3, out=str(out), notes={"command": {"policy": "x"}})
    if not mine:
        (out / "eval.json").write_text((out / "eval.json").read_text() + "\n")
    double = Price(input=2 * PRICE.input, output=2 * PRICE.output)
    report = evaluate(Spender(), "qa:Facts", price=double, limit=3, out=str(out), resume=True)
    assert report["qa:Facts"].cost == pytest.approx(6.0)
    recorded = json.loads((out / "eval.json").read_text())
    assert recorded["price"]["input"] == double.input and recorded["notes"] == {"command": {"policy": "x"}}
    assert Recordings([out]).rows[0]["cost"] == pytest.approx(2.0)
    assert is_own(out / "eval.json") == mine


def test_a_limit_ends_episodes_between_their_turns_and_no_further_one_begins(tmp_path):
    out, policy = str(tmp_path / "run"), Spender(lambda episode, turn: r"\boxed{11}" if episode else r"\boxed{x}")
    options = {"price": PRICE, "concurrency": 4, "limit": 10, "out": out}
    with pytest.raises(CostLimitReached, match=r"\$4 spent"):
        evaluate(policy, GAME, cost_limit=4.0, **options)
    assert policy.asked == {0: 1, 1: 1, 2: 1, 3: 1}  # episode 0 ends at once, with an action that cannot be read
    cut = list(read_jsonl(f"{out}/failures.jsonl"))
    assert [(t.episode, len(t.turns), str(t.failure).split(":")[0]) for t in cut] == [
        (number, 1, "CostLimitReached") for number in (1, 2, 3)
    ]
    with pytest.raises(CostLimitReached):  # their turns count, though nothing of them is scored
        evaluate(policy, GAME, cost_limit=4.0, **options, resume=True)
    assert sum(policy.asked.values()) == 4
    report = evaluate(policy, GAME, **options, resume=True)
    turns = sum(len(t.turns) for t in read_jsonl(f"{out}/trajectories.jsonl"))
    assert report.complete and report[GAME].cost == pytest.approx(turns)
    assert report.lost == pytest.approx(3.0)


def test_a_limit_that_is_spent_before_any_sample_has_ended_keeps_nothing(tmp_path):
    policy = Spender(lambda episode, turn: r"\boxed{11}")
    with pytest.raises(CostLimitReached, match="no sample had ended"):
        evaluate(policy, GAME, price=PRICE, cost_limit=1.0, limit=10, out=str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_limit_without_known_costs_is_refused_at_the_first_replies():
    policy = Spender()
    with pytest.raises(BadValue, match=r"--price-in and --price-out, or --prices"):
        evaluate(policy, "qa:Facts", limit=20, cost_limit=1.0, concurrency=4)
    assert sum(policy.asked.values()) == 4
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(BadValue, match="cost_limit must be dollars above 0"):
            evaluate(policy, "qa:Facts", limit=20, cost_limit=wrong)


def test_failed_attempts_are_paid_but_in_no_cost_of_an_environment(tmp_path):
    def reply(episode: int, turn: int) -> str | Reply:
        return Reply("", failure="EndpointError: down") if episode == 1 and policy.asked[1] == 2 else r"\boxed{11}"

    policy = Spender(reply)
    report = evaluate(policy, GAME, price=PRICE, limit=2, out=str(tmp_path / "run"), backoff=0.0)
    assert report.complete and report[GAME].failed == 0 and report.lost == pytest.approx(1.0)
    assert any("failed attempts have cost $1.0000 more" in note for note in report.notes())


def test_the_report_has_cached_and_reasoning_tokens_times_and_retries():
    usage = {
        "prompt_tokens": 500,
        "completion_tokens": 40,
        "prompt_tokens_details": {"cached_tokens": 300},
        "completion_tokens_details": {"reasoning_tokens": 30},
        "retries": {"status 429": 2, "timeout": 1},
    }
    turns = [Turn("q", "a", usage=usage, seconds={"policy": k / 10, "env": 0.25}) for k in range(1, 21)]
    samples = {"a": [Sample.of(Trajectory(turns=turns[:12]))], "b": [Sample.of(Trajectory(turns=turns[12:]))]}
    scores = env_score(samples, name="x", id="x")
    assert (scores.tokens_in, scores.tokens_cached) == (10_000, 6_000)
    assert (scores.tokens_out, scores.tokens_reasoning) == (800, 600)
    assert (scores.latency_p50, scores.latency_p95) == (1.0, 1.9)  # of 0.1, 0.2, … 2.0: the 10th and the 19th
    assert (scores.seconds_policy, scores.seconds_env) == (pytest.approx(10.5), pytest.approx(2.5))
    assert scores.retries == 60 and scores.retry_causes == {"status 429": 40, "timeout": 20}
    notes = EvalReport(model="m", envs=[scores]).notes()
    assert "x: retries after status 429 (40), timeout (20)" in notes
    assert "x: request p50 1 s, request p95 1.9 s, model time 10.5 s, environment time 2.5 s" in notes
    assert [BY_KEY["seconds_env"].text(value) for value in (0.00119, 99.96, 1234.5)] == ["0.00119", "100", "1,234"]


def test_requests_that_were_sent_again_are_counted_by_cause(tmp_path):
    pytest.importorskip("aiohttp", reason="needs the extra [eval]")
    from gem.policies import Endpoint, EndpointPolicy
    from gem.testing.fakes import FakeEndpoint
    from gem.testing.fakes.endpoint import Answer

    answers = ["a", Answer(status=503), Answer(status=503), Answer(body="<html>"), "b", Answer(status=429), "c"]
    with FakeEndpoint(answers) as server, Endpoint(server.url, "m", backoff=0.001) as endpoint:
        report = evaluate(EndpointPolicy(endpoint), "qa:Facts", limit=3, concurrency=1, out=str(tmp_path / "run"))
    facts = report["qa:Facts"]
    assert facts.retry_causes == {"status 503": 2, "invalid reply": 1, "status 429": 1} and facts.retries == 4
    assert "qa:Facts: retries after status 503 (2), invalid reply (1), status 429 (1)" in report.notes()
    recorded = [t.turns[0].usage.get("retries") for t in read_jsonl(tmp_path / "run" / "trajectories.jsonl")]
    assert recorded == [None, {"status 503": 2, "invalid reply": 1}, {"status 429": 1}]


def test_the_log_for_inspect_ai_has_the_tokens_in_its_accounting_and_the_cost(tmp_path):
    def reply(episode: int, turn: int) -> Reply:
        details = {"prompt_tokens_details": {"cached_tokens": 400_000}}
        return Reply("a", usage={"prompt_tokens": 500_000, "completion_tokens": 100_000, **details})

    run(Spender(reply), str(tmp_path / "run"), limit=1)
    (file,) = export_inspect(str(tmp_path / "run"), str(tmp_path / "inspect"))
    assert json.loads(file.read_text())["samples"][0]["model_usage"]["spender"] == {
        "input_tokens": 100_000,
        "input_tokens_cache_read": 400_000,
        "output_tokens": 100_000,
        "total_tokens": 600_000,
        "reasoning_tokens": 0,
        "total_cost": pytest.approx(0.2 + 0.2 + 0.8),
    }


FLAGS = ["eval", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--price-in", "1"], "give both --price-in and --price-out"),
        (["--price-in", "1", "--price-out", "-1"], "--price-out must be dollars >= 0"),
        (["--price-in", "1", "--price-out", "1", "--prices", "p.toml"], "not both"),
        (["--prices", "none.json"], "cannot read the prices in none.json"),
        (["--cost-limit", "0"], "--cost-limit must be dollars above 0"),
    ],
)
def test_unusable_flags_are_refused_before_the_run(flags, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*FLAGS, *flags]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_prices_have_no_effect_on_a_policy_without_a_model(capsys):
    assert main(["eval", "--policy", "random", "--cost-limit", "1"]) == 2
    assert "--cost-limit has no effect with --policy" in capsys.readouterr().err
