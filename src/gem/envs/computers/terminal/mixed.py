"""terminal:Mixed — tasks of several steps: archives, logs, databases, repositories and scripts in one.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter

from gem.envs.computers.task import HiddenCheck, TerminalTask
from gem.envs.computers.terminal.archive import tar
from gem.envs.computers.terminal.data import SQL, database_check
from gem.envs.computers.terminal.git import Commit, commit_ids, history_check, repository, titles
from gem.envs.computers.terminal.text import NAMES, WORDS
from gem.sandbox.machine import FileEntry


def logs_into_a_database(rng: random.Random, level: int) -> TerminalTask:
    """Unpack logs, count them, and store the counts in a database."""
    services = rng.sample(WORDS, 3 + level)
    counts: Counter[tuple[str, str]] = Counter()
    content = {}
    for number in range(2 + level):
        lines = []
        for _ in range(12 * level):
            service, kind = rng.choice(services), rng.choice(["ok", "ok", "failed", "slow"])
            lines.append(f"{rng.randint(0, 23):02d}:00 {service} {kind}\n")
            counts[service, kind] += 1
        content[f"logs/day{number}.log"] = "".join(lines).encode()
    content["logs/notes.txt"] = f"12:00 {services[0]} failed\n".encode()
    packed = FileEntry("logs.tar.gz", gzip.compress(tar(content), mtime=0))
    shown = sorted((service, kind, count) for (service, kind), count in counts.items() if kind != "ok")
    query = (
        "select service, kind, n, typeof(n), typeof(service), typeof(kind) from counts order by service, kind; "
        "select lower(type) from pragma_table_info('counts') where lower(name) in ('service', 'kind'); "
        "select type from sqlite_master where lower(name) = 'counts'"
    )
    table = "create table counts (service text, kind text, n integer);"

    def script(pick: str = '$3 != "ok"', files: str = "logs/*.log", table: str = table) -> str:
        insert = f"awk '{pick} {{ print $2, $3 }}' {files} | sort | uniq -c | awk '{{ print $2 \",\" $3 \",\" $1 }}'"
        return (
            f"tar xzf logs.tar.gz; {insert} > c.csv; {SQL} counts.db '{table}' '.import --csv c.csv counts'; rm c.csv"
        )

    return TerminalTask(
        instruction="logs.tar.gz has the folder logs. In its .log files, each line has a time, a service and a result. "
        "Create the SQLite database counts.db with a table counts that has the columns service (text), kind (text) and "
        "n (integer): one row for each service and each of its results except ok, and how often that occurs in all "
        ".log files together.",
        files={"logs.tar.gz": packed},
        expected={},
        checks=(
            database_check(
                "counts.db",
                query,
                "".join(f"{service}|{kind}|{n}|integer|text|text\n" for service, kind, n in shown)
                + "text\ntext\ntable\n",
            ),
        ),
        solution=(script(),),
        near_misses=(
            script(pick="1"),
            script(files="logs/*"),
            script(files="logs/day0.log"),
            script(table=table.replace("n integer", "n text")),
            script(table=table.replace(" text", "")),
            script(pick='$3 == "failed"'),
            script().replace("counts.db", "count.db"),
            f"{script()}; {SQL} counts.db 'alter table counts rename to c' 'create view counts as select * from c'",
            script().replace("| uniq -c", "| uniq | sed 's/^/1 /'"),
        ),
    )


def revert_and_build(rng: random.Random, level: int) -> TerminalTask:
    """Find the commit that broke a build, revert it, and build."""
    parts = rng.sample(NAMES, 3 + level)
    texts = {f"{part}.txt": f"{rng.choice(WORDS)} {rng.randint(1, 99)}\n" for part in parts}
    rule = f"page.txt: {' '.join(texts)}\n\tcat $^ > $@\n"
    files = {"Makefile": rule, ".gitignore": "page.txt\n", **texts}
    commits = [Commit("First commit", dict(files))]
    bad = rng.randint(1, 1 + level)
    broken = rule.replace("cat $^", f"grep {rng.choice(WORDS)}-x $^")
    for number in range(1, 3 + 2 * level):
        if number == bad:
            files["Makefile"] = broken
            commits.append(Commit("Tidy up the Makefile", dict(files)))
        else:
            path = rng.choice(sorted(texts))
            files[path] += f"{rng.choice(WORDS)} {rng.randint(100, 999)}\n"
            commits.append(Commit(f"Change {number}", dict(files)))
    files["Makefile"] = rule
    kept = commit_ids({"main": commits})[titles(commits)]
    broke = commit_ids({"main": commits})[titles(commits[: bad + 1])]
    revert = f'Revert "Tidy up the Makefile"\n\nThis reverts commit {broke}.'
    page = "".join(files[path] for path in texts)
    find = "$(git log --format='%h %s' | grep Tidy | cut -d' ' -f1)"
    solve = f"cd repo; git revert --no-edit {find}; make"
    return TerminalTask(
        instruction="In the repository repo, make fails since one of the commits on main. Revert this commit with git "
        "revert, keeping the message that git proposes, and run make, so that repo/page.txt is there. Keep all other "
        "changes, and do not change the history.",
        files={},
        setup=repository({"main": commits}),
        expected={"repo/page.txt": page, **{f"repo/{path}": text for path, text in files.items()}},
        checks=(history_check({"main": [*titles(commits), revert]}, {"main": files}, same={"main~1": kept}),),
        solution=(solve,),
        near_misses=(
            f"cd repo; git revert --no-edit {find}",
            f"cd repo; git reset -q --hard {find}~1; make",
            f"cd repo; cat {' '.join(texts)} > page.txt",
            f"cd repo; git checkout -q {find}~1 -- Makefile; git commit -qm Fix; make",
            f"cd repo; git checkout -q {find}~1 -- Makefile; make",
            f"cd repo; git revert --no-commit {find}; make",
            f"{solve}; git commit -q --allow-empty -m Done",
            f"{solve}; git rebase -q --root --no-ff",
            f"{solve}; git commit -q --amend -m 'Revert \"Tidy up the Makefile\"'",
            f"{solve}; echo '# make works again' >> Makefile",
            f"cd repo; git checkout -q -b fix; {solve[9:]}",
        ),
    )


def move_by_a_list(rng: random.Random, level: int) -> TerminalTask:
    """Move files where a JSON file says, pack the result, and write a script that lists it."""
    folders = rng.sample(WORDS, 2 + level)
    names = rng.sample(NAMES, 4 + 2 * level)
    texts = {f"{name}.txt": f"{rng.choice(WORDS)} {rng.randint(1, 999)}\n" for name in names}
    places = {name: rng.choice(folders) for name in texts if name != f"{names[0]}.txt"}
    moved = {f"store/{folder}/{name}": texts[name] for name, folder in places.items()}
    listing = "".join(f"{path} {len(text)}\n" for path, text in sorted(moved.items()))
    hidden = {f"store/{folders[0]}/a  b.txt": "abc", "store/zz/deep/x.txt": "12345678\n"}
    hidden |= {"store/top": "1\n", "store/zz/.x": "12\n"}
    every = moved | hidden
    full = "".join(f"{path} {len(text)}\n" for path, text in sorted(every.items()))
    select = f'{SQL} -separator "/" :memory: "select value, key from json_each(readfile(\'places.json\'))"'
    move = f'{select} | while read p; do mkdir -p "store/${{p%/*}}"; mv "inbox/${{p#*/}}" "store/$p"; done'
    script = "find store -type f -printf '%p %s\\\\n' | LC_ALL=C sort"
    write = f'printf "{script}\\n" > list.sh'.replace("%p %s", "%%p %%s")
    run = "bash list.sh > list.txt"
    return TerminalTask(
        instruction="places.json maps names of files in the folder inbox to folders. Move each of these files to the "
        "folder of that name in the folder store; leave the others in inbox. Then write list.sh: bash list.sh prints "
        "the path and the size in bytes of every file in store and the folders in it, such as store/x/y.txt 12, one "
        "per line, sorted by path, also for files that are added later and for names with spaces. Write its output to "
        "list.txt.",
        files={f"inbox/{name}": text for name, text in texts.items()} | {"places.json": json.dumps(places) + "\n"},
        expected={**moved, f"inbox/{names[0]}.txt": texts[f"{names[0]}.txt"], "list.txt": listing},
        complete=("inbox", "store"),
        checks=(HiddenCheck(name="list.sh", arguments=("/bin/bash", "list.sh"), files=hidden, stdout=full),),
        solution=(move, write, run),
        near_misses=(
            f"{move}; {write}",
            f"{move}; {write}; bash list.sh > list.txt; cp list.txt store",
            f"{move.replace('mv', 'cp')}; {write}; {run}",
            f"{move}; {write.replace('sort', 'sort -r')}; {run}",
            f"{move}; echo 'cat list.txt' > list.sh; find store -type f -printf '%p %s\\n' | LC_ALL=C sort > list.txt",
            f"{move}; echo 'for f in $(find store -type f | sort); do echo $f $(wc -c < $f); done' > list.sh; {run}",
            f'{move}; echo \'for f in store/*/*; do echo "$f $(stat -c %s "$f")"; done\' > list.sh; {run}',
            f"{move}; {write.replace('-type f', '-mindepth 2 -type f')}; {run}",
            f"{move}; {write.replace('-type f', '-type f -name *.txt')}; {run}",
            f"{move}; {write.replace('-type f', '-type f ! -name .*')}; {run}",
        ),
    )


PROGRAMS = ("awk", "find", "git", "make", "sqlite3", "tar")
TEMPLATES = (logs_into_a_database, revert_and_build, move_by_a_list)
