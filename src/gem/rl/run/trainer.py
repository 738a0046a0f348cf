"""The training loop: collect, score and update, with periodic evaluation and checkpoints.

All random numbers come from streams derived from (seed, purpose, index), and a checkpoint holds the remaining state:
model, optimizer, in-flight episodes. If all environments and tools run inline, or with the backend "sync", a run
therefore depends only on its configuration, and a resumed run is bit-identical to an uninterrupted one. Elsewhere, the
order in which episodes end depends on timing.
"""

from __future__ import annotations

import functools
import json
import shlex
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError

from gem.core import Optimum
from gem.errors import BadValue, InfraError
from gem.evaluation.logs.services import NumberLog
from gem.policies import Policy
from gem.registry import make
from gem.rl.checks import check_images, check_names, check_trainable, samples_actions
from gem.rl.config import PAST, TrainConfig
from gem.rl.data.evaluation import plan_evaluation
from gem.rl.data.imitation import (
    FROM_RANDOM,
    PRETRAINED,
    PRETRAINED_ANSWERS,
    WarmUp,
    imitate_random_play,
    readable_share,
)
from gem.rl.data.mixture import Mixture, players
from gem.rl.data.self_play import PAST_EVERY, PastPolicies
from gem.rl.metrics import Metrics, one_of_each, peak_memory_mib, summarize, summarize_each
from gem.rl.model.loading import find_device
from gem.rl.model.memory import DiskEstimate, building_advice, estimate_disk, explained_memory_errors
from gem.rl.model.policy import CausalLMPolicy
from gem.rl.model.remote import RemoteSampler, weight_sync
from gem.rl.run.build import build_policy, load_checkpoint, moves_only
from gem.rl.run.evaluator import Evaluator
from gem.rl.run.folder import RunFolder, complete_checkpoints, newest_checkpoint, save_checkpoint, write_complete
from gem.rl.run.learner import Learner
from gem.rl.run.monitor import TrainingMonitor
from gem.rollout import sampled_tokens
from gem.trajectory import Trajectory

IMITATION_SLOTS = 32
PASSES = 2  # evaluations in a row that must reach config.until


class _Stopped(Exception):
    """A stop was requested during the warm-up."""


