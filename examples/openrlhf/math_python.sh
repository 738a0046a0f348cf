#!/usr/bin/env bash
exec python "$(dirname "$0")/train.py" --env math:Arithmetic --wrappers python_tool,concat_chat "$@"
