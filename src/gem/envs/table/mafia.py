r"""Mafia: a hidden minority against the village, for five to eight players, with nights, talk and votes.

Position     the roles by seat and the choices by phases, with "|" between them: "mdivv|2-3--|.....|". A phase has one
             character for each living player in the order of the seats: the number of the player chosen, "-" for none,
             "." for the end of a speech. Nights, talks and votes follow one another.
Action       at night ``\boxed{kill 3}``, ``\boxed{protect 3}``, ``\boxed{inspect 3}`` or ``\boxed{sleep}``, by role; by
             day first ``\boxed{done}`` beside a message ``<say>…</say>``, then ``\boxed{vote 3}`` or
             ``\boxed{vote none}``. Messages decide nothing.
Reward       not zero-sum: 1 for all players of the side that wins, also for those that are out, and -1 for the others;
             0 for a draw; -1 for an illegal move.
Reference    the scripted players know only their role and what is public, and ignore messages. All vote for who voted
             against the village most often, the detective for those whom it found and the mafia never for its own.

>>> game = MafiaEnv(players=5)
>>> game.after("mdivv|2-1-", "sleep"), replay("mdivv|2-1--|").living
('mdivv|2-1--|', (0, 2, 3, 4))
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import lru_cache

from gem._internal.counts import check_count
from gem.envs.table.game import OnIllegal, TableGame

ROLES = {"m": "a member of the mafia", "d": "the doctor", "i": "the detective", "v": "a villager"}
VILLAGE, MAFIA = 0, 1  # the sides, and the number of the winner
_NIGHT, _TALK, _VOTE = range(3)
_ACTS = {"m": "kill", "d": "protect", "i": "inspect"}


@dataclass(frozen=True)
class Situation:
    """What a position amounts to.

    Args:
        living: seats still in the game.
        phase: index of the phase; nights are 0, 3, 6, …
        choices: the choices of this phase so far, in the order of ``living``.
        winner: VILLAGE, MAFIA, or None.
        out: the player who left the game in each finished phase, or None if no one did.
        votes: for each finished vote, seat → the seat voted for, or None.
        inspected: seats that the detective has inspected, in order.
    """

    living: tuple[int, ...]
    phase: int
    choices: str
    winner: int | None
    out: tuple[int | None, ...]
    votes: tuple[dict[int, int | None], ...]
    inspected: tuple[int, ...]


@lru_cache(maxsize=4096)
def replay(position: str) -> Situation:
    """Play the choices of a position."""
    roles, *phases = position.split("|")
    living = tuple(range(len(roles)))
    out: list[int | None] = []
    votes: list[dict[int, int | None]] = []
    inspected: list[int] = []
    winner = None
    for number, choices in enumerate(phases[:-1]):
        chosen = {seat: int(c) - 1 if c.isdigit() else None for seat, c in zip(living, choices, strict=True)}
        gone: int | None = None
        if number % 3 == _NIGHT:
            by_role = {roles[seat]: other for seat, other in chosen.items() if other is not None}
            gone = by_role.get("m")
            gone = None if gone == by_role.get("d") else gone
            inspected += [by_role["i"]] if "i" in by_role else []
        elif number % 3 == _VOTE:
            gone = _most_votes([other for other in chosen.values() if other is not None])
            votes.append(chosen)
        living = tuple(seat for seat in living if seat != gone)
        out.append(gone)
        members = sum(roles[seat] == "m" for seat in living)
        if not members:
            winner = VILLAGE
        elif 2 * members >= len(living):
            winner = MAFIA
    return Situation(living, len(phases) - 1, phases[-1], winner, tuple(out), tuple(votes), tuple(inspected))


def _most_votes(votes: list[int]) -> int | None:
    """Return who has more votes than each other player, or None."""
    counts = sorted(((votes.count(seat), seat) for seat in set(votes)), reverse=True)
    return counts[0][1] if counts and (len(counts) == 1 or counts[0][0] > counts[1][0]) else None


class MafiaEnv(TableGame):
    """See the module docstring for the rules, and TableGame for the other arguments.

    Args:
        players: number of players, 5 to 8. Up to six, one is in the mafia; then two. One is the doctor and one the
            detective.
        days: number of days after which the game is a draw, 1 to 10.

    Raises:
        BadValue: players or days is out of range.
    """

    pattern = re.compile(r"\s*(?:(?:kill|protect|inspect|vote)\s+[1-8]|vote\s+none|sleep|done)\s*", re.IGNORECASE)
    talks = needs_history = True
    zero_sum = False
    sides = ("village", "mafia")

    def __init__(
        self,
        players: int = 6,
        days: int = 5,
        *,
        on_illegal: OnIllegal = "lose",
        show_legal: bool = False,
        max_turns: int | None = None,
    ) -> None:
        check_count("players", players, 5, 8)
        check_count("days", days, 1, 10)
        self.players, self.days = players, days
        self.roles = "m" * (1 if players < 7 else 2) + "di"
        self.roles += "v" * (players - len(self.roles))
        self.seats = tuple(f"player {number}" for number in range(1, players + 1))  # type: ignore[misc]
        super().__init__(on_illegal=on_illegal, show_legal=show_legal, max_turns=max_turns)

    @property
    def card(self) -> str:  # type: ignore[override]
        members = self.roles.count("m")
        crowd = f"{members} member{'s' * (members > 1)} of the mafia, the doctor, the detective and "
        first = "" if members == 1 else " Of its members, the first living one decides; they know each other."
        return (
            f"Mafia: {self.players} players with secret roles: {crowd}{self.roles.count('v')} villagers. At night the "
            "mafia kills a player, unless the doctor protects this player, and the detective learns whether a player "
            f"is in the mafia. Only the doctor may choose itself.{first} By day all living players talk, one after "
            "another, and then vote in secret; who has more votes than each other player is out. The role of a player "
            "who is out is told. The mafia wins when it is at least half of the living players, the village when the "
            f"mafia is out; after {self.days} days the game is a draw.\n"
            "Write your choice in a box. At night: \\boxed{kill 3}, \\boxed{protect 3} or \\boxed{inspect 3}, and "
            "\\boxed{sleep} if your role does nothing. In the talk: \\boxed{done}, beside your message. In the vote: "
            "\\boxed{vote 3} or \\boxed{vote none}. All players of the side that wins get 1, the others -1."
        )

    def deal(self, rng: random.Random) -> str:
        return "".join(rng.sample(self.roles, self.players)) + "|"

    def to_move(self, position: str) -> int | None:
        now = replay(position)
        over = now.winner is not None or now.phase >= 3 * self.days
        return None if over else now.living[len(now.choices)]

    def moves(self, position: str) -> list[str]:
        seat, now = self.to_move(position), replay(position)
        if seat is None:
            return []
        if now.phase % 3 == _TALK:
            return ["done"]
        others = [other + 1 for other in now.living if other != seat]
        if now.phase % 3 == _VOTE:
            return [*(f"vote {other}" for other in others), "vote none"]
        roles = position.partition("|")[0]
        role = roles[seat]
        if role == "m":
            decides = seat == min(other for other in now.living if roles[other] == "m")
            return [f"kill {other}" for other in others if roles[other - 1] != "m"] if decides else ["sleep"]
        if role == "d":
            return [f"protect {other + 1}" for other in now.living]
        return [f"inspect {other}" for other in others] if role == "i" else ["sleep"]

    def every_move(self) -> list[str]:
        acts = [f"{act} {n}" for act in (*_ACTS.values(), "vote") for n in range(1, self.players + 1)]
        return [*acts, "vote none", "sleep", "done"]

    def after(self, position: str, move: str) -> str:
        position += "." if move == "done" else move[-1] if move[-1].isdigit() else "-"
        now = replay(position)
        return position + "|" * (len(now.choices) == len(now.living))

    def may_talk(self, position: str) -> bool:
        return replay(position).phase % 3 == _TALK

    def announced(self, position: str, seat: int, move: str) -> str:
        then = self.after(position, move)
        if replay(position).phase % 3 == _TALK or then[-1] != "|":
            return ""  # nothing is told before all have chosen
        now, roles = replay(then), position.partition("|")[0]
        day, gone = len(now.out) // 3 + (len(now.out) % 3 > 0), now.out[-1]
        fate = "nobody" if gone is None else f"{self.seats[gone]}, {ROLES[roles[gone]]},"
        if len(now.out) % 3 == 1:
            lines = [f"Night {day}: {fate} {'was' if gone is not None else 'is'} killed."]
        else:
            votes = (
                f"{self.seats[voter]} for {'nobody' if other is None else self.seats[other]}"
                for voter, other in now.votes[-1].items()
            )
            lines = [f"Day {day}: the votes are {', '.join(votes)}. {fate.capitalize()} is out."]
        if self.to_move(then) is None:
            ends = "The game is a draw." if now.winner is None else f"The {self.sides[now.winner]} wins."
            lines.append(ends)
        return " ".join(lines)

    def winner(self, position: str) -> int | None:
        return replay(position).winner

    def scores(self, position: str) -> tuple[float, ...]:
        won = replay(position).winner
        if won is None:
            return (0.0,) * self.players
        return tuple(1.0 if (role == "m") == (won == MAFIA) else -1.0 for role in position.partition("|")[0])

    def view(self, position: str, seat: int) -> str:
        now, roles = replay(position), position.partition("|")[0]
        kind = ("night", "talk of day", "vote of day")[now.phase % 3]
        lines = [f"Now: {kind} {now.phase // 3 + 1}."] * (self.to_move(position) is not None)
        lines.append(f"Living: {', '.join(self.seats[s] for s in now.living)}.")
        lines.append(f"You are {ROLES[roles[seat]]}{'' if seat in now.living else ', and out'}.")
        if roles[seat] == "m" and (others := [s for s, role in enumerate(roles) if role == "m" and s != seat]):
            lines.append(f"Also in the mafia: {', '.join(self.seats[s] for s in others)}.")
        if roles[seat] == "i":
            found = (f"{self.seats[s]} is {'' if roles[s] == 'm' else 'not '}in the mafia" for s in now.inspected)
            lines += [f"You learned: {'; '.join(found)}."] if now.inspected else []
        return "\n".join(lines)

    def secrets(self) -> list[str] | None:
        return None  # roles are in the card; a test compares the views instead

    def scripted(self, position: str, rng: random.Random) -> str:
        """Play by role and by what is public; see the module docstring."""
        moves, now, roles = self.moves(position), replay(position), position.partition("|")[0]
        seat = self.to_move(position)
        assert seat is not None
        if now.phase % 3 == _VOTE:
            return f"vote {self._suspect(roles, now, seat, rng) + 1}"
        if roles[seat] == "i" and now.phase % 3 == _NIGHT:
            moves = [move for move in moves if int(move[-1]) - 1 not in now.inspected] or moves
        return rng.choice(moves)

    def _suspect(self, roles: str, now: Situation, seat: int, rng: random.Random) -> int:
        """Return whom a scripted player votes for: whose votes hurt the village most, among those it suspects."""
        suspects = [other for other in now.living if other != seat]
        if roles[seat] == "m":
            suspects = [other for other in suspects if roles[other] != "m"]
        if roles[seat] == "i":
            found = [other for other in suspects if other in now.inspected and roles[other] == "m"]
            unknown = [other for other in suspects if other not in now.inspected]
            suspects = found or unknown or suspects
        known = {gone: 1 if roles[gone] != "m" else -2 for gone in now.out if gone is not None}
        blame = dict.fromkeys(suspects, 0)
        for votes in now.votes:
            for voter, other in votes.items():
                if voter in blame and other is not None:
                    blame[voter] += known.get(other, 0)
        most = max(blame.values())
        return rng.choice([other for other in suspects if blame[other] == most])
