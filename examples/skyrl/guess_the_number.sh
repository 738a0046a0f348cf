#!/usr/bin/env bash
exec python "$(dirname "$0")/train.py" --env game:GuessTheNumber-v0-easy \
  trainer.algorithm.advantage_estimator=gem_rebn trainer.algorithm.gamma=0.9 generator.n_samples_per_prompt=1 \
  generator.sampling_params.max_generate_length=64 generator.max_input_length=2048 "$@"
