#!/usr/bin/env bash
ENV=math:Arithmetic WRAPPERS=python_tool,concat_chat exec "$(dirname "$0")/guess_the_number.sh" "$@"
