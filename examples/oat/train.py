"""Train a model with Oat on an environment of gem, with an advantage per turn. See README.md."""

from __future__ import annotations

import sys

import launchpad
from oat.args import default_args_validation, get_default_args
from oat.interface import get_program

from gem.integrations.oat import GemActor, GemArgs, GemLearner, GemMultiTurnActor, GemMultiTurnLearner


def main() -> None:
    multi_turn = "--multi-turn" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--multi-turn"]
    args = get_default_args(GemArgs)
    args.algo, args.oracle, args.eval_steps = "PPO", "", -1
    args = default_args_validation(args)
    classes = (GemMultiTurnLearner, GemMultiTurnActor) if multi_turn else (GemLearner, GemActor)
    program, resources = get_program(args, *classes)
    launchpad.launch(program, launch_type=args.launch_type, local_resources=resources, terminal="current_terminal")


if __name__ == "__main__":
    main()
