"""terminal:Logs — tasks with log files: counts, slow requests, open sessions, a window of time.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from __future__ import annotations

import gzip
import random
from collections import Counter

from gem.envs.computers.task import TerminalTask
from gem.envs.computers.terminal.text import NAMES, WORDS
from gem.sandbox.machine import FileEntry


def errors_per_service(rng: random.Random, level: int) -> TerminalTask:
    """Count errors per service in rotated log files, one of which is compressed."""
    services = rng.sample(WORDS, 4 + level)
    errors: Counter[str] = Counter()
    lines = []
    for number in range(30 * level):
        service = rng.choice(services[:-1])
        severity = rng.choice(["INFO", "INFO", "WARNING", "ERROR"])
        text = rng.choice(["started", "no ERROR so far", f"call of [{services[0]}] failed", "retry after ERROR"])
        lines.append(f"2024-05-01T{number // 60:02d}:{number % 60:02d} [{service}] {severity} {text}\n")
        errors[service] += severity == "ERROR"
    for number, service in enumerate((*services[:3], services[0])):
        lines.insert(5 * number + 1, f"2024-05-01T00:00 [{service}] ERROR disk\n")
        errors[service] += 1
    third = len(lines) // 3
    parts = ["".join(lines[:third]), "".join(lines[third : 2 * third]), "".join(lines[2 * third :])]
    ranked = sorted(((service, count) for service, count in errors.items() if count), key=lambda p: (-p[1], p[0]))
    packed = FileEntry("logs/app.log.2.gz", gzip.compress(parts[0].encode(), mtime=0))
    count = 'awk \'$3 == "ERROR" { gsub(/[][]/, "", $2); n[$2]++ } END { for (s in n) print s, n[s] }\''
    order = "sort -k2,2nr -k1,1 > errors.txt"
    read = "(zcat logs/app.log.2.gz; cat logs/app.log.1 logs/app.log)"
    return TerminalTask(
        instruction="The folder logs has the log file of today, app.log, and two older ones. Each line has a time, a "
        "service in brackets, a severity and a text. Count the lines of severity ERROR per service over all three "
        "files, and write them to errors.txt: the service without brackets, a space, the number. The largest number "
        "comes first; services with equal numbers are in alphabetical order. Leave out services without errors.",
        files={"logs/app.log": parts[2], "logs/app.log.1": parts[1], "logs/app.log.2.gz": packed},
        expected={"errors.txt": "".join(f"{service} {number}\n" for service, number in ranked)},
        solution=(f"{read} | {count} | {order}",),
        near_misses=(
            f"cat logs/app.log.1 logs/app.log | {count} | {order}",
            f"zcat logs/app.log.2.gz | {count} | {order}",
            f"{read} | {count.replace('$3 ==', '$0 ~')} | {order}",
            f"{read} | {count} | sort > errors.txt",
            f'{read} | {count} | awk "{{ print \\$2, \\$1 }}" | sort -k1,1nr -k2 > errors.txt',
            f"{read} | {count.replace('gsub(/[][]/, ' + chr(34) * 2 + ', $2); ', '')} | {order}",
        ),
    )


def slowest_requests(rng: random.Random, level: int) -> TerminalTask:
    """Find the pages with the longest mean time of successful requests."""
    pages = [f"/{word}" for word in rng.sample(WORDS, 5 + 2 * level)]
    lines, top = [], 2 + level
    times: dict[str, list[int]] = {page: [] for page in pages}
    for number, page in enumerate(pages):
        base = 100 + 37 * (number * 7 % len(pages))
        for spread in (*(rng.randint(-15, 15) for _ in range(3 * level)), 0):
            lines.append(f'10.0.0.{rng.randint(1, 99)} "GET {page}" 200 {base + spread}\n')
            times[page].append(base + spread)
        lines += [f'10.0.0.9 "GET {page}" {rng.choice([404, 500])} {rng.randint(2, 9)}200\n'] * (number % 3)
        lines += [f'10.0.0.7 "GET {page}" 200 5\n'] * (number % 2)
        times[page] += [5] * (number % 2)
    rng.shuffle(lines)
    text = "".join(lines)
    ranked = sorted(pages, key=lambda page: (-sum(times[page]) / len(times[page]), page))[:top]
    mean = 'awk \'$4 == 200 { gsub(/"/, "", $3); t[$3] += $5; n[$3]++ } END { for (p in t) print t[p] / n[p], p }\''
    rest = f"sort -k1,1gr -k2 | head -n {top} | cut -d' ' -f2 > slow.txt"
    return TerminalTask(
        instruction="Each line of access.log has an address, a request in quotes, a status, and a time in "
        f"milliseconds. Write the paths of the {top} pages with the longest mean time to slow.txt, such as /page, one "
        "per line, the slowest first. Only requests of status 200 count.",
        files={"access.log": text},
        expected={"slow.txt": "".join(f"{page}\n" for page in ranked), "access.log": text},
        solution=(f"{mean} access.log | {rest}",),
        near_misses=(
            f"{mean.replace('$4 == 200 ', '')} access.log | {rest}",
            f"grep 200 access.log | {mean.replace('$4 == 200 ', '')} | {rest}",
            f"{mean} access.log | {rest.replace('1gr', '1g')}",
            f"{mean} access.log | {rest.replace(f'-n {top}', f'-n {top - 1}')}",
            f"{mean} access.log | {rest.replace(f'-n {top}', f'-n {top + 1}')}",
            f"{mean} access.log | {rest.replace('-f2', '-f1')}",
            f"{mean.replace('$4 == 200', '$4 >= 400')} access.log | {rest}",
        ),
    )


def open_sessions(rng: random.Random, level: int) -> TerminalTask:
    """Find the users who logged in and did not log out, in lines that are not sorted by time."""
    users = rng.sample(NAMES, 6 + 4 * level)
    events = []
    still = []
    for number, user in enumerate(users):
        minutes = sorted(rng.sample(range(12 * 1440), 5))
        count = 2 + number % 3 if number > 2 else (1, 4, 3)[number]
        kinds = ["login", "logout", "login", "logout", "login"][:count]
        events += [(minute, user, kind) for minute, kind in zip(minutes, kinds, strict=False)]
        still += [user] if kinds[-1] == "login" else []
    lines = [
        f"day {1 + minute // 1440} {minute // 60 % 24:02d}:{minute % 60:02d} {user} {kind}"
        for minute, user, kind in sorted(events)
    ]
    rng.shuffle(lines)
    text = "".join(f"{line}\n" for line in lines)
    last = "sort -k2,2n -k3,3 sessions.log | awk '{ last[$4] = $5 } "
    last += 'END { for (u in last) if (last[u] == "login") print u }\''
    return TerminalTask(
        instruction="Each line of sessions.log has a day, a time, a user, and login or logout; the lines are in no "
        "order. Write the users who are still logged in after the last event to online.txt, one per line, in "
        "alphabetical order.",
        files={"sessions.log": text},
        expected={"online.txt": "".join(f"{user}\n" for user in sorted(still)), "sessions.log": text},
        solution=(f"{last} | sort > online.txt",),
        near_misses=(
            f"{last.replace('sort -k2,2n -k3,3 sessions.log', 'tac sessions.log | sort -s -k5,5')} | sort > online.txt",
            f"{last.replace('-k2,2n -k3,3', '-k2,2nr -k3,3r')} | sort > online.txt",
            f"{last.replace('-k2,2n ', '')} | sort > online.txt",
            f"{last.replace('-k2,2n', '-k2,2')} | sort > online.txt",
            f"{last} | sort -r > online.txt; echo >> online.txt",
            f"{last.replace('== ' + chr(34) + 'login', '== ' + chr(34) + 'logout')} | sort > online.txt",
            "grep login sessions.log | cut -d' ' -f4 | sort -u > online.txt",
            f"{last} | sort | head -n -1 > online.txt",
            f"{last} | sort | sed 's/$/ login/' > online.txt",
        ),
    )


def window_of_time(rng: random.Random, level: int) -> TerminalTask:
    """Collect the lines of a window of time from several files, in the order of time."""
    hosts = rng.sample(WORDS, 1 + level)
    seconds = set(rng.sample(range(1, 3599), 25 * level))
    first, last = sorted(seconds)[len(seconds) // 4], sorted(seconds)[len(seconds) * 3 // 4]
    seconds |= {first - 1, last + 1}  # just outside
    files: dict[str, list[str]] = {host: [] for host in hosts}
    chosen = []
    for number, second in enumerate(sorted(seconds)):
        host = hosts[number % len(hosts)]
        time = f"09:{second // 60:02d}:{second % 60:02d}"
        line = f"{time} {host} job {rng.randint(1, 99)} {rng.choice(['done', 'failed', 'at 09:30:00'])}\n"
        files[host].append(line)
        chosen += [line] if first <= second <= last else []

    def clock(second: int) -> str:
        return f"09:{second // 60:02d}:{second % 60:02d}"

    texts = {f"logs/{host}.log": "".join(lines) for host, lines in files.items()}
    pick = f'awk \'$1 >= "{clock(first)}" && $1 <= "{clock(last)}"\''
    minutes = f'awk \'$1 >= "{clock(first)[:5]}" && substr($1, 1, 5) <= "{clock(last)[:5]}"\''
    return TerminalTask(
        instruction="The files in the folder logs have one line per event, which begins with a time. Write all lines "
        f"from {clock(first)} to {clock(last)}, both included, of all files to window.log, in the order of time.",
        files=texts,
        expected={"window.log": "".join(chosen), **texts},
        solution=(f"cat logs/*.log | {pick} | sort > window.log",),
        near_misses=(
            f"cat logs/*.log | {pick.replace('<=', '<')} | sort > window.log",
            f"cat logs/*.log | {pick.replace('>=', '>')} | sort > window.log",
            f"cat logs/*.log | {pick} | sort -r > window.log",
            f"cat logs/{hosts[0]}.log | {pick} | sort > window.log",
            f"cat logs/*.log | {minutes} | sort > window.log",
            f"cat logs/*.log | {pick} | sort -k2 > window.log",
            f"grep . logs/*.log | {pick.replace('$1', 'substr($1, index($1, ' + chr(34) + ':' + chr(34) + ') + 1)')} | "
            "sort -t: -k2 > window.log",
        ),
    )


PROGRAMS = ("awk", "gzip")
TEMPLATES = (errors_per_service, slowest_requests, open_sessions, window_of_time)
