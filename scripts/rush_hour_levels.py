"""Generate the levels of game:RushHour and write them to src/gem/envs/games/data/rush_hour.txt. Takes some minutes.

Cars are placed at random. Breadth-first search finds all positions that can be reached and their distance to the
nearest solved one; a few of each range of distances are kept, from parking lots with at most MOST_POSITIONS positions.
The number of seconds after which to stop may be given as an argument.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from random import Random

from gem.envs.games.grids.rush_hour import LEAST, MOST, RED, SIDE, Car, State, distances, drawn

TARGET = Path(__file__).parents[1] / "src" / "gem" / "envs" / "game_env" / "data" / "rush_hour.txt"
RANGES = {range(LEAST, 6): 60, range(6, 10): 60, range(10, MOST + 1): 40}  # moves: number of parking lots
STARTS = 5  # levels from one parking lot
MOST_POSITIONS = 1500
EXIT_ROW = 2
LETTERS = "ABCDEFGHIJKL"


def parked(number: int, rng: Random) -> State:
    """Place the red car and up to `number` others at random; a car for which no place is found is left out."""
    cars, offsets = [Car(RED, EXIT_ROW, 2, True)], [rng.randrange(SIDE - 3)]
    taken = cars[0].mask(offsets[0])
    for _ in range(8 * number):
        if len(cars) > number:
            break
        horizontal, length = rng.random() < 0.5, 2 if rng.random() < 0.7 else 3
        lane, place = rng.randrange(SIDE), rng.randrange(SIDE - length + 1)
        car = Car(LETTERS[len(cars) - 1], lane, length, horizontal)
        if not (horizontal and lane == EXIT_ROW) and not car.mask(place) & taken:
            taken |= car.mask(place)
            cars.append(car)
            offsets.append(place)
    return State(tuple(cars), tuple(offsets))


def main() -> None:
    rng, left, found, end = Random(0), dict(RANGES), [], time.time() + float((sys.argv[1:] or ["inf"])[0])
    while any(left.values()) and time.time() < end:
        state = parked(rng.randint(9, 12), rng)
        known = distances(state.cars, state.offsets, MOST_POSITIONS) or {}
        for moves in reversed(left):
            starts = sorted(offsets for offsets, distance in known.items() if distance in moves)
            if starts and left[moves]:
                left[moves] -= 1
                for offsets in rng.sample(starts, min(STARTS, len(starts))):
                    found.append(f"{known[offsets]:2} {drawn(State(state.cars, offsets))}")
                print(left, flush=True)
                break
    head = "# Moves of the shortest solution, and the map by rows. Written by scripts/rush_hour_levels.py."
    TARGET.write_text("\n".join([head, *sorted(set(found))]) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
