r"""DontSayIt: in a conversation, make the other player say your secret word without saying its secret word yourself.

Position     the secret words of the first and of the second player, the number of messages so far, and the seat that
             said the word of the other, with "|" between: "river|apple|3|" or "river|apple|4|1".
Action       a message of up to 200 characters in a box: ``\boxed{do you like fruit?}``.
Reward       1 and -1 when a player has said the word of the other, alone or between other words, in any case; 0
             for both after ``messages`` messages.
Reference    the scripted player says sentences that contain no secret word.

>>> game = DontSayItEnv()
>>> game.after("river|apple|0|", "an apple a day"), game.after("river|apple|1|", "an apple a day")
('river|apple|1|0', 'river|apple|2|')
"""

from __future__ import annotations

import random
import re

from gem._internal.counts import check_count
from gem.envs.table.game import OnIllegal, TableGame
from gem.envs.table.messages import LONGEST, quoted

_WORDS = """
apple bread bridge bottle candle castle chair cheese clock cloud coffee dragon engine forest garden guitar hammer island
jacket kitchen ladder letter lemon market mirror mountain needle ocean orange paper pencil pocket rabbit river school
shadow silver summer ticket window winter
"""
WORDS = tuple(_WORDS.split())
_NEUTRAL = ("and what do you think?", "tell me more", "why do you say that?", "I am not sure", "please go on")


class DontSayItEnv(TableGame):
    """See the module docstring for the rules, and TableGame for the other arguments.

    Args:
        messages: number of messages of both players after which the game is a draw, 2 to 100.

    Raises:
        BadValue: messages is out of range.
    """

    seats = ("the first player", "the second player")
    needs_history = True
    pattern = re.compile(rf"[^{{}}\\]{{1,{LONGEST}}}")

    def __init__(
        self,
        messages: int = 16,
        *,
        on_illegal: OnIllegal = "lose",
        show_legal: bool = False,
        max_turns: int | None = None,
    ) -> None:
        check_count("messages", messages, 2, 100)
        self.messages = messages
        super().__init__(on_illegal=on_illegal, show_legal=show_legal, max_turns=max_turns)

    @property
    def card(self) -> str:  # type: ignore[override]
        return (
            "Don't say it: two players talk to each other in turn. Each has a secret word, which the other does not "
            f"know. Whoever says the secret word of the other loses, alone or in a sentence. After {self.messages} "
            "messages the game is a draw.\n"
            f"Write your message in a box, at most {LONGEST} characters: \\boxed{{do you like fruit?}}. The secret "
            f"words are two of these: {', '.join(WORDS)}."
        )

    def deal(self, rng: random.Random) -> str:
        return "|".join(rng.sample(WORDS, 2)) + "|0|"

    def to_move(self, position: str) -> int | None:
        _, _, count, said = position.split("|")
        return None if said or int(count) >= self.messages else int(count) % 2

    def moves(self, position: str) -> list[str]:
        """Return the words alone, of the messages that can be legal."""
        return [] if self.to_move(position) is None else list(WORDS)

    def is_legal(self, position: str, move: str) -> bool:
        return self.to_move(position) is not None and any(letter.isalnum() for letter in move)

    def every_move(self) -> list[str]:
        return list(WORDS)

    def after(self, position: str, move: str) -> str:
        *words, count, _ = position.split("|")
        seat = int(count) % 2
        said = words[1 - seat] in re.findall(r"\w+", quoted(move).lower())
        return "|".join([*words, str(int(count) + 1), str(seat) if said else ""])

    def announced(self, position: str, seat: int, move: str) -> str:
        return f"{self.seats[seat]} says: {quoted(move)}"

    def scores(self, position: str) -> tuple[float, ...]:
        said = position.rpartition("|")[2]
        return (0.0, 0.0) if not said else (-1.0, 1.0) if said == "0" else (1.0, -1.0)

    def view(self, position: str, seat: int) -> str:
        words, said = position.split("|")[:2], position.rpartition("|")[2]
        text = f"Your secret word: {words[seat]}."
        if said:
            text += f" The word {words[1 - int(said)]} was said by {self.seats[int(said)]}."
        return text

    def secrets(self) -> list[str] | None:
        return None  # all words are in the card; a test compares the views instead

    def scripted(self, position: str, rng: random.Random) -> str:
        return rng.choice(_NEUTRAL)
