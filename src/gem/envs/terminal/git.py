"""terminal:Git — tasks in a git repository: lost commits, bisection, squashing, merging.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gem.envs.terminal.task import HiddenCheck, TerminalTask
from gem.envs.terminal.text import NAMES, WORDS
from gem.sandbox.machine import EPOCH_S

Contents = Mapping[str, str]  # of the files of a commit, by path


class Commit(NamedTuple):
    """A commit of one parent. ``files`` has all files."""

    title: str
    files: Contents


def repository(branches: Mapping[str, Sequence[Commit]], *, then: str = "") -> str:
    """Return bash source that makes the repository ``repo``, with the branch main checked out.

    Args:
        branches: the commits of each branch, oldest first. Branches share the commits that they begin with.
        then: bash source to run in the repository afterwards.
    """
    lines: list[str] = []
    marks: dict[tuple[str, ...], int] = {}
    for branch, commits in branches.items():
        path: tuple[str, ...] = ()
        for commit in commits:
            parent, path = path, (*path, commit.title)
            if path not in marks:
                marks[path] = len(marks) + 1
                who = f"Ada Lee <ada@example.org> {EPOCH_S - 90_000 + 60 * marks[path]} +0000"
                lines += [
                    f"commit refs/heads/{branch}",
                    f"mark :{marks[path]}",
                    f"committer {who}",
                    "data <<END_OF_TEXT",
                ]
                lines += [commit.title, "END_OF_TEXT"] + ([f"from :{marks[parent]}"] if parent else []) + ["deleteall"]
                for name, text in commit.files.items():
                    lines += [f"M 100644 inline {name}", "data <<END_OF_TEXT", f"{text}END_OF_TEXT"]
        lines += [f"reset refs/heads/{branch}", f"from :{marks[path]}", ""]
    return "\n".join(
        (
            "git init -q repo; cd repo; git symbolic-ref HEAD refs/heads/main",
            "git config user.name Ada; git config user.email ada@example.org; git config advice.detachedHead false",
            "git fast-import --quiet <<'END_OF_STREAM'",
            *lines,
            "END_OF_STREAM",
            "git reset -q --hard",
            then,
            "git update-index -q --refresh; cd ..",
        )
    )


def history_check(
    branches: Mapping[str, Sequence[str]], files: Mapping[str, Contents], name: str = "repo"
) -> HiddenCheck:
    """Return a check of the subjects of branches, oldest first, and of the files in the last commit of branches.

    It reads only the objects and branches of the repository, none of its settings.
    """
    git = "git --no-replace-objects --git-dir=repo/.git -c core.pager=cat -c gc.auto=0"
    script, shown = ["set -e"], ""
    for branch, subjects in branches.items():
        script.append(f"{git} log --first-parent --reverse --format=%s refs/heads/{branch} --")
        shown += "".join(f"{subject}\n" for subject in subjects)
    for branch, contents in files.items():
        script.append(f"{git} grep -h --full-name --heading '' refs/heads/{branch} --")
        for path in sorted(contents):
            shown += f"refs/heads/{branch}:{path}\n{contents[path]}"
    return HiddenCheck(
        name=f"the history of {name}",
        arguments=("/bin/sh", "-c", "\n".join(script)),
        stdout=shown,
        only=tuple(f"repo/.git/{part}" for part in ("HEAD", "objects", "refs", "packed-refs")),
    )


def _grow(rng: random.Random, count: int, *, start: Contents | None = None, verb: str = "Add") -> list[Commit]:
    """Return commits that each add a line to a file."""
    files = dict(start or {"README": "A list of things.\n"})
    commits = [Commit("First commit", dict(files))] if start is None else []
    for word in rng.sample(WORDS, count):
        path = f"{rng.choice(NAMES[:6])}.txt"
        files[path] = files.get(path, "") + f"{word} {rng.randint(1, 999)}\n"
        commits.append(Commit(f"{verb} {word}", dict(files)))
    return commits


def recover_a_lost_commit(rng: random.Random, level: int) -> TerminalTask:
    """Find a commit that no branch has any more, in the reflog."""
    main = _grow(rng, 4 + 2 * level)
    keep = len(main) - 2 - level
    lost = [*main[:keep], *_grow(rng, 2, start=main[keep - 1].files, verb="Write")]
    decoy = [*main[:keep], *_grow(rng, 1, start=main[keep - 1].files, verb="Draft")]
    then = "git reset -q --hard lost; git reset -q --hard decoy; git reset -q --hard ORIG_HEAD~1; " + (
        "git reset -q --hard refs/remotes/main; git branch -q -D lost decoy; git update-ref -d refs/remotes/main; "
        "git update-ref -d ORIG_HEAD"
    )
    subject = lost[-1].title
    subjects = [commit.title for commit in main]
    find = (
        "$(git log -g --format=%h | while read c; do git log -1 --format='%h %s' $c; done | "
        f"grep '{subject}' | head -1 | cut -d' ' -f1)"
    )
    return TerminalTask(
        instruction=f"In the repository repo, the commit '{subject}' was dropped from the branch main with git "
        f"reset, and "
        "no branch has it any more. Make a branch rescued that ends with this commit. Leave main as it is.",
        files={},
        setup=repository(
            {"main": main, "lost": lost, "decoy": decoy}, then=f"git update-ref refs/remotes/main main; {then}"
        ),
        expected={},
        checks=(
            history_check(
                {"rescued": [commit.title for commit in lost], "main": subjects},
                {"rescued": lost[-1].files, "main": main[-1].files},
            ),
        ),
        solution=(f"cd repo; git branch rescued {find}",),
        near_misses=(
            f"cd repo; git branch rescued {find}~1",
            "cd repo; git branch rescued",
            f"cd repo; git reset --hard {find}",
            f"cd repo; git branch rescued {find}; git reset --hard rescued",
            f"cd repo; git branch restored {find}",
            f"cd repo; git checkout -q -b rescued; git cherry-pick {find} || git cherry-pick --skip",
            f"cd repo; git branch rescued {find.replace(subject, decoy[-1].title)}",
            f"cd repo; git tag rescued {find}",
        ),
    )


def find_the_first_bad_commit(rng: random.Random, level: int) -> TerminalTask:
    """Find the commit since which a script prints another number."""
    count = 12 * level
    bad = rng.randint(3, count - 3)
    numbers = {f"part{i}.txt": rng.randint(10, 99) for i in range(6)}
    script = 'n=0; for f in part*.txt; do n=$((n + $(cat "$f"))); done; echo $n\n'
    files = {path: f"{n}\n" for path, n in numbers.items()} | {"total.sh": script}
    commits = [Commit("First commit", dict(files))]
    for number in range(1, count):
        a, b = rng.sample(sorted(numbers), 2)
        shift = rng.randint(1, 9)
        numbers[a] += shift
        numbers[b] -= shift
        if number == bad:
            numbers[b] += 1
        files = files | {path: f"{n}\n" for path, n in numbers.items()}
        word = rng.choice(WORDS)
        commits.append(Commit(f"Change {number}: {word}", dict(files)))
    good = sum(int(commits[0].files[f"part{i}.txt"]) for i in range(6))
    loop = (
        f'cd repo; for c in $(git rev-list --reverse main); do git checkout -q $c; [ "$(sh total.sh)" = {good} ] || '
        f"break; "
        "done; git log -1 --format=%s > ../first-bad.txt; git checkout -q main"
    )
    expected = {"first-bad.txt": f"{commits[bad].title}\n", "repo/.git/HEAD": "ref: refs/heads/main\n"}
    return TerminalTask(
        instruction=f"In the repository repo, sh total.sh printed {good} in the first commit and prints another number "
        "now. Write the subject (the first line of the message) of the first commit with the wrong number to "
        "first-bad.txt, beside the folder repo. The branch main must be checked out at the end, and unchanged.",
        files={},
        setup=repository({"main": commits}),
        expected=expected,
        checks=(history_check({"main": [commit.title for commit in commits]}, {"main": commits[-1].files}),),
        solution=(loop,),
        near_misses=(
            loop.replace("git log -1 --format=%s", "git log -1 --format=%h"),
            loop.replace("git log -1 ", "git log -1 --skip=1 "),
            loop.replace("; git checkout -q main", ""),
            loop.replace("../first-bad.txt", "first-bad.txt"),
            "cd repo; git log -1 --format=%s > ../first-bad.txt",
            loop + "; git commit -q --allow-empty -m 'Mark the bad commit'",
            loop.replace("--reverse main", "--reverse --skip=0 main | tail -n 2"),
        ),
    )


def squash_commits(rng: random.Random, level: int) -> TerminalTask:
    """Make one commit of the last ones."""
    base = _grow(rng, 3 + level)
    work = _grow(rng, 2 + level, start=base[-1].files, verb="wip:")
    message = f"Describe {rng.choice(WORDS)}s"
    count = len(work)
    subjects = [commit.title for commit in base]
    squash = f"cd repo; git reset -q --soft HEAD~{{}}; git commit -q -m '{message}'"
    return TerminalTask(
        instruction="In the repository repo, the last commits of main have messages that begin with 'wip:'. Replace "
        "them "
        f"by a single commit with the message '{message}' and the same files. Leave the commits before them as they "
        f"are.",
        files={},
        setup=repository({"main": [*base, *work]}),
        expected={},
        checks=(history_check({"main": [*subjects, message]}, {"main": work[-1].files}),),
        solution=(squash.format(count),),
        near_misses=(
            squash.format(count - 1),
            squash.format(count + 1),
            squash.format(count).replace("--soft", "--hard").replace("commit", "commit --allow-empty"),
            squash.format(count).replace(message, work[-1].title),
            f"cd repo; git commit -q --amend -m '{message}'",
            f"cd repo; git checkout -q -b squashed; {squash.format(count)[9:]}",
            f"cd repo; git commit -q --allow-empty -m '{message}'",
        ),
    )


def move_commits_to_a_branch(rng: random.Random, level: int) -> TerminalTask:
    """Move the last commits from main to a new branch."""
    commits = _grow(rng, 5 + 2 * level)
    count = 1 + level
    branch = f"feature-{rng.choice(WORDS)}"
    subjects = [commit.title for commit in commits]
    kept = len(commits) - count
    move = f"cd repo; git branch {branch}; git reset -q --hard HEAD~{count}"
    return TerminalTask(
        instruction=f"In the repository repo, the last {count} commits of main should have been made on a branch. Make "
        f"the branch {branch}, which ends with them, and take them off main. The working files must be those of main, "
        "which is checked out.",
        files={},
        setup=repository({"main": commits}),
        expected={f"repo/{path}": text for path, text in commits[kept - 1].files.items()}
        | {"repo/.git/HEAD": "ref: refs/heads/main\n"},
        checks=(
            history_check(
                {"main": subjects[:kept], branch: subjects},
                {"main": commits[kept - 1].files, branch: commits[-1].files},
            ),
        ),
        solution=(move,),
        near_misses=(
            f"cd repo; git branch {branch}",
            move.replace(f"HEAD~{count}", f"HEAD~{count - 1}") if count > 1 else f"cd repo; git checkout -b {branch}",
            move.replace("--hard", "--soft"),
            move.replace(f"git branch {branch}; ", ""),
            f"{move}; git checkout -q {branch}",
            f"cd repo; git reset -q --hard HEAD~{count}; git branch {branch}",
            f"cd repo; git branch {branch}; git revert --no-edit HEAD~{count}..HEAD",
        ),
    )


def merge_with_a_conflict(rng: random.Random, level: int) -> TerminalTask:
    """Merge a branch that changed the same lines as main."""
    keys = rng.sample(WORDS, 6 + 6 * level)
    spaced = [line for key in keys for line in (key, f"# about {key}", "#", "#")]

    def settings(values: Mapping[str, int]) -> str:
        return "".join(f"{line}={values[line]}\n" if line in values else f"{line}\n" for line in spaced)

    start = {key: rng.randint(1, 99) for key in keys}
    both, ours, theirs = keys[:level], keys[level : level + 2], keys[level + 2 : level + 4]
    main = start | {key: start[key] + 100 for key in (*both, *ours)}
    other = start | {key: start[key] + 200 for key in (*both, *theirs)}
    merged = main | {key: other[key] for key in (*both, *theirs)}
    branch = rng.choice(NAMES)
    first = Commit("First commit", {"settings.txt": settings(start)})
    on_main = Commit("Change settings", {"settings.txt": settings(main), "NEWS": "Settings changed.\n"})
    on_other = Commit(f"Settings of {branch}", {"settings.txt": settings(other)})
    merge = f"cd repo; git merge -q -X theirs -m 'Merge {branch}' {branch}"
    check = history_check(
        {"main": [first.title, on_main.title, f"Merge {branch}"], branch: [first.title, on_other.title]},
        {"main": {"settings.txt": settings(merged), "NEWS": "Settings changed.\n"}},
    )
    second = "\ngit --no-replace-objects --git-dir=repo/.git log -1 --format=%s refs/heads/main^2 --"
    arguments = (*check.arguments[:2], check.arguments[2] + second)
    return TerminalTask(
        instruction=f"In the repository repo, merge the branch {branch} into main with a merge commit, whose message "
        f"is "
        f"'Merge {branch}'. Where both changed the same setting in settings.txt, take the value of {branch}; keep all "
        "other changes of both branches.",
        files={},
        setup=repository({"main": [first, on_main], branch: [first, on_other]}),
        expected={},
        checks=(
            HiddenCheck(
                name=check.name,
                arguments=arguments,
                stdout=f"{check.stdout}{on_other.title}\n",
                only=check.only,
            ),
        ),
        solution=(merge,),
        near_misses=(
            merge.replace("theirs", "ours"),
            merge.replace("-X theirs", "-s ours"),
            merge.replace("-X theirs", "--squash -X theirs").replace(f"-m 'Merge {branch}' ", "")
            + f"; git commit -q -m 'Merge {branch}'",
            merge.replace(f"-m 'Merge {branch}'", "-m Merged"),
            f"cd repo; git merge -q -m 'Merge {branch}' {branch}; git checkout {branch} -- settings.txt; "
            f"git commit -q -m 'Merge {branch}'",
            f"cd repo; git checkout -q {branch}; git merge -q -X ours -m 'Merge {branch}' main",
            f"cd repo; git rebase -q -X ours {branch}",
        ),
    )


PROGRAMS = ("git",)
TEMPLATES = (
    recover_a_lost_commit,
    find_the_first_bad_commit,
    squash_commits,
    move_commits_to_a_branch,
    merge_with_a_conflict,
)
