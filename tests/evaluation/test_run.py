"""evaluate(): every sample once, what counts as an outcome and what as a failure, and resuming."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable

import pytest

import gem
from gem.core import Env, Step, StopReason
from gem.errors import BadValue, InfraError
from gem.evaluation import EvalEnv, EvalReport, evaluate
from gem.policies import Reply, Request
from gem.registry import ENV_REGISTRY
from gem.trajectory import read_jsonl

GAME = "game:GuessTheNumber-v0-easy"


class Coin(Env):
    """One turn: solved by the action "yes"."""

    def reset(self, seed=None):
        super().reset(seed)
        return "yes or no?", {}

    def step(self, action):
        if action == "crash":
            raise RuntimeError("the coin was lost")
        won = action == "yes"
        return Step("", float(won), True, False, {"stop_reason": StopReason.SOLVED if won else StopReason.LOST})


class Scripted:
    """Replies with the text or Reply that a function returns for (episode, attempt)."""

    chat, max_prompt_tokens, version = None, None, 0

    def __init__(self, reply: Callable[[int, int], str | Reply]) -> None:
        self.reply, self.asked = reply, Counter[int]()

    def act(self, requests: list[Request]) -> list[Reply]:
        replies = []
        for request in requests:
            episode = request.key[1]
            self.asked[episode] += 1
            reply = self.reply(episode, self.asked[episode])
            replies.append(reply if isinstance(reply, Reply) else Reply(reply))
        return replies


@pytest.fixture(autouse=True)
def coin():
    gem.register("test:Coin", Coin)
    yield
    del ENV_REGISTRY["test:Coin"]


@pytest.mark.parametrize("concurrency", [1, 7, 64])
def test_each_rollout_of_each_task_is_played_exactly_once(concurrency, tmp_path):
    policy = Scripted(lambda episode, attempt: "yes" if episode % 3 else "no")
    report = evaluate(policy, "test:Coin", limit=10, rollouts=3, concurrency=concurrency, out=tmp_path / "run")
    assert policy.asked == Counter(range(30))
    recorded = list(read_jsonl(tmp_path / "run" / "trajectories.jsonl"))
    assert sorted(t.episode for t in recorded) == list(range(30))
    assert set(Counter(t.group_id for t in recorded).values()) == {3}
    scores = report["test:Coin"]
    assert (scores.done, scores.failed, scores.score.value) == (30, 0, pytest.approx(2 / 3))
    assert scores.pass_at[3].value == 1.0 and scores.pass_hat[3].value == 0.0


def test_a_policy_may_have_an_attribute_of_its_own_that_is_called_backend():
    policy = Scripted(lambda episode, attempt: "yes")
    policy.backend = "vllm"
    assert evaluate(policy, "test:Coin", limit=2).backend == {}


def test_the_oracle_solves_and_random_play_mostly_does_not():
    assert evaluate("oracle", GAME, limit=10)[GAME].solved.value == 1.0
    assert evaluate("random", GAME, limit=10)[GAME].solved.value < 1.0
    assert evaluate("constant:yes", "test:Coin", limit=10)["test:Coin"].score.value == 1.0


def test_equal_episodes_of_different_seeds_are_one_task():
    scores = evaluate("constant:\\boxed{5}", GAME, limit=60)[GAME]
    assert scores.done == 60 and len(scores.tasks) == 10
    assert all(len(set(task["solved"])) == 1 for task in scores.tasks.values())
    assert scores.solved.value == pytest.approx(0.1) and scores.solved.high > 0.3


def test_the_package_itself_is_the_function():
    assert gem.evaluate("constant:yes", "test:Coin", limit=2)["test:Coin"].done == 2


def test_cut_replies_full_contexts_and_refusals_are_outcomes_with_columns():
    replies = [Reply("yes", finish="length"), Reply("", finish="context_overflow"), Reply("I won't", finish="refusal")]
    report = evaluate(Scripted(lambda episode, attempt: replies[episode]), "test:Coin", limit=3)
    scores = report["test:Coin"]
    assert (scores.done, scores.cut, scores.overflowed, scores.refused, scores.failed) == (3, 1, 1, 1, 0)
    assert scores.score.value == pytest.approx(1 / 3)


def test_failures_are_played_again_and_those_that_remain_are_in_no_mean(tmp_path):
    def reply(episode: int, attempt: int) -> str | Reply:
        failed = episode == 3 or (episode == 5 and attempt == 1)
        return Reply("", failure="EndpointError: status 500") if failed else "yes"

    policy = Scripted(reply)
    report = evaluate(policy, "test:Coin", limit=10, retries=2, backoff=0.0, out=str(tmp_path / "run"))
    scores = report["test:Coin"]
    assert (scores.done, scores.failed, scores.score.value) == (9, 1, 1.0)
    assert (policy.asked[3], policy.asked[5], policy.asked[0]) == (3, 2, 1)
    assert scores.if_failures_scored == (pytest.approx(0.9), 1.0) and report.failed_share == 0.1
    assert "score 0.900 or 1.000" in report.to_markdown()
    assert len(list(read_jsonl(tmp_path / "run" / "trajectories.jsonl"))) == 9
    assert report.attempts_failed == {"EndpointError: status 500": 4}
    assert "4 attempts failed; failed samples are played again" in report.to_markdown()


def test_a_resumed_run_counts_the_failed_attempts_of_before(tmp_path):
    policy = Scripted(lambda episode, attempt: Reply("", failure="E: no") if (episode, attempt) == (3, 1) else "yes")
    for resume in (False, True):
        options = {"limit": 4, "backoff": 0.0, "out": str(tmp_path / "run"), "resume": resume}
        assert evaluate(policy, "test:Coin", **options).attempts_failed == {"E: no": 1}


def test_a_crash_of_the_environment_is_a_failure_of_its_sample_alone():
    scores = evaluate(
        Scripted(lambda episode, attempt: "crash" if episode == 2 else "yes"), "test:Coin", limit=5, retries=0
    )["test:Coin"]
    assert (scores.done, scores.failed, scores.score.value) == (4, 1, 1.0)
    assert "the coin was lost" in next(iter(scores.causes))


@pytest.mark.parametrize(("failure", "kind"), [("EndpointError: down", InfraError), ("RequestRefused: no", BadValue)])
def test_a_run_whose_first_samples_all_fail_stops_and_writes_nothing(failure, kind, tmp_path):
    policy = Scripted(lambda episode, attempt: Reply("", failure=failure))
    with pytest.raises(kind, match=f"first 3 samples .*{failure}"):
        evaluate(policy, "test:Coin", limit=1000, concurrency=4, out=str(tmp_path / "run"))
    assert sum(policy.asked.values()) < 10 and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("limit", "which"), [(1, "the first sample failed"), (2, "all of the first 2 samples failed")])
def test_fewer_samples_than_it_takes_are_counted_once_however_often_they_are_played(limit, which):
    policy = Scripted(lambda episode, attempt: Reply("", failure="RequestRefused: no"))
    with pytest.raises(BadValue, match=f"^{which}: RequestRefused: no"):
        evaluate(policy, "test:Coin", limit=limit, retries=2, backoff=0.0)
    assert set(policy.asked.values()) == {3}


def test_a_few_refusals_that_arrive_before_other_replies_do_not_stop_a_run():
    """Refusals come at once and replies of a model take seconds."""
    policy = Scripted(lambda episode, attempt: Reply("", failure="RequestRefused: no") if episode < 7 else "yes")
    scores = evaluate(policy, "test:Coin", limit=40, concurrency=16, retries=0)["test:Coin"]
    assert (scores.done, scores.failed) == (33, 7)


@pytest.mark.parametrize("kind", ["EndpointError", "RequestRefused"])
def test_a_server_that_dies_or_refuses_all_stops_the_run_which_can_be_resumed(kind, tmp_path):
    down = Reply("", failure=f"{kind}: down")
    settings = {"envs": "test:Coin", "limit": 200, "concurrency": 4, "out": str(tmp_path / "run")}
    policy = Scripted(lambda episode, attempt: "yes" if episode < 5 else down)
    with pytest.raises(InfraError, match=rf"last 8 samples .*{kind}: down.*gem eval --resume .*run"):
        evaluate(policy, **settings)
    assert sum(policy.asked.values()) < 20
    assert json.loads((tmp_path / "run" / "report.json").read_text())["complete"] is False
    policy = Scripted(lambda episode, attempt: "yes")
    assert evaluate(policy, **settings, resume=True)["test:Coin"].done == 200
    assert sum(policy.asked.values()) == 195


@pytest.mark.parametrize("failure", ["RequestRefused: no", "EndpointError: no reply in 600 s"])
def test_requests_that_a_server_refuses_or_that_fail_again_do_not_stop_the_run(failure):
    failing = {2 * i + 1 for i in range(12)}
    policy = Scripted(lambda episode, attempt: Reply("", failure=failure) if episode in failing else "yes")
    scores = evaluate(policy, "test:Coin", limit=30, concurrency=4, retries=1, backoff=0.0)["test:Coin"]
    assert (scores.done, scores.failed) == (30 - len(failing), len(failing))


def interrupted_at(episode: int) -> Scripted:
    def reply(number: int, attempt: int) -> str:
        if number == episode:
            raise KeyboardInterrupt
        return "yes"

    return Scripted(reply)


def test_a_resumed_run_asks_only_what_is_missing(tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        evaluate(interrupted_at(6), "test:Coin", limit=10, concurrency=1, out=str(folder))
    records = folder / "trajectories.jsonl"
    records.write_bytes(records.read_bytes()[:-7])  # the last of six records is torn
    assert json.loads((folder / "report.json").read_text())["complete"] is False
    policy = Scripted(lambda episode, attempt: "yes")
    # The name of the class is the name of the model.
    report = evaluate(policy, "test:Coin", limit=10, out=str(folder), resume=True)
    assert sorted(policy.asked) == [5, 6, 7, 8, 9]
    assert [t.episode for t in read_jsonl(records)] == list(range(10))
    assert report.complete and report["test:Coin"].score.value == 1.0


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"rollouts": 2}, "rollouts was 1, now 2"),
        ({"limit": 5}, r"envs\[0\].tasks was 4, now 5"),
        ({"policy": "constant:no"}, 'policy.model was "Scripted", now "constant:no"'),
        ({"wrappers": "concat"}, r'envs\[0\].wrappers was "", now "concat"'),
    ],
)
def test_a_resumed_run_refuses_changed_settings_and_names_them(change, difference, tmp_path):
    policy = Scripted(lambda episode, attempt: "yes")
    settings = {"policy": policy, "envs": "test:Coin", "limit": 4, "out": str(tmp_path / "run")}
    evaluate(**settings)
    with pytest.raises(BadValue, match=difference):
        evaluate(**{**settings, **change}, resume=True)


def test_a_resumed_run_refuses_changed_data(tmp_path):
    data = tmp_path / "rows.jsonl"
    data.write_text('{"question": "q", "answer": "yes"}\n')
    env = EvalEnv(id="qa:Facts", kwargs={"dataset_name": str(data), "dataset": None})
    evaluate("constant:yes", env, out=str(tmp_path / "run"))
    data.write_text('{"question": "q", "answer": "no!"}\n')
    os.utime(data, (1, 1))
    with pytest.raises(BadValue, match=r"envs\[0\].hash was"):
        evaluate("constant:yes", env, out=str(tmp_path / "run"), resume=True)


def test_a_finished_run_can_be_resumed_with_other_notes_and_concurrency(tmp_path):
    settings = {"policy": "constant:yes", "envs": "test:Coin", "limit": 4, "out": str(tmp_path / "run")}
    evaluate(**settings, notes={"server": "a"})
    before = (tmp_path / "run" / "trajectories.jsonl").read_text()
    assert evaluate(**settings, resume=True, concurrency=2, notes={"server": "b"}).complete
    assert (tmp_path / "run" / "trajectories.jsonl").read_text() == before


class Sampler(Scripted):
    """Notes the stream of each reply by the observation and the episode."""

    def __init__(self):
        super().__init__(lambda episode, attempt: "yes")
        self.streams = {}

    def act(self, requests):
        self.streams |= {(str(request.observation), request.key): request.stream for request in requests}
        return super().act(requests)


@pytest.mark.parametrize("more", [{}, {"token_limit": 1000}])
def test_a_reply_is_sampled_by_its_task_and_rollout_wherever_they_stand(more):
    asked = []
    for envs, limit in ((["code:Warmup-v0", "qa:Facts"], 4), (["qa:Facts"], 8)):
        policy = Sampler()
        evaluate(policy, [EvalEnv(id=each) for each in envs], limit=limit, rollouts=3, concurrency=5, **more)
        streams = {}
        for (observation, _), stream in policy.streams.items():
            streams.setdefault(observation, set()).add(stream)
        asked.append(streams)
    assert all(len(streams) == 3 for streams in asked[1].values())  # a stream per rollout
    assert len(set.union(*asked[1].values())) == 24
    common = asked[0].keys() & asked[1].keys()
    assert len(common) == 4 and all(asked[0][each] == asked[1][each] for each in common)


def test_equal_episodes_of_different_seeds_are_sampled_as_rollouts_of_one_task():
    policy = Sampler()
    evaluate(policy, "game:GuessTheNumber-v0-easy", limit=30)
    assert len({stream for (_, key), stream in policy.streams.items() if key[2] == 0}) == 30


def test_a_run_whose_replies_were_sampled_by_their_place_is_not_resumed(tmp_path):
    settings = {"policy": Sampler(), "envs": "test:Coin", "limit": 4, "out": str(tmp_path / "run")}
    evaluate(**settings)
    file = tmp_path / "run" / "eval.json"
    recorded = json.loads(file.read_text())
    assert recorded["policy"].pop("seeds") == "by task"
    file.write_text(json.dumps(recorded))
    with pytest.raises(BadValue, match=r'policy.seeds was null, now "by task".*Start a new evaluation'):
        evaluate(**settings, resume=True)


def test_a_run_that_another_process_is_writing_is_not_resumed(tmp_path):
    out = str(tmp_path / "run")
    policy = Scripted(lambda episode, attempt: "yes")
    settings = {"policy": policy, "envs": "test:Coin", "limit": 4, "concurrency": 1, "out": out}

    def reply(episode: int, attempt: int) -> str:
        if episode == 2:
            with pytest.raises(BadValue, match=r"/run is being written by this process"):
                evaluate(**settings, resume=True)
        return "yes"

    evaluate(**{**settings, "policy": Scripted(reply)})
    assert evaluate(**settings, resume=True).complete and policy.asked == Counter()


def test_an_occupied_folder_is_refused(tmp_path):
    out = str(tmp_path / "run")
    evaluate("constant:yes", "test:Coin", limit=2, out=out)
    with pytest.raises(BadValue, match=r"/run holds .*--resume"):
        evaluate("constant:yes", "test:Coin", limit=2, out=out)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with pytest.raises(BadValue, match="not an empty folder"):
        evaluate("constant:yes", "test:Coin", limit=2, out=str(tmp_path / "other"))
    with pytest.raises(BadValue, match="is not an evaluation"):
        evaluate("constant:yes", "test:Coin", limit=2, out=str(tmp_path / "other"), resume=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rollouts": 2}, "2 rollouts .*'constant:yes' .*raise limit"),
        ({"rollouts": 0}, "rollouts .*at least 1.*got 0"),
        ({"limit": 0}, "limit .*at least 1.*got 0"),
        ({"policy": "orcale"}, "'oracle', 'random' or 'constant:TEXT'.*'orcale'"),
        ({"limit": 2.5}, r"limit .*at least 1.*got 2\.5"),
        ({"envs": []}, "no environment"),
        ({"envs": [5]}, "an id, .*EvalEnv or .*TaskSet.*got 5"),
        ({"envs": None}, "got None"),
        ({"wrappers": None}, "wrappers .*comma-separated .*got None"),
        ({"notes": {"a": float("nan")}}, "notes .*JSON"),
        ({"envs": ["test:Coin", "test:Coin"]}, "got 'test:Coin' twice"),
        ({"resume": True}, "resume needs the folder"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(BadValue, match=message):
        evaluate(**{"policy": "constant:yes", "envs": "test:Coin", **arguments})


@pytest.mark.parametrize(
    ("replies", "message"),
    [([], "got 0 replies for 1"), (None, "got None for 1"), (["yes"], "got 'yes'"), ([Reply(None)], "text=None")],
    ids=repr,
)
def test_a_policy_that_does_not_reply_as_it_should_is_told_so(replies, message):
    policy = Scripted(lambda *_: "yes")
    policy.act = lambda requests: replies
    with pytest.raises(BadValue, match=message):
        evaluate(policy, "test:Coin", limit=1)


def test_a_report_that_cannot_be_written_is_named_with_the_way_out(tmp_path):
    out = str(tmp_path / "run")
    evaluate("constant:yes", "test:Coin", limit=2, out=out)
    (tmp_path / "run" / ".report.json").mkdir()  # its draft cannot be written, as on a full disk
    with pytest.raises(InfraError, match=r"cannot write .*/report\.json: .*; free some space and resume"):
        evaluate("constant:yes", "test:Coin", limit=2, out=out, resume=True)


def test_settings_that_are_no_settings_are_damaged(tmp_path):
    (tmp_path / "eval.json").write_text("[]")
    with pytest.raises(BadValue, match=r"eval.json is damaged"):
        evaluate("constant:yes", "test:Coin", limit=2, out=str(tmp_path), resume=True)


def test_progress_begins_with_what_was_done_before_and_ends_with_the_report():
    seen: list[EvalReport] = []
    report = evaluate("constant:yes", "test:Coin", limit=3, progress=seen.append)
    assert seen[0]["test:Coin"].done == 0 and seen[-1] is report


def test_a_server_that_finds_the_conversation_too_long_ends_the_episode_and_does_not_fail():
    pytest.importorskip("aiohttp")
    from gem.policies import Endpoint, EndpointPolicy
    from gem.testing.fakes.endpoint import Answer, FakeEndpoint

    too_long = Answer(status=400, body="This model's maximum context length is 16 tokens. However, you requested 20")
    filtered = Answer(status=400, body='{"error": {"code": "content_filter"}}')
    with FakeEndpoint(["yes", too_long, filtered, "no"]) as server:
        policy = EndpointPolicy(Endpoint(server.url, "model"))
        scores = evaluate(policy, "test:Coin", limit=4, concurrency=1)["test:Coin"]
    assert (scores.done, scores.overflowed, scores.refused, scores.failed) == (4, 1, 1, 0)
    assert scores.tokens_out == 2


def test_first_prompts_without_a_reply_are_noted_in_the_words_of_the_server():
    replies = [Reply("", finish="context_overflow", explanation="status 400: at most 16 tokens"), Reply("yes")]
    report = evaluate(Scripted(lambda episode, attempt: replies[episode > 2]), "test:Coin", limit=10)
    assert report["test:Coin"].overflowed == 3
    assert "test:Coin: the first prompt of 3 of 10 samples had no reply" in report.to_markdown()
    assert "status 400: at most 16 tokens" in report.to_markdown()


def test_a_setting_that_never_fits_stops_a_run_at_the_first_sample_and_a_full_context_does_not():
    pytest.importorskip("aiohttp")
    from gem.policies import Endpoint, EndpointPolicy
    from gem.testing.fakes.endpoint import Answer, FakeEndpoint

    too_large = Answer(status=400, body="max_tokens is too large: 99. This model supports at most 16 completion tokens")
    with FakeEndpoint([too_large]) as server, pytest.raises(BadValue, match=r"lower it \(--max-tokens\)"):
        evaluate(EndpointPolicy(Endpoint(server.url, "model"), max_tokens=99), "test:Coin", limit=20, concurrency=1)
    assert len(server.requests) == 1


def test_a_server_that_answers_nothing_is_given_up_after_the_retries_of_one_request():
    pytest.importorskip("aiohttp")
    from gem.policies import Endpoint, EndpointPolicy
    from gem.testing.fakes.endpoint import Answer, FakeEndpoint

    with FakeEndpoint([Answer(status=500, body="no such adapter")]) as server:
        policy = EndpointPolicy(Endpoint(server.url, "model", backoff=0.0))
        with pytest.raises(InfraError, match=r"first 3 samples failed.*no such adapter"):
            evaluate(policy, "test:Coin", limit=100, concurrency=1)
    assert len(server.requests) == 6 + 1 + 1
