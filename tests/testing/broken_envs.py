"""A correct game, and for each check a version of it that fails this check."""

import base64
import os
import random
import re
import socket
from dataclasses import dataclass, replace

import numpy as np

from gem.core import Env, Optimum, Step, StopReason
from gem.errors import EpisodeOver, InfraError

TURNS = 8


@dataclass(frozen=True)
class State:
    secret: int
    turn: int = 0
    over: bool = False


class Correct(Env):
    """Guess a number between 1 and 60. This game passes every check."""

    state: State
    running = False

    def reset(self, seed=None):
        super().reset(seed)
        self.state = State(self.draw())
        return "Guess a number between 1 and 60.", self.info()

    def step(self, action):
        if not hasattr(self, "state") or self.state.over:
            raise EpisodeOver("call reset()")
        guess = self.read(action)
        self.state = replace(self.state, turn=self.state.turn + 1)
        step = self.judge(action, guess)
        self.state = replace(self.state, over=step.terminated or step.truncated)
        return step

    def judge(self, action, guess):
        if guess is None:
            return Step("Digits, please.", -0.1, True, info=self.info(invalid="no_action", stop_reason="format"))
        hint = "low" if guess < self.state.secret else "high"
        if guess == self.state.secret:
            return Step("Right.", 1.0, True, info=self.info(stop_reason=StopReason.SOLVED))
        if self.state.turn == TURNS:
            return Step(f"Too {hint}.", 0.0, truncated=True, info=self.info(stop_reason=StopReason.MAX_TURNS))
        return Step(f"Turn {self.state.turn}: {guess} is too {hint}.", info=self.info())

    def draw(self):
        return self.rng.randint(1, 60)

    def read(self, action):
        return int(action) if re.fullmatch("[0-9]{1,3}", action) else None

    def info(self, **more):
        return more

    def secrets(self):
        return [str(self.state.secret)]

    def sample_random_action(self):
        return str(self.action_rng.randint(1, 60))


class StateOracle:
    def __init__(self, env):
        self.env = env

    def act(self, observation):
        return str(self.env.state.secret)


class SearchingOracle:
    def __init__(self, env):
        self.low = self.high = self.guess = 0

    def act(self, observation):
        if observation.startswith("Guess"):
            self.low, self.high = 1, 60
        elif observation.endswith("low."):
            self.low = self.guess + 1
        else:
            self.high = self.guess - 1
        self.guess = (self.low + self.high) // 2
        return str(self.guess)


class LosingOracle(SearchingOracle):
    def act(self, observation):
        return "1000"


class HastyOracle(SearchingOracle):
    """Gives up after four turns."""

    def act(self, observation):
        action = super().act(observation)
        return "1000" if "Turn 4" in observation else action


# construction


class PrintsWhenBuilt(Correct):
    def __init__(self):
        print("welcome")


class DrawsWhenBuilt(Correct):
    def __init__(self):
        self.tag = random.random()


class DrawsFromNumpyWhenBuilt(Correct):
    def __init__(self):
        self.tag = float(np.random.random())


class ConnectsWhenBuilt(Correct):
    def __init__(self):
        try:
            socket.create_connection(("127.0.0.1", 9)).close()
        except OSError:
            self.tag = "offline"


# protocol


class FailsLater(Correct):
    def judge(self, action, guess):
        if self.state.turn == 3:
            raise KeyError("board")
        return super().judge(action, guess)


class FailsWhenSolved(Correct):
    """Random actions rarely reach the failure."""

    def judge(self, action, guess):
        if guess == self.state.secret:
            raise ZeroDivisionError
        return super().judge(action, guess)


class ReturnsTheObservationAlone(Correct):
    def reset(self, seed=None):
        return super().reset(seed)[0]


class ReturnsFour(Correct):
    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated or truncated, info


class ClosesOnce(Correct):
    closed = False

    def close(self):
        if self.closed:
            raise ValueError("closed already")
        self.closed = True


# unknown-argument


class AcceptsAnyArgument(Correct):
    def __init__(self, **_):
        pass


# types


class RewardIsText(Correct):
    def judge(self, action, guess):
        return super().judge(action, guess)._replace(reward="0.5")


