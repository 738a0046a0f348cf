#!/usr/bin/env bash
exec python "$(dirname "$0")/train.py" --env game:GuessTheNumber-v0-easy gconfig.max_new_tokens=64 gconfig.max_tokens=2048 "$@"
