#!/usr/bin/env bash
exec python "$(dirname "$0")/train.py" --env game:GuessTheNumber-v0-easy "$@"
