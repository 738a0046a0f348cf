#!/usr/bin/env bash
exec python "$(dirname "$0")/train.py" --env game:GuessTheNumber-v0-easy \
  grpo.max_rollout_turns=4 policy.max_total_sequence_length=2048 policy.generation.max_new_tokens=64 "$@"
