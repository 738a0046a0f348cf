"""terminal:Processes — tasks about programs that run in parallel, in the background, and until a signal ends them.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from __future__ import annotations

import random
from functools import partial

from gem.envs.computers.task import RequiredService, TerminalTask, shell_check
from gem.envs.computers.terminal.text import NAMES, WORDS

bash_check = partial(shell_check, shell="/bin/bash")


def _write(name: str, script: str) -> str:
    return f"cat > {name} <<'END_OF_SCRIPT'\n{script}END_OF_SCRIPT"


def run_jobs_in_parallel(rng: random.Random, level: int) -> TerminalTask:
    """Write a script that runs jobs at the same time and notes those that fail."""
    names = rng.sample(NAMES, 2 + level)
    job = "sleep 0.1\necho {} > results/{}.txt\nexit {}\n"
    jobs = {name: job.format(rng.randint(1, 999), name, 0) for name in names}
    # each hidden job waits until all have started, so that they end only if they run at the same time
    hidden_names = rng.sample(WORDS, 2 + level)
    hidden_names[0] = f"{hidden_names[0]} two"
    failing = sorted(rng.sample(hidden_names, 1 + level // 2))
    count = len(names) + len(hidden_names)
    meet = (
        f'[[ $1 ]] || exit; > "met-$1"; n=0; until [ $(ls met-* | wc -l) = {count} ]; do sleep 0.05; n=$((n + 1)); '
        "[ $n -lt 100 ] || > late; [ ! -e late ] || exit 1; done; "
    )
    hidden = {
        f"jobs/{name}.sh": f"set -- '{name}'; {meet}echo {name} | tr a-z A-Z > \"results/$1.txt\"; exit "
        f"{2 + failing.index(name) if name in failing else 0}\n"
        for name in (*names, *hidden_names)
    }
    files = {f"jobs/{name}.sh": text for name, text in jobs.items()}
    results = {f"results/{name}.txt": f"{name.upper()}\n" for name in (*names, *hidden_names)}
    checks = (
        bash_check(
            "run-all.sh with other jobs",
            "mkdir -p results; bash run-all.sh >/dev/null 2>&1; echo $? > code.txt",
            files=hidden,
            expected={**results, "failed.txt": "".join(f"{name}\n" for name in failing), "code.txt": "1\n"},
        ),
        bash_check(
            "run-all.sh without failures",
            "mkdir -p results; bash run-all.sh >/dev/null 2>&1; echo $? > code.txt",
            files={"failed.txt": "old\n", **{path: text[: text.rindex("exit ")] for path, text in hidden.items()}},
            expected={**results, "failed.txt": "", "code.txt": "0\n"},
        ),
    )
    script = (
        'mkdir -p results\ndeclare -A names\nfor j in jobs/*.sh; do bash "$j" & names[$!]=$(basename "$j" .sh); done\n'
        '> failed.unsorted\nfor p in ${!names[@]}; do wait $p || echo "${names[$p]}" >> failed.unsorted; done\n'
        "sort failed.unsorted > failed.txt\nrm failed.unsorted\n[ ! -s failed.txt ]\n"
    )
    return TerminalTask(
        instruction="Write run-all.sh. bash run-all.sh runs all scripts jobs/*.sh with bash, all at the same time, in "
        "the current folder, and waits until they have ended. Then it writes the names of those that failed (with "
        "another exit status than 0) to failed.txt, without the folder and .sh, one per line, sorted. failed.txt is "
        "empty if none failed. The script exits with 1 if any job failed, else with 0. Other jobs may be added later, "
        "also with spaces in their names.",
        files=files,
        expected=files,
        checks=checks,
        solution=(_write("run-all.sh", script),),
        near_misses=(
            _write("run-all.sh", script.replace("[ ! -s failed.txt ]\n", "")),
            _write("run-all.sh", script.replace('$(basename "$j" .sh)', "$j")),
            _write("run-all.sh", script.replace('bash "$j" &', 'bash "$j"; true &')),
            _write("run-all.sh", script.replace('bash "$j" &', "bash $j &")),
            _write("run-all.sh", script.replace('bash "$j" &', 'sh "$j" &')),
            _write("run-all.sh", script.replace("wait $p || echo", "wait $p; [ $? != 1 ] || echo")),
            _write("run-all.sh", script.replace("sort failed.unsorted >", "sort failed.unsorted >>")),
            _write("run-all.sh", script.replace("wait $p ||", "kill -0 $p ||")),
            _write(
                "run-all.sh", script.replace("sort failed.unsorted", "sort -r failed.unsorted | sed 's/$/ failed/'")
            ),
            _write("run-all.sh", script.replace("jobs/*.sh", " ".join(files))),
            _write("run-all.sh", "for j in jobs/*.sh; do bash $j & done; wait; > failed.txt\n"),
        ),
    )


def stop_on_a_signal(rng: random.Random, level: int) -> TerminalTask:
    """Write a worker that finishes properly when it gets SIGTERM."""
    lock = f"{rng.choice(WORDS)}.lock"
    numbers = [rng.randint(1, 999) for _ in range(3 + 2 * level)]
    # each wait ends after some seconds, or when the worker has ended, and then the results are wrong
    wait = "n=0; until {what} || ! kill -0 $p; do sleep 0.05; n=$((n + 1)); [ $n -lt 100 ] || break; done; "
    ready, empty = (wait.replace("{what}", what) for what in (f"[ -e {lock} ]", '[ -z "$(ls queue)" ]'))
    clean = f"rm -rf total.txt {lock}; "  # the agent may have tried the worker
    start = f"bash worker.sh & p=$!; {ready}{empty}"
    # longer than the second of the instruction, because the machine may be busy
    stop = "(sleep 2.5; kill -KILL $p) & kill -TERM $p; wait $p; echo $? > code.txt; ls -A queue > left.txt"
    queue = {f"queue/{number}": f"{value}\n" for number, value in enumerate(numbers, start=1)}
    later = rng.randint(1, 999)
    checks = (
        bash_check(
            "worker.sh after SIGTERM",
            clean + start + stop,
            files=queue,
            expected={"total.txt": f"{sum(numbers)}\n", "code.txt": "0\n", lock: None, "left.txt": ""},
        ),
        bash_check(
            "worker.sh with a file that arrives later",
            f"{clean}echo 1 > total.txt; {start}cp later tmp; mv tmp 'queue/a b'; {empty}{stop}",
            files={**queue, "later": f"{later}\n"},
            expected={"total.txt": f"{sum(numbers) + later}\n", "code.txt": "0\n", lock: None},
        ),
        bash_check(
            "worker.sh before SIGTERM",
            (
                f"{clean}rm -f queue/*; {start}sleep 0.2; (ls total.txt {lock}; cat {lock}) > early.txt; "
                f"kill -0 $p && > alive.txt; {stop}"
            ),
            expected={"alive.txt": "", "early.txt": f"{lock}\n", "code.txt": "0\n", "total.txt": "0\n"},
        ),
    )
    script = (
        f"trap 'echo $total > total.txt; rm {lock}; exit 0' TERM\n> {lock}\ntotal=0\nmkdir -p queue\nwhile :; do\n"
        '  for f in queue/*; do\n    [ -f "$f" ] || continue\n    total=$((total + $(cat "$f")))\n    rm "$f"\n'
        "  done\n"
        "  sleep 0.05\ndone\n"
    )
    return TerminalTask(
        instruction=f"Write worker.sh. bash worker.sh creates the empty file {lock} and then runs until it gets "
        "SIGTERM. It takes the files that are in the folder queue, now or later, each of which has one number: it adds "
        f"the number to a total and removes the file. On SIGTERM it writes the total to total.txt, removes {lock}, and "
        "exits with 0 within a second.",
        files={"queue/1": f"{rng.randint(1, 9999)}\n"},
        expected={},
        checks=checks,
        solution=(_write("worker.sh", script),),
        near_misses=(
            _write("worker.sh", script.replace("exit 0", "exit 143")),
            _write("worker.sh", script.replace("; rm ", "; : rm ")),
            _write("worker.sh", script.replace("' TERM", "' EXIT")),
            _write("worker.sh", script.replace('    rm "$f"\n', '    rm "$f"; total=$((total + 1))\n')),
            _write("worker.sh", script.replace('    rm "$f"\n', '    mkdir -p queue/done; mv "$f" queue/done\n')),
            _write("worker.sh", script.replace('"$f"', "$f")),
            _write("worker.sh", script.replace("sleep 0.05", "sleep 5")),
            _write("worker.sh", script.replace("total > total.txt", "total >> total.txt")),
            _write("worker.sh", script.replace("echo $total >", "[ $total = 0 ] || echo $total >")),
            _write("worker.sh", script.replace(f"> {lock}\n", "")),
            _write("worker.sh", script.replace(f"> {lock}\n", "").replace("    total=", f"    > {lock}; total=")),
            _write("worker.sh", script.replace("while :;", "for i in 1;")),
            _write("worker.sh", script.replace("echo $total > total.txt; ", "")),
            _write("worker.sh", script.replace("; exit 0", "")),
            _write("worker.sh", script.replace("TERM", "INT")),
            _write("worker.sh", script.replace(f"> {lock}", f"echo $$ > {lock}")),
        ),
    )


def only_one_at_a_time(rng: random.Random, level: int) -> TerminalTask:
    """Write a wrapper that runs a command only if no other one runs, and survives a stale lock."""
    message = f"{rng.choice(WORDS)} is busy"
    code = rng.randint(3, 90)
    numbers = [rng.randint(1, 9) for _ in range(level)]
    wait = "n=0; until [ -e {} ]; do sleep 0.05; n=$((n + 1)); [ $n -lt 100 ] {}|| exit 1; done; "
    inner = f"echo first >> log; {wait.format('go', '')}exit {code}"
    runs = "&& kill -0 $! "  # or else waiting makes no sense
    first = (
        f"(bash once.sh sh -c '{inner}'; echo $? > code1) & {wait.format('log', runs)}"
        "timeout 5 bash once.sh sh -c 'echo second >> log' > out2; echo $? > code2; > go; wait; "
    )
    after = "bash once.sh sh -c 'echo \"$1 $#\" >> log' x 'a  b' " + " ".join(map(str, numbers)) + "; echo $? > code3"
    up = wait.format("up", runs)
    kill = f"setsid bash once.sh sh -c '> up; sleep 60' & {up}kill -KILL -- -$!; wait; timeout 5 {after}"
    checks = (
        bash_check(
            "a second command",
            first + after,
            expected={
                "log": f"first\na  b {len(numbers) + 1}\n",
                "out2": f"{message}\n",
                "code1": f"{code}\n",
                "code2": "75\n",
                "code3": "0\n",
            },
        ),
        bash_check(
            "a command after a killed one", kill, expected={"log": f"a  b {len(numbers) + 1}\n", "code3": "0\n"}
        ),
    )
    busy = f'echo "{message}"; exit 75'
    script = (
        "if ! (set -C; echo $$ > once.lock) 2>/dev/null; then\n"
        f'  if kill -0 "$(cat once.lock)" 2>/dev/null; then {busy}; fi\n'
        '  echo $$ > once.lock\nfi\n"$@"\ncode=$?\nrm once.lock\nexit $code\n'
    )
    folder = f'mkdir once.d 2>/dev/null || {{ echo "{message}"; exit 75; }}\n"$@"\ncode=$?\nrmdir once.d\nexit $code\n'
    return TerminalTask(
        instruction="Write once.sh. bash once.sh COMMAND ARGUMENTS… runs the command with its arguments and exits "
        "with its exit status. If another command that was started with once.sh is still running, it prints "
        f"'{message}' and exits with 75 instead. It must work again after a once.sh was killed with SIGKILL together "
        "with its command. Do not use flock, which may have no effect on this machine.",
        files={"README": "once.sh belongs here.\n"},
        expected={},
        checks=checks,
        solution=(_write("once.sh", script),),
        near_misses=(
            _write("once.sh", folder),
            _write("once.sh", script.replace('"$@"', "$@")),
            _write("once.sh", script.replace('"$@"', "$*")),
            _write("once.sh", script.replace("75", "1")),
            _write("once.sh", script.replace("kill -0", "true")),
            _write("once.sh", script.replace("kill -0", "false")),
            _write("once.sh", script.replace("rm once.lock\n", "").replace("exit $code", "exit 0")),
            _write("once.sh", script.replace(f'echo "{message}"', f'echo "{message}" >&2')),
            _write("once.sh", '"$@"\n'),
        ),
    )


def keep_a_service_running(rng: random.Random, level: int) -> TerminalTask:
    """Start a program in the background that answers requests in a folder."""
    folder, ending = rng.choice(WORDS), rng.choice(["txt", "req", "job"])
    texts = {f"{name}-{rng.randint(10, 99)}": rng.sample(WORDS, 2 + level) for name in rng.sample(NAMES, 2 + level)}
    texts["two words"] = ["9", *rng.sample(WORDS, level), "10", "9"]
    kept = {f"{folder}/.keep": "", f"{folder}/README": f"Requests are files that end in .{ending}.\n"}
    service = RequiredService(
        pid_file="service.pid",
        requests={f"{folder}/{name}.{ending}": "".join(f"{word}\n" for word in words) for name, words in texts.items()},
        replies={
            f"answers/{name}.{ending}": "".join(f"{word}\n" for word in sorted(words)) for name, words in texts.items()
        },
    )
    script = (
        f'mkdir -p {folder} answers\nwhile :; do\n  for f in {folder}/*.{ending}; do\n    [ -f "$f" ] || continue\n'
        '    b=${f##*/}\n    sort "$f" > "tmp-$b" && mv "tmp-$b" "answers/$b" && rm "$f"\n  done\n  sleep 0.05\ndone\n'
    )
    start = "; nohup bash service.sh >/dev/null 2>&1 & echo $! > service.pid; sleep 0.2"

    def run(script: str, start: str = start) -> str:
        return f"{_write('service.sh', script)}\n:{start}"

    return TerminalTask(
        instruction="Start a program in the background that keeps running. For every file "
        f"NAME.{ending} that appears in the folder {folder}, it writes the sorted lines of the file to "
        f"answers/NAME.{ending} and removes the request. The files are complete when they appear, and names may have "
        "spaces. Other files stay in the folder. Write the process id of the program to service.pid. All other "
        "processes are killed before the program is tried; its children are not.",
        files=kept,
        expected=kept,
        complete=(folder,),
        service=service,
        solution=(run(script),),
        near_misses=(
            run(script.replace('sort "$f"', 'cat "$f"')),
            run(script.replace('sort "$f"', 'sort -u "$f"')),
            run(script.replace('sort "$f"', 'sort -n "$f"')),
            run(script.replace('"$f"', "$f")),
            run(script.replace(f"*.{ending}", "*")),
            run(script.replace('rm "$f"', 'mv "$f" "$f.done"')),
            run(script.replace('rm "$f"', 'rm "$f"; exit')),
            run(script.replace("sleep 0.05", "sleep 30")),
            run(script, "; bash service.sh >/dev/null 2>&1 & echo $$ > service.pid"),
            run(script, ""),
            run(script.replace('sort "$f"', 'sort -r "$f"')),
            run(script, "; bash service.sh >/dev/null 2>&1 & sleep 100 & echo $! > service.pid"),
            run(script, start.replace("echo $!", "echo 9999")),
            run(script.replace("while :; do", "for i in 1; do")),
            run(script.replace("answers/$b", "answers/${b%.*}")),
            run(script.replace(' && rm "$f"', "")),
        ),
    )


PROGRAMS = ("setsid",)
TEMPLATES = (run_jobs_in_parallel, stop_on_a_signal, only_one_at_a_time, keep_a_service_running)
