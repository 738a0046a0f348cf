"""Train a model on Tinker with an advantage per turn. Needs TINKER_API_KEY. See README.md."""

from __future__ import annotations

import argparse
import asyncio

import tinker

from gem.integrations import make_tasks
from gem.integrations.tinker import reinforce


async def train(client: tinker.TrainingClient, options: argparse.Namespace) -> None:
    tasks = make_tasks(options.env, options.steps * options.groups, wrappers=options.wrappers)
    async for metrics in reinforce(
        client,
        tasks,
        groups=options.groups,
        group_size=options.group_size,
        gamma=options.gamma,
        learning_rate=options.learning_rate,
        max_tokens=options.max_tokens,
        start=options.start,
        save_every=20,
    ):
        print(metrics, flush=True)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="Qwen/Qwen3-8B", help="a base model of the service")
    parser.add_argument("--env", default="game:GuessTheNumber-v0-easy", help="an id of `gem list`")
    parser.add_argument("--wrappers", default="", help="such as python_tool,concat_chat")
    parser.add_argument("--groups", type=int, default=16, help="seeds per step")
    parser.add_argument("--group-size", type=int, default=4, help="episodes with the same seed")
    parser.add_argument("--max-tokens", type=int, default=512, help="of one reply")
    parser.add_argument("--gamma", type=float, default=0.9, help="discount per turn")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--start", type=int, default=0, help="first step, to resume with --state")
    parser.add_argument("--state", help="path of a state that an earlier run has saved")
    return parser


def main() -> None:
    options = parser().parse_args()
    client = tinker.ServiceClient().create_lora_training_client(options.model)
    if options.state:
        client.load_state(options.state).result()
    asyncio.run(train(client, options))


if __name__ == "__main__":
    main()