class FlagsAreNumbers(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(terminated=int(step.terminated))


class ObservationIsNone(Correct):
    def judge(self, action, guess):
        return super().judge(action, guess)._replace(observation=None)


# fresh-info


class ReusesInfo(Correct):
    def draw(self):
        self.kept = {}
        return super().draw()

    def set_state(self, state):
        super().set_state(state)
        self.kept = {}

    def info(self, **more):
        self.kept.update(more)
        return self.kept


class SharesAList(Correct):
    def reset(self, seed=None):
        self.history = []
        return super().reset(seed)

    def info(self, **more):
        self.history.append(len(self.history))
        return {"history": self.history, **more}

    def get_state(self):
        return {**super().get_state(), "history": list(self.history)}

    def set_state(self, state):
        super().set_state(state)
        self.history = list(state["history"])


# reserved-info-keys


class UsesAReservedKey(Correct):
    def info(self, **more):
        return {"messages": [], **more}


# rewards and reward-range


class RewardIsNaN(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(reward=float("nan")) if self.state.turn == 2 else step


class PartsDoNotSum(Correct):
    def info(self, **more):
        return {"reward_parts": {"progress": 0.3}, **more}


class RewardOutOfRange(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(reward=-3.0) if self.state.turn == TURNS else step


# endings


class TruncatesWhenSolved(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(terminated=False, truncated=True) if step.reward == 1.0 else step


class TerminatesAndTruncates(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(terminated=True, info={}) if step.truncated else step


class ExplainsEachStep(Correct):
    def info(self, **more):
        return {"explanation": "The number is 7.", **more}


class ExplainsWithAList(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(info={**step.info, "explanation": ["lost"]}) if step.terminated or step.truncated else step


class ChecksAreScores(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(info={**step.info, "checks": {"a": 0.5}}) if step.terminated or step.truncated else step


class StopReasonWithoutEnd(Correct):
    def info(self, **more):
        return {"stop_reason": "max_turns", **more}


class UnknownStopReason(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(info={"stop_reason": "tired"}) if step.truncated else step


class EndsBothWays(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(terminated=True) if step.truncated else step


class EndsWithoutAReason(Correct):
    def info(self, **more):
        return {key: value for key, value in more.items() if key != "stop_reason"}


# turn-limit


class StatesTooManyTurns(Correct):
    def reset(self, seed=None):
        observation, info = super().reset(seed)
        return f"{observation} You have {TURNS + 1} guesses.", info


class SpellsTooManyTurns(Correct):
    def reset(self, seed=None):
        observation, info = super().reset(seed)
        return f"{observation} You have twelve attempts.", info


class StatesTooManyTimes(Correct):
    def reset(self, seed=None):
        observation, info = super().reset(seed)
        return f"{observation} You may guess at most {TURNS + 1} times.", info


class StatesTooManyMoves(Correct):
    def reset(self, seed=None):
        observation, info = super().reset(seed)
        return f"{observation} Limit: {TURNS + 1} moves.", info


class PlaysMoreTurnsThanStated(Correct):
    def reset(self, seed=None):
        observation, info = super().reset(seed)
        return f"{observation} Turn limit: {TURNS - 1}.", info


# episode-over


class StepsAfterTheEnd(Correct):
    def step(self, action):
        if hasattr(self, "state") and self.state.over:
            return Step("It is over.", terminated=True, info={"stop_reason": "lost"})
        return super().step(action)


class StepsBeforeReset(Correct):
    def step(self, action):
        return super().step(action) if hasattr(self, "state") else Step("Not yet.")


# any-text


class ParsesAnyDigit(Correct):
    def read(self, action):
        return int(action) if action.isdigit() and len(action) < 4 else None  # "²" raises


class EncodesStrictly(Correct):
    def read(self, action):
        return super().read(action.encode("utf-8").decode())


class QuadraticReader(Correct):
    clock = 0.0  # seconds; a test uses it as the clock

    def read(self, action):
        QuadraticReader.clock += 1e-9 * len(action) ** 2
        return super().read(action)


# sampled-legal and sampling-isolation


class SamplesIllegalActions(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        if guess is not None and guess % 7 == 0 and not (step.terminated or step.truncated):
            step.info["invalid"] = "seven"
        return step


class SamplesFromEnvStream(Correct):
    def sample_random_action(self):
        return str(self.rng.randint(1, 60))

    def judge(self, action, guess):
        return super().judge(action, guess)._replace(observation=f"{guess}: {self.rng.random()}")


class SamplesUnseeded(Correct):
    def sample_random_action(self):
        return str(1 + os.urandom(1)[0] % 60)


# chance


class StepsAtRandom(Correct):
    def judge(self, action, guess):
        return super().judge(action, guess)._replace(observation=os.urandom(4).hex())


class IgnoresTheSeed(Correct):
    def draw(self):
        return 1 + os.urandom(1)[0] % 60


class ReplacesTheSeed(Correct):
    def reset(self, seed=None):
        return super().reset(None if seed is None else 7)


class HasOneSecret(Correct):
    def draw(self):
        return 17


class HasItsOwnGenerator(Correct):
    def draw(self):
        return random.Random(7).randint(1, 60)

    def secrets(self):
        return None


class RepeatsItsSeeds(Correct):
    """The seeds s and s + 9 give the same episode."""

    def reset(self, seed=None):
        return super().reset(None if seed is None else seed % 9)


class CutsItsSeeds(Correct):
    def reset(self, seed=None):
        return super().reset(None if seed is None else seed % 2**16)


class SharesASeedAmongNeighbours(Correct):
    def reset(self, seed=None):
        return super().reset(None if seed is None else seed // 10)


class RepeatsItsFirstEpisode(Correct):
    def reset(self, seed=None):
        return super().reset(self._seed if seed is None else seed)


class UsesGlobalRandom(Correct):
    def draw(self):
        return random.randint(1, 60)


class UsesGlobalNumpy(Correct):
    def judge(self, action, guess):
        return super().judge(action, guess)._replace(observation=str(np.random.random()))


class SeedsTheGlobals(Correct):
    def judge(self, action, guess):
        random.seed(0)
        return super().judge(action, guess)


class StoresStateOnTheClass(Correct):
    shared = 0

    def reset(self, seed=None):
        answer = super().reset(seed)
        StoresStateOnTheClass.shared = self.state.secret
        return answer

    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step if step.info else step._replace(observation=f"Class {StoresStateOnTheClass.shared % 5}")

    def get_state(self):
        return {**super().get_state(), "shared": StoresStateOnTheClass.shared}

    def set_state(self, state):
        super().set_state(state)
        StoresStateOnTheClass.shared = state["shared"]

    def secrets(self):
        return None


class CarriesRandomStreamOver(Correct):
    def reset(self, seed=None):
        if seed is None and hasattr(self, "state"):
            self.state = State(self.rng.randint(1, 60))
            return f"Guess again: {self.rng.random()}", {}
        return super().reset(seed)

    def judge(self, action, guess):
        self.rng.random()
        return super().judge(action, guess)


class DependsOnSetOrder(Correct):
    def judge(self, action, guess):
        return super().judge(action, guess)._replace(observation=" ".join({"red", "blue", "green", "grey", "black"}))


# state


class OmitsAField(Correct):
    def reset(self, seed=None):
        self.misses = 0
        return super().reset(seed)

    def judge(self, action, guess):
        self.misses = getattr(self, "misses", 0) + 1
        return super().judge(action, guess)._replace(observation=f"Miss {self.misses}")


class StateIsNotJson(Correct):
    def get_state(self):
        return {**super().get_state(), "seen": {1, 2}}


class StateIsMutable(Correct):
    def reset(self, seed=None):
        self.seen = []
        return super().reset(seed)

    def judge(self, action, guess):
        self.seen.append(guess)
        return super().judge(action, guess)

    def get_state(self):
        return {**super().get_state(), "seen": self.seen}

    def set_state(self, state):
        super().set_state(state)
        self.seen = list(state["seen"])


class ForksShareAList(Correct):
    def reset(self, seed=None):
        self.seen = []
        return super().reset(seed)

    def judge(self, action, guess):
        self.seen.append(guess)
        return super().judge(action, guess)._replace(observation=f"{len(self.seen)} guesses")

    def get_state(self):
        return {**super().get_state(), "seen": list(self.seen)}

    def set_state(self, state):
        super().set_state(state)
        self.seen = list(state["seen"])

    def spawn(self, same_state=False, **overrides):
        env = super().spawn(same_state, **overrides)
        if same_state:
            env.seen = self.seen
        return env


class HoldsALambda(Correct):
    def __init__(self):
        self.score = lambda guess: guess


# oracle: the declared optimum is higher than what the oracle reaches


class DeclaresTooMuch(Correct):
    def optimum(self):
        return Optimum(success=1.0, turns=1.0, name="clairvoyance")


# reachable-maximum


class PaysLessThanDeclared(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(reward=min(step.reward, 0.9))


# baseline scores


class RewardsSilence(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(reward=0.4) if not action else step


class RewardsEcho(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(reward=0.4) if action.startswith("Guess") else step


class RewardsRepetition(Correct):
    """Rewards the first sampled action, which differs between episodes, so no constant action scores well."""

    def judge(self, action, guess):
        step = super().judge(action, guess)
        if step.terminated:
            return step._replace(reward=min(step.reward, 1.0 if self.state.turn == 1 else 0.1))
        return step._replace(reward=0.125 if guess == self.favourite() else 0.0)

    def sample_random_action(self):
        return str(self.favourite()) if self.state.turn == 0 else super().sample_random_action()

    def favourite(self):
        return 1 + (7 * self.state.secret + 30) % 60


class RewardsOneNumber(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(reward=step.reward + 0.1) if guess == self.favourite and not step.terminated else step

    favourite = 30

    def sample_random_action(self):
        # Rare, so that the first sampled action is usually another one.
        return "30" if self.action_rng.random() < 0.1 else str(self.action_rng.randint(31, 60))


class AcceptsInjection(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(reward=1.0) if "reward 1.0" in action else step


# secrets


class LeaksInTheObservation(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step if step.terminated else step._replace(observation=f"Not {self.state.secret}, no.")


class LeaksInInfo(Correct):
    def info(self, **more):
        return {"debug": {"target": self.state.secret}, **more}


class LeaksSometimes(Correct):
    """Leaks in one of five episodes. The secret is a word that never occurs by chance."""

    def name(self):
        return f"w{self.state.secret * 977 % 8192:x}"

    def secrets(self):
        return [self.name()]

    def info(self, **more):
        return {"word": self.name(), **more} if self.state.secret % 5 == 0 else more


class LeaksEncoded(Correct):
    """Leaks a word in each observation. Subclasses encode it."""

    def name(self):
        return "".join("bcdfghjkmn"[int(digit)] for digit in f"{self.state.secret * 7919:06d}")

    def secrets(self):
        return [self.name()]

    def encode(self, name):
        return name

    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(observation=f"({self.encode(self.name())}) {step.observation}")


class LeaksInBase64(LeaksEncoded):
    def encode(self, name):
        return base64.b64encode(f"the word is {name}".encode()).decode()


class LeaksInHexadecimal(LeaksEncoded):
    def encode(self, name):
        return name.encode().hex()


class LeaksReversed(LeaksEncoded):
    def encode(self, name):
        return name[::-1]


class LeaksSpaced(LeaksEncoded):
    def encode(self, name):
        return " - ".join(name)


class LeaksShifted(LeaksEncoded):
    def encode(self, name):
        return "".join(chr(ord(letter) + 1) for letter in name)


class LeaksTheNextNumber(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(observation=f"Not {self.state.secret + 1}, no. {step.observation}")


class LeaksInItsRepr(Correct):
    def __repr__(self):
        return f"LeaksInItsRepr({getattr(self, 'state', None)})"


class LeaksANumberInBase64(Correct):
    def judge(self, action, guess):
        step = super().judge(action, guess)
        return step._replace(observation=f"{base64.b64encode(str(self.state.secret).encode()).decode()} {guess}")


class LeaksInBase64InItsRepr(LeaksEncoded):
    def encode(self, name):
        return "a word"

    def __repr__(self):
        word = self.name() if hasattr(self, "state") else ""
        return f"<game {base64.b64encode(word.encode()).decode()}>"


class LeaksInBase64InItsText(LeaksInBase64InItsRepr):
    __str__ = LeaksInBase64InItsRepr.__repr__
    __repr__ = Correct.__repr__


class LeaksInItsText(Correct):
    def __str__(self):
        return f"LeaksInItsText({getattr(self, 'state', None)})"


class KeepsBase64(LeaksEncoded):
    def encode(self, name):
        self.hidden = {"word": [base64.b64encode(name.encode())]}
        return "a word"


class SecretsAreNotText(Correct):
    def secrets(self):
        return [self.state.secret]


# No defects, but also no declarations


class Bare(Env):
    def reset(self, seed=None):
        super().reset(seed)
        self.left, self.first = 3, self.rng.random()
        return f"Say something. {self.first}", {}

    def step(self, action):
        if getattr(self, "left", 0) == 0:
            raise EpisodeOver("call reset()")
        self.left -= 1
        return "Yes.", 0.0, self.left == 0, False, {} if self.left else {"stop_reason": "lost"}


class Sized(Correct):
    def __init__(self, size):
        self.size = size


class HasOneTask(Correct):
    def draw(self):
        return 17

    def secrets(self):
        return None


class DeclaresOneTask(HasOneTask):
    def instances(self):
        return 1


class ServerIsDown(Correct):
    def secrets(self):
        raise InfraError("no answer from the server")


class NeedsAServer(Correct):
    def __init__(self):
        raise InfraError("no answer from the server")
