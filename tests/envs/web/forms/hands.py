"""Use a page of web:Forms as a person does: by the names that the observation shows.

A plan is a text of steps joined by " / ":

    Save                 click the first link or button of this name
    desk.txt > Delete    the one in the row that contains the text before it
    Note := call         type into the textbox, choose in the combobox, or set the checkbox ("true", "false")
    back                 go_back
    stop := 42           stop with an answer
"""

from __future__ import annotations

import re

from gem.core import Env, Step

LINE = re.compile(r"(?P<indent> *)(?:\[(?P<number>\d+)\] )?(?P<role>\w+) '(?P<name>.*?)'(?: |$)(?P<rest>.*)")


def element(observation: str, name: str) -> tuple[str, str, str]:
    """Return the number, role and the rest of the line of a named element. Raises AssertionError if there is none."""
    row, _, name = name.rpartition(" > ")
    inside = not row
    for line in observation.split("\n"):
        found = LINE.fullmatch(line)
        if found is None:
            continue
        if row and found["role"] == "row":
            inside = row in found["name"]
        if inside and found["number"] and found["name"] == name:
            return found["number"], found["role"], found["rest"]
    raise AssertionError(f"no {name!r} in {observation}")


def follow(env: Env, seed: int, plan: str, *, show: bool = False) -> Step:
    """Reset and follow a plan, which ends with an empty stop unless it has one. Return the last step."""
    observation = env.reset(seed=seed)[0]
    for part in [*filter(None, plan.split(" / ")), "stop := "]:
        name, _, value = part.partition(" := ")
        if name == "stop":
            return env.step(f"stop [{value}]")
        if name == "back":
            step = env.step("go_back")
        else:
            number, role, rest = element(observation, name)
            if role == "textbox":
                step = env.step(f"type [{number}] [{value}]")
            elif role == "combobox":
                step = env.step(f"select [{number}] [{value}]")
            elif role == "checkbox":
                step = env.step(f"click [{number}]") if f"checked={value}" not in rest else step
            else:
                step = env.step(f"click [{number}]")
        assert "invalid" not in step.info and not step.terminated, (part, step.info, observation)
        observation = step.observation
        if show:
            print(">>>", part, "\n", observation)
    raise AssertionError("unreachable")
