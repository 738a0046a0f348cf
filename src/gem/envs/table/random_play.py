"""How games between two random players end, for `gem info`. Written from benchmarks/results/random_play.md."""

from __future__ import annotations

SEATS = ("first player wins", "second player wins", "third player wins")
SIDES = {"talk:Mafia-v0": ("village wins", "mafia wins")}  # games that are won by sides instead of seats
# id → shares of 40,000 games that the players win, by seat or side; the others are draws. A win is a higher
# reward than that of the other players.
OUTCOMES = {
    "board:TicTacToe-v0": (0.587, 0.287),
    "board:Nim-v0": (0.501, 0.499),
    "board:ConnectFour-v0": (0.552, 0.446),
    "board:ConnectFour-v0-small": (0.626, 0.370),
    "board:Othello-v0": (0.437, 0.505),
    "cards:KuhnPoker-v0": (0.561, 0.439),
    "cards:LeducHoldem-v0": (0.493, 0.428),
    "cards:LiarsDice-v0": (0.468, 0.532),
    "cards:LiarsDice-v0-two-dice": (0.487, 0.513),
    "talk:ColonelBlotto-v0": (0.313, 0.312),
    "talk:IteratedPrisonersDilemma-v0": (0.401, 0.400),
    "talk:DontSayIt-v0": (0.159, 0.167),
    "talk:SealedAuction-v0": (0.281, 0.289, 0.297),
    "talk:Mafia-v0": (0.326, 0.667),
    "talk:Negotiation-v0": (0.127, 0.127),
}


def describe(env_id: str) -> list[tuple[str, str]]:
    """Return rows for `gem info`: how games between two random players end."""
    if env_id not in OUTCOMES:
        return []
    won = OUTCOMES[env_id]
    shares = [*zip(SIDES.get(env_id, SEATS), won, strict=False), ("draws", 1 - sum(won))]
    return [(f"random against random: {name}", f"{share:.3f} of the games") for name, share in shares]
