#!/usr/bin/env bash
exec python "$(dirname "$0")/train.py" --env math:Arithmetic --wrappers python_tool \
  grpo.max_rollout_turns=16 policy.max_total_sequence_length=8192 policy.generation.max_new_tokens=512 "$@"
