#!/usr/bin/env bash
exec python "$(dirname "$0")/train.py" --env vision:Charts generator.vision_language_generator=true \
  trainer.algorithm.advantage_estimator=grpo generator.n_samples_per_prompt=8 \
  generator.sampling_params.max_generate_length=512 generator.max_input_length=8192 "$@"
