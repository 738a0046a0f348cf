#!/usr/bin/env bash
exec python "$(dirname "$0")/train.py" --env_id game:GuessTheNumber-v0-easy --generate_max_length 64 --gamma 0.9 --beta 0 \
  --rollout_batch_size 128 --rollout_batch_size_per_device 16 --num_samples 8 --train_batch_size 128 "$@"