class Trainer:
    """A training run and its folder.

    Create it with ``Trainer.start(config)`` or ``Trainer.resume(path)``, then call ``run()``.
    """

    def __init__(self, config: TrainConfig, folder: RunFolder, policy: CausalLMPolicy, started: float) -> None:
        self.config, self.folder, self.policy = config, folder, policy
        self.learner = Learner(config, policy)
        self.monitor = TrainingMonitor(config)
        self.evaluation = plan_evaluation(config)
        self.past = PastPolicies() if config.self_play else None
        self.mixture = self._mixture("train", config.slots or config.batch, config.groups)
        self.evaluator = Evaluator(config, policy, self.evaluation)
        self.sampler = self._remote_sampler()
        self.update, self.episodes, self.turns = 0, 0, 0
        self.passes = 0  # the newest evaluations in a row that reached config.until
        self.warm_up: list[Metrics] = []  # the first row of metrics has it
        self.loaded: Metrics = {}
        self.untrained: Metrics = {}
        self._update_seconds = 0.0  # of the last one
        self._late = False  # whether config.minutes are over
        self._mirror: NumberLog | None = None
        self._saved: int | None = None  # the update of the newest checkpoint
        self._seconds_before = self._cpu_before = 0.0
        self._started, self._cpu_started = started, 0.0  # counted from the start of the process

    @classmethod
    def start(cls, config: TrainConfig) -> Trainer:
        """Start a new run. Checks the configuration before writing anything. Raises BadValue if it is invalid."""
        started = time.perf_counter()
        check_names(config)
        check_trainable(config)
        find_device(config.device)
        RunFolder.free_path(config)
        torch.set_num_threads(config.torch_threads)
        policy = build_policy(config)
        if config.model is not None:
            check_images(config, reads_images=policy.images is not None)
        folder = RunFolder(RunFolder.free_path(config))
        folder.check_space(estimate_disk(policy.model, config).needed)
        trainer = cls(config, folder, policy, started)
        trainer.folder = RunFolder.create(config)  # last, so that no error leaves an empty run
        return trainer

    @classmethod
    def resume(
        cls, path: str, *, steps: int | None = None, minutes: float | None = None, trust: bool = False
    ) -> Trainer:
        """Resume the run in a folder from its newest checkpoint, or from its start if it has no checkpoint.

        Args:
            steps: the new total of updates, which also lengthens a finished run or one that config.until stopped. The
                learning rate decays over the new total. None to keep that of the run.
            minutes: the new total of time, which also lengthens a run that config.minutes ended. None to keep that of
                the run.
            trust: also resume a run that this user has not made on this machine: its settings choose what is run.

        Raises:
            BadValue: if the folder is not a run, is not trusted, or is being written by another process, the checkpoint
                is damaged, or that many updates or minutes are already done.
        """
        started = time.perf_counter()
        folder, _ = RunFolder.open(path, trust=trust)
        try:
            folder.claim()  # before anything is changed
            _, config = RunFolder.open(path, trust=trust)  # again, as another process may have had the lock
            return cls._resumed(folder, config, started, steps, minutes)
        except BaseException:
            folder.close()
            raise

    @classmethod
    def _resumed(
        cls, folder: RunFolder, config: TrainConfig, started: float, steps: int | None, minutes: float | None
    ) -> Trainer:
        config = replace(config, steps=steps or config.steps, minutes=minutes or config.minutes)
        torch.set_num_threads(config.torch_threads)
        if not complete_checkpoints(folder.checkpoints):
            folder.write_config(config)
            folder.truncate_to(dict.fromkeys(folder.sizes(), 0))
            shutil.rmtree(folder.reference, ignore_errors=True)  # the warm-up makes it again
            return cls(config, folder, build_policy(config), started)
        source = newest_checkpoint(folder.checkpoints)
        policy, state = load_checkpoint(source, config)
        if steps is not None and steps <= state["update"]:
            raise BadValue(f"steps must exceed the {state['update']} updates that are done, got {steps}")
        policy.model.config._name_or_path = config.model or ""  # trajectories name the model that was given
        trainer = cls(config, folder, policy, started)
        trainer.learner.load(source, folder.reference)
        if trainer.past is not None:
            trainer.past.load(source, policy)
        trainer.mixture.set_state(state["collector"])
        trainer.update, trainer.episodes, trainer.turns = state["update"], state["episodes"], state["turns"]
        trainer.passes = state.get("passes", 0) if steps is None else 0
        trainer.policy.version = trainer._saved = trainer.update
        trainer.untrained, trainer.loaded = state["untrained"], state.get("loaded", {})
        trainer.warm_up = state.get("warm_up", [])
        trainer._seconds_before, trainer._cpu_before = state["seconds"], state["cpu_seconds"]
        trainer._late = trainer.out_of_time
        if trainer._late and (steps or minutes):
            trainer.close()
            raise BadValue(
                f"minutes must exceed the {trainer.seconds / 60:.3g} that the run has taken, got {config.minutes:g}"
            )
        folder.truncate_to(state["sizes"])
        folder.write_config(config)
        for row in folder.read_metrics():
            trainer.monitor.check(row)
        return trainer

    @property
    def done(self) -> bool:
        return self.update >= self.config.steps or self.reached or self._late

    @property
    def out_of_time(self) -> bool:
        """Whether config.minutes would be over after another update and an evaluation as long as the last ones."""
        more = self._update_seconds + self.evaluator.seconds
        return self.config.minutes is not None and self.seconds + more >= 60 * self.config.minutes

    @property
    def reached(self) -> bool:
        """Whether the last evaluations reached the success rates of config.until."""
        return bool(self.config.targets) and self.passes >= PASSES

    @property
    def disk(self) -> DiskEstimate:
        """How much the run writes to disk."""
        return estimate_disk(self.policy.model, self.config)

    @property
    def optimum(self) -> Optimum | None:
        """The best result that any policy can reach in the environment; None if not known, and for a mixture."""
        if len(self.config.envs) > 1 or self.config.eval_env:
            return None
        with make(self.config.envs[0].id, **self.config.envs[0].kwargs) as env:
            return env.optimum()

    def run(
        self,
        on_update: Callable[[Metrics], None] = lambda metrics: None,
        on_imitation: Callable[[WarmUp], None] = lambda state: None,
        on_loaded: Callable[[Metrics], None] = lambda scores: None,
        on_untrained: Callable[[Metrics], None] = lambda scores: None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Train until all updates are done, the time is over or a stop is requested.

        Writes a final checkpoint. If the run is stopped during the warm-up, no checkpoint is written, and resume()
        starts from the beginning.

        Args:
            on_update: called with the metrics of each update after they are written.
            on_imitation: called after each step of the warm-up, and after a check before the first.
            on_loaded: called with the scores of a pretrained model before the warm-up, greedy and sampled.
            on_untrained: called with the scores of the evaluation after the warm-up, greedy and sampled.
            should_stop: polled between updates and between warm-up steps; True requests a stop.

        Raises:
            BadValue: if the warm-up makes a model worse; see imitate_random_play().
            InfraError: if the folder cannot be written or the gradient is not finite. Earlier files stay intact.
        """
        if not self.untrained:
            try:
                with explained_memory_errors(building_advice(self.config)):
                    self._warm_up(on_imitation, on_loaded, should_stop)
            except _Stopped:
                return
            self.save()
            on_untrained(self.untrained)
        if self.config.log is not None and self._mirror is None and not self.done:
            path, config = self.folder.path, self.config.saved()
            self._mirror = NumberLog(self.config.log, path.resolve().name, config, folder=path, step=self.update)
        while not self.done and not should_stop():
            metrics = self.step()
            on_update(metrics)
            if self.update % self.config.checkpoint_every == 0:
                self.save()
        self.save()

    def close(self) -> None:
        """Close the environments, the mirror of the metrics, and the connections to a server."""
        if self._mirror is not None:
            self._mirror.close()
        if self.sampler is not None:
            self.sampler.close()
        self.mixture.close()
        self.evaluator.close()
        self.folder.close()

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def step(self) -> Metrics:
        """Run one update: collect a batch and train on it.

        Evaluates the policy every config.eval_every updates and after the last update.

        Appends to metrics.jsonl and trajectories.jsonl, and returns the row of metrics.
        """
        started = time.perf_counter()
        policies = self._players()
        played, envs_of_played, counts = self.mixture.collect(policies, self.config.batch, self.update)
        own = [i for i, t in enumerate(played) if t.branch is None]
        batch, envs = [played[i] for i in own], [envs_of_played[i] for i in own]
        collected = time.perf_counter()
        if all(t.failure is not None for t in played):
            raise InfraError(f"all {len(batch)} episodes of the batch failed, the last with: {batch[-1].failure}")
        # An episode whose first prompt did not fit the context has no sampled tokens.
        chosen = [i for i, t in enumerate(played) if t.failure is None and any(turn.sampled_ids for turn in t.turns)]
        if not chosen:
            shortest = min(len(t.turns[0].prompt_ids) for t in batch if t.turns)
            raise BadValue(
                f"no first prompt fits the context beside a reply, the shortest has {shortest} tokens; use a model "
                "with a longer context, a larger max_context or a smaller max_new_tokens"
            )
        learned = self.learner.learn([played[i] for i in chosen], self.update, [envs_of_played[i] for i in chosen])
        self.update += 1
        self.policy.version = self.update
        plays_past = PAST in self.config.opponent_weights  # otherwise copies would only use memory
        if self.past is not None and plays_past and self.update % PAST_EVERY == 0:
            self.past.add(self.policy, self.update)
        self.episodes += len(batch)
        self.turns += sum(len(t.turns) for t in batch)
        metrics: Metrics = {
            "update": self.update,
            "episodes": self.episodes,
            "turns": self.turns,
            "sampled_tokens": sampled_tokens(played),
            **summarize(batch),
            **counts,
            **learned,
        }
        if self.update == 1 and self.warm_up:
            metrics["warm_up"] = self.warm_up
        if len(self.config.envs) > 1:
            metrics["envs"] = summarize_each([env.label for env in self.config.envs], batch, envs)
        metrics["warnings"] = self.monitor.check(metrics)
        finished = time.perf_counter()
        self._update_seconds = finished - started
        self._late = self.out_of_time
        if self.done or self.update % self.config.eval_every == 0:
            targets = self.config.targets
            metrics["eval"] = scores = self.evaluate(both=self.done or bool(targets))
            passed = all((scores[mode]["success"] or 0.0) >= rate for mode, rate in targets.items())
            self.passes = self.passes + 1 if passed else 0
        if self.done:
            metrics["untrained"] = {mode: scores for mode, scores in self.untrained.items() if mode != "game"}
            metrics |= {"loaded": self.loaded} if self.loaded else {}
        metrics["time"] = {
            "seconds": round(self.seconds, 3),
            "cpu_seconds": round(self.cpu_seconds, 3),
            "collect_seconds": round(collected - started, 3),
            "learn_seconds": round(finished - collected, 3),
            "episodes_per_second": round(len(batch) / (finished - started), 1),
            "peak_memory_mib": peak_memory_mib(),
        }
        self.folder.append_trajectories(one_of_each(batch, envs)[: self.config.keep_trajectories])
        self.folder.append_metrics(metrics)
        if self._mirror is not None:
            self._mirror.write(metrics, metrics["update"])
        return metrics

    def _remote_sampler(self) -> RemoteSampler | None:
        config, options = self.config, self.config.sampling
        if config.sampler is None or options is None or config.model is None:
            return None
        folder = Path(options.folder or self.folder.path / "sampler")
        model = options.model or config.model
        sync = weight_sync(options.sync, lora=self.policy.has_adapter)
        return RemoteSampler(config.sampler, model, players(config, self.policy), sync, folder)

    def _players(self) -> Sequence[Policy]:
        """Return the policy that samples each environment, with the current weights."""
        if self.sampler is None:
            return players(self.config, self.policy)
        self.sampler.update(self.policy)
        return self.sampler.players

    def evaluate(self, *, both: bool) -> Metrics:
        """Evaluate the policy, and append the outcomes to evaluations.jsonl. Returns the metrics; see Evaluator.

        Args:
            both: also evaluate with the sampling settings of training, as the mode "sampled".
        """
        scores, episodes = self.evaluator.evaluate(both=both)
        for mode, played in episodes.items():
            self.folder.append_evaluation(self.update, mode, played)
        return scores

    def show_game(self) -> Trajectory:
        """Play the first episode of the evaluation greedily with the current policy."""
        return self.evaluator.show_game()

    @property
    def seconds(self) -> float:
        """Wall-clock seconds of the run, including those before a resume."""
        return self._seconds_before + time.perf_counter() - self._started

    @property
    def cpu_seconds(self) -> float:
        return self._cpu_before + time.process_time() - self._cpu_started

    def save(self) -> None:
        """Write a checkpoint unless the current update already has one. Raises InfraError if writing fails."""
        if self._saved == self.update:
            return
        try:
            if self.learner.reference is not None and not self.folder.reference.exists():
                write_complete(self.folder.reference, self.learner.save_reference)
            save_checkpoint(self.folder.checkpoints, self.update, self._write_checkpoint)
        except (OSError, RuntimeError, SafetensorError) as e:  # all three occur when the disk is full
            reason = (getattr(e, "strerror", None) or str(e)).splitlines()[0]
            raise InfraError(
                f"cannot write a checkpoint under {self.folder.checkpoints}: {reason}; the previous one is intact: "
                f"free some space, then run gem train --resume {shlex.quote(str(self.folder.path))}"
            ) from e
        self._saved = self.update

    def _write_checkpoint(self, draft: Path) -> None:
        self.policy.save(draft, merged=draft / "merged" if self.done else None)
        self.learner.save(draft)
        if self.past is not None:
            self.past.save(draft, list(self.learner.trained))
        state = {
            "update": self.update,
            "episodes": self.episodes,
            "turns": self.turns,
            "passes": self.passes,
            "untrained": self.untrained,
            "loaded": self.loaded,
            "warm_up": self.warm_up,
            "max_new_tokens": self.policy.max_new_tokens,
            "sources": self.policy.sources,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "sizes": self.folder.sizes(),
            "collector": self.mixture.get_state(),
        }
        (draft / "state.json").write_text(json.dumps(state))

    def _warm_up(
        self,
        on_imitation: Callable[[WarmUp], None],
        on_loaded: Callable[[Metrics], None],
        should_stop: Callable[[], bool],
    ) -> None:
        config = self.config
        of_model = PRETRAINED if moves_only(config) else PRETRAINED_ANSWERS
        schedule = of_model if config.pretrained else FROM_RANDOM
        done = WarmUp()

        def on_step(state: WarmUp) -> None:
            self.warm_up.append(state._asdict())
            on_imitation(state)
            if should_stop():
                raise _Stopped

        def play(mixture: Mixture, policy: Policy, episodes: int, number: int) -> list[Trajectory]:
            return mixture.collect([policy] * len(config.envs), episodes, number).trajectories

        if config.imitation_steps or (config.imitation_steps is None and samples_actions(config)):
            if config.pretrained:
                self.loaded = self.evaluate(both=True)
                on_loaded(self.loaded)
            slots = min(IMITATION_SLOTS, config.slots or IMITATION_SLOTS)
            with (
                closing(self._mixture("imitation", slots, 1)) as mixture,
                closing(self._mixture("readable", slots, 1)) as fresh,
            ):
                fresh_play = functools.partial(play, fresh)
                check = functools.partial(readable_share, self.policy, fresh_play, schedule)
                done = imitate_random_play(
                    self.policy,
                    functools.partial(play, mixture),
                    rate=config.rates.warm_up,
                    schedule=schedule,
                    steps=config.imitation_steps,
                    readable=check if config.imitation_steps is None else None,
                    on_step=on_step,
                )
        self.learner.begin()
        scores = self.loaded if self.loaded and not done.steps else self.evaluate(both=True)
        self.untrained = {**scores, "game": self.show_game().to_json()}

    def _mixture(self, purpose: str, slots: int, group_size: int) -> Mixture:
        past = self.past if purpose == "train" else None
        plan = self.config.branch_plan if purpose == "train" else None
        return Mixture(self.config, self.evaluation, self.policy.tokenizer, purpose, slots, group_size, plan, past)
