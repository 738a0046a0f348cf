#!/usr/bin/env bash
exec python "$(dirname "$0")/train.py" --env math:Arithmetic --wrappers python_tool,concat_chat \
  trainer.algorithm.advantage_estimator=grpo generator.n_samples_per_prompt=8 \
  generator.sampling_params.max_generate_length=512 generator.max_input_length=8192 "$@"
