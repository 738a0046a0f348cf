"""Start ROLL's pipeline with a configuration of this folder. See README.md."""

from __future__ import annotations

import argparse
from pathlib import Path

from dacite import from_dict
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from roll.pipeline.agentic.agentic_config import AgenticConfig


def configuration(name: str, overrides: list[str]) -> AgenticConfig:
    with initialize_config_dir(str(Path(__file__).parent.absolute()), version_base=None):
        table = OmegaConf.to_container(compose(name, overrides=overrides), resolve=True)
    return from_dict(data_class=AgenticConfig, data=table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config_name", default="guess_the_number", help="or math_python")
    options, overrides = parser.parse_known_args()  # overrides: such as pretrain=Qwen/Qwen3-1.7B
    config = configuration(options.config_name, overrides)

    from roll.distributed.scheduler.initialize import init
    from roll.pipeline.agentic.agentic_pipeline import AgenticPipeline

    init()
    AgenticPipeline(pipeline_config=config).run()


if __name__ == "__main__":
    main()
