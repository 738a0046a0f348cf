# Functions of .ci/run and scripts/nightly: run steps within time limits, and print a table of them at the end.
#
# A failed step does not stop the others. Tests that fail run once more by themselves, and only those that fail again
# are failures; the table is followed by the tests that needed their second try. There is no second try if pytest did
# not run to its end, or could not collect all tests.

unset PYTHONDONTWRITEBYTECODE  # the tests start hundreds of interpreters, which would compile gem each time
failed=0
table=$(mktemp)
second_tries=$(mktemp)

outcome() {  # outcome SECONDS WORD NAME: add a line to the table, and print it
  printf '%6d s  %-8s %s\n' "$@" | tee -a "$table"
}

finish() {  # finish NAME START STATUS
  local word=failed
  case $3 in
    0) word=passed ;;
    124 | 137) word=timeout; failed=1 ;;
    *) failed=1 ;;
  esac
  outcome $((SECONDS - $2)) "$word" "$1"
}

step() {  # step NAME MINUTES COMMAND...
  local name=$1 minutes=$2 start=$SECONDS status=0
  echo "-- $name: ${*:3}"
  timeout --kill-after=30 "${minutes}m" "${@:3}" </dev/null || status=$?
  finish "$name" "$start" "$status"
}

tests() {  # tests NAME MINUTES COMMAND...: a step whose command runs pytest; in its second try it runs with JOBS=0
  local name=$1 minutes=$2 start=$SECONDS status=0 cache options ended
  cache=$(mktemp -d)
  options="-o cache_dir=$cache ${PYTEST_ADDOPTS:-}"
  echo "-- $name: ${*:3}"
  # tests/conftest.py writes the exit status of pytest to a file, because make would hide it.
  GEM_TEST_STATUS=$cache/status PYTEST_ADDOPTS=$options \
    timeout --kill-after=30 "${minutes}m" "${@:3}" </dev/null || status=$?
  sed -n 's/^ *"\(.*\)": true,*$/\1/p' "$cache/v/cache/lastfailed" >"$cache/failed" 2>/dev/null
  ended=$(cat "$cache/status" 2>/dev/null)
  if [ "$status" != 0 ] && [ "$ended" = 1 ] && [ -s "$cache/failed" ] && ! grep -qv "::" "$cache/failed"; then
    echo "-- $name: once more, what failed"
    sed "s|^|$name: |" "$cache/failed" >>"$second_tries"
    status=0
    PYTEST_ADDOPTS="$options --last-failed --last-failed-no-failures=none" JOBS=0 \
      timeout --kill-after=30 15m "${@:3}" </dev/null || status=$?
  fi
  rm -rf "$cache"
  finish "$name" "$start" "$status"
}

skip() {  # skip NAME REASON: a step that cannot run on this machine
  outcome 0 skipped "$1: $2"
}

summary() {  # print the table; returns 1 if a step failed
  echo
  cat "$table"
  printf '%6d s  %s\n' "$SECONDS" "all steps"
  [ ! -s "$second_tries" ] || { echo "Tests that needed a second try:"; cat "$second_tries"; }
  rm -f "$table" "$second_tries"
  return "$failed"
}
