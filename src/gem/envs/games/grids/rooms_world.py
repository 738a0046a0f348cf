"""The world of gem.envs.games.grids.rooms: its state, what moves change, and plans that solve a task.

A plan divides a task into ways to a cell, each a shortest one, and fetches the keys of the locked doors on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

MOVES = ("left", "right", "forward", "pick up", "drop", "toggle")
COMPASS = ("north", "east", "south", "west")
WALL, FLOOR = "#", "."
CARRIED = -1  # the cell of the object that is carried

Place = tuple[int, int]  # where the agent is, and index of its direction in COMPASS
_Reached = tuple[Place, Place | None, tuple[str, ...]]  # a place, the one before it, and the moves between them


@dataclass(frozen=True)
class Thing:
    """A ball, box or key, and the cell where it is."""

    name: str  # such as "red ball"
    cell: int


@dataclass(frozen=True)
class Door:
    """A door. The key of the same color opens a locked one."""

    name: str  # such as "red door"
    cell: int
    status: str  # "open", "closed" or "locked"

    @property
    def key(self) -> str:
        return self.name.replace("door", "key")


@dataclass(frozen=True)
class State:
    """State of an episode.

    Args:
        walls: the map by rows, with walls and floor only.
        width: length of a row.
        things, doors: what is on it; no two things and no two doors have the same name.
        where, facing: the agent's cell, and index of its direction in COMPASS.
        task: what to do, "go to", "pick up", "open" or "put", with what, and for "put" next to what (else "").
    """

    walls: str
    width: int
    things: tuple[Thing, ...]
    doors: tuple[Door, ...]
    where: int
    facing: int
    task: tuple[str, str, str]

    def carried(self) -> Thing | None:
        return next((thing for thing in self.things if thing.cell == CARRIED), None)

    def items(self) -> list[Thing | Door]:
        return [*self.things, *self.doors]

    @cached_property
    def _by_cell(self) -> dict[int, Thing | Door]:
        return {item.cell: item for item in self.items()}

    def at(self, cell: int) -> Thing | Door | None:
        """Return what is in a cell, besides the agent."""
        return self._by_cell.get(cell)

    def named(self, name: str) -> Thing | Door:
        return next(item for item in self.items() if item.name == name)

    def steps(self) -> tuple[int, int, int, int]:
        """Return the differences between neighboring cells, by direction."""
        return -self.width, 1, self.width, -1

    def ahead(self) -> int:
        """Return the cell in front of the agent. The outermost cells are walls, so that there is always one."""
        return self.where + self.steps()[self.facing]

    def is_free(self, cell: int) -> bool:
        """Return whether the agent can enter a cell."""
        item = self.at(cell)
        return self.walls[cell] == FLOOR and (item is None or (isinstance(item, Door) and item.status == "open"))


def after(state: State, move: str) -> tuple[State, str, str | None]:
    """Return the state after a move, a line about it, and why it is illegal (None if it is legal)."""
    if move in ("left", "right"):
        facing = (state.facing + (1 if move == "right" else 3)) % 4
        return replace(state, facing=facing), f"you turn {move} and face {COMPASS[facing]}.", None
    ahead = state.ahead()
    item, held = state.at(ahead), state.carried()
    if move == "forward":
        if not state.is_free(ahead):
            return state, "the way is not free.", "blocked"
        return replace(state, where=ahead), "you go forward.", None
    if move == "pick up":
        if held is not None:
            return state, f"you carry the {held.name} already.", "hands_full"
        if not isinstance(item, Thing):
            return state, "there is nothing to pick up ahead.", "nothing_there"
        return _moved(state, item, CARRIED), f"you pick up the {item.name}.", None
    if move == "drop":
        if held is None:
            return state, "you carry nothing.", "nothing_carried"
        if item is not None or state.walls[ahead] == WALL:
            return state, "the cell ahead is not empty.", "no_space"
        return _moved(state, held, ahead), f"you drop the {held.name}.", None
    if not isinstance(item, Door):
        return state, "there is no door ahead.", "no_door"
    if item.status == "locked" and (held is None or held.name != item.key):
        return state, f"the {item.name} is locked.", "locked"
    changed = replace(item, status="closed" if item.status == "open" else "open")
    doors = tuple(changed if door is item else door for door in state.doors)
    verb = {"open": "close", "closed": "open", "locked": "unlock and open"}[item.status]
    return replace(state, doors=doors), f"you {verb} the {item.name}.", None


def _moved(state: State, thing: Thing, cell: int) -> State:
    return replace(state, things=tuple(replace(t, cell=cell) if t is thing else t for t in state.things))


def is_done(state: State) -> bool:
    """Return whether the task is done."""
    verb, name, other = state.task
    item = state.named(name)
    if verb == "go to":
        return item.cell == state.ahead()
    if verb == "open":
        return isinstance(item, Door) and item.status == "open"
    if verb == "pick up":
        return item.cell == CARRIED
    return CARRIED not in (item.cell, state.named(other).cell) and (
        abs(item.cell - state.named(other).cell) in (1, state.width)
    )


def plan(state: State) -> list[str] | None:
    """Return moves that do the task, not always the fewest, or None if none are found."""
    planner = _Planner(state)
    return planner.moves if planner.do_task() else None


class _Planner:
    """Moves the agent in a copy of the state, and keeps the moves. Its methods return whether they succeeded."""

    def __init__(self, state: State) -> None:
        self.state, self.moves = state, list[str]()
        self.opening: list[str] = []  # locked doors whose keys are being fetched

    def do_task(self) -> bool:
        verb, name, other = self.state.task
        if verb == "open":
            return self.open(name)
        if verb == "pick up":
            return self.fetch(name)
        if verb == "go to":
            return self.face(name) if self.state.named(name).cell != CARRIED else self.put_down()
        if self.state.named(other).cell == CARRIED and not self.put_down():
            return False
        return self.unlock_way(other) and self.fetch(name) and self.put_next_to(other)

    def play(self, *moves: str) -> bool:
        for move in moves:
            self.state, _, invalid = after(self.state, move)
            if invalid is not None:
                return False
            self.moves.append(move)
        return True

    def face(self, name: str) -> bool:
        """Stand before something, and look at it."""
        cell = self.state.named(name).cell
        return self.unlock_way(name) and self.walk(lambda ahead: ahead == cell)

    def walk(self, is_goal: Callable[[int], bool]) -> bool:
        """Go a shortest way, through no locked doors, until the cell ahead is a goal."""
        way = shortest_way(self.state, is_goal)
        return way is not None and self.play(*way)

    def unlock_way(self, name: str) -> bool:
        """Unlock the doors on a shortest way to something."""
        cell = self.state.named(name).cell
        if shortest_way(self.state, lambda ahead: ahead == cell) is not None:
            return True
        for _ in self.state.doors:
            way = shortest_way(self.state, lambda ahead: ahead == cell, through_locked=True)
            if way is None:
                return False
            door = first_locked(self.state, way)
            if door is None:
                return True
            if not self.open(door.name):
                return False
        return True

    def open(self, name: str) -> bool:
        door = self.state.named(name)
        assert isinstance(door, Door)
        held = self.state.carried()
        if door.status == "locked" and (held is None or held.name != door.key):
            if name in self.opening or all(thing.name != door.key for thing in self.state.things):
                return False
            self.opening.append(name)
            if not self.fetch(door.key):
                return False
            self.opening.pop()
        return self.walk(lambda ahead: ahead == door.cell) and self.play("toggle")

    def fetch(self, name: str) -> bool:
        if self.state.named(name).cell == CARRIED:
            return True
        if not self.unlock_way(name) or (self.state.carried() is not None and not self.put_down()):
            return False
        return self.face(name) and self.play("pick up")

    def put_down(self) -> bool:
        """Drop what is carried where it blocks no way."""
        return self.walk(self._blocks_nothing) and self.play("drop")

    def put_next_to(self, name: str) -> bool:
        cell = self.state.named(name).cell
        spots = {cell + step for step in self.state.steps()}
        return self.walk(lambda ahead: ahead in spots and self._is_empty(ahead)) and self.play("drop")

    def _is_empty(self, cell: int) -> bool:
        return self.state.walls[cell] == FLOOR and self.state.at(cell) is None

    def _blocks_nothing(self, cell: int) -> bool:
        if not self._is_empty(cell):
            return False
        held = self.state.carried()
        assert held is not None
        before, then = reachable(self.state, -1), reachable(self.state, cell)
        return before - then <= {cell}


def reachable(state: State, blocked: int) -> set[int]:
    """Return the cells that the agent can enter if all doors are open and one cell is blocked, and the things there."""
    things = {thing.cell for thing in state.things}
    found, waiting = {state.where}, [state.where]
    while waiting:
        cell = waiting.pop()
        for step in state.steps():
            other = cell + step
            if other not in found and other != blocked and state.walls[other] == FLOOR:
                found.add(other)
                if other not in things:
                    waiting.append(other)
    return found


def shortest_way(state: State, is_goal: Callable[[int], bool], through_locked: bool = False) -> list[str] | None:
    """Return the fewest moves until the cell ahead is a goal, or None if there is no way.

    Closed doors on the way are opened, and locked ones whose key is carried.

    Args:
        state: where to start.
        is_goal: whether a cell is a goal.
        through_locked: whether the way may lead through locked doors whose keys are not carried.
    """
    held, steps = state.carried(), state.steps()
    cost = [int(sign == FLOOR) for sign in state.walls]  # moves to enter a cell; 0 if it cannot be entered
    for item in state.items():
        if isinstance(item, Thing):
            cost[item.cell] = 0 if item.cell != CARRIED else cost[item.cell]
        elif item.status != "open":
            has_key = held is not None and held.name == item.key
            cost[item.cell] = 2 if item.status == "closed" or has_key or through_locked else 0
    came: dict[Place, tuple[Place | None, tuple[str, ...]]] = {}
    # Breadth-first: the places at this number of moves, and those at one more.
    places: list[_Reached] = [((state.where, state.facing), None, ())]
    later: list[_Reached] = []
    while places or later:
        following, later = later, []
        for place, before, moves in places:
            if place in came:
                continue
            came[place] = before, moves
            where, facing = place
            ahead = where + steps[facing]
            if is_goal(ahead):
                return _traced(came, place)
            following.append(((where, (facing + 3) % 4), place, ("left",)))
            following.append(((where, (facing + 1) % 4), place, ("right",)))
            if cost[ahead] == 1:
                following.append(((ahead, facing), place, ("forward",)))
            elif cost[ahead] == 2:
                later.append(((ahead, facing), place, ("toggle", "forward")))
        places = following
    return None


def _traced(came: Mapping[Place, tuple[Place | None, tuple[str, ...]]], end: Place) -> list[str]:
    parts = []
    place: Place | None = end
    while place is not None:
        place, moves = came[place]
        parts.append(moves)
    return [move for part in reversed(parts) for move in part]


def first_locked(state: State, way: list[str]) -> Door | None:
    """Return the first locked door that a way leads through, or None if it leads through none."""
    for move in way:
        item = state.at(state.ahead())
        if move == "toggle" and isinstance(item, Door):
            if item.status == "locked":
                return item
            doors = tuple(replace(door, status="open") if door is item else door for door in state.doors)
            state = replace(state, doors=doors)
        else:
            state = after(state, move)[0]
    return None
