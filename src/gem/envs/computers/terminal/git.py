"""terminal:Git — tasks in a git repository: lost commits, bisection, squashing, merging.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gem.envs.computers.task import HiddenCheck, TerminalTask, shell_check
from gem.envs.computers.terminal.text import NAMES, WORDS
from gem.sandbox.machine import EPOCH_S

Contents = Mapping[str, str]  # of the files of a commit, by path
Titles = tuple[str, ...]  # of the commits of a branch, oldest first


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
    marks: dict[Titles, int] = {}
    for branch, path, commit, who in _commits(branches):
        marks[path] = len(marks) + 1
        lines += [f"commit refs/heads/{branch}", f"mark :{marks[path]}", f"committer {who}", "data <<END_OF_TEXT"]
        lines += [commit.title, "END_OF_TEXT"] + ([f"from :{marks[path[:-1]]}"] if path[:-1] else []) + ["deleteall"]
        for name, text in commit.files.items():
            lines += [f"M 100644 inline {name}", "data <<END_OF_TEXT", f"{text}END_OF_TEXT"]
    for branch, commits in branches.items():
        lines += [f"reset refs/heads/{branch}", f"from :{marks[titles(commits)]}", ""]
    return "\n".join(
        (
            "git init -q -b main --template= repo; cd repo",
            "cat >> .git/config <<'END_OF_CONFIG'",
            "[user]\nname = Ada\nemail = ada@example.org\n[advice]\ndetachedHead = false\nEND_OF_CONFIG",
            "git fast-import --quiet <<'END_OF_STREAM'",
            *lines,
            "END_OF_STREAM",
            "git reset -q --hard",
            then,
            "git update-index -q --refresh; cd ..",
        )
    )


def commit_ids(branches: Mapping[str, Sequence[Commit]]) -> dict[Titles, str]:
    """Return the ids of the commits that repository() makes, by the titles up to them. Files are in no folders."""
    ids: dict[Titles, str] = {}
    for _, path, commit, who in _commits(branches):
        blobs = {name.encode(): _object("blob", text.encode()) for name, text in commit.files.items()}
        tree = _object("tree", b"".join(b"100644 %b\0%b" % (name, blobs[name].digest()) for name in sorted(blobs)))
        parent = f"parent {ids[path[:-1]]}\n" if path[:-1] else ""
        text = f"tree {tree.hexdigest()}\n{parent}author {who}\ncommitter {who}\n\n{commit.title}\n"
        ids[path] = _object("commit", text.encode()).hexdigest()
    return ids


def titles(commits: Sequence[Commit]) -> Titles:
    return tuple(commit.title for commit in commits)


def _commits(branches: Mapping[str, Sequence[Commit]]) -> Iterator[tuple[str, Titles, Commit, str]]:
    """Yield every commit once: its branch, the titles up to it, the commit, and who made it when."""
    made: set[Titles] = set()
    for branch, commits in branches.items():
        for number, commit in enumerate(commits, 1):
            if (path := titles(commits[:number])) not in made:
                made.add(path)
                yield branch, path, commit, f"Ada Lee <ada@example.org> {EPOCH_S - 90_000 + 60 * len(made)} +0000"


def _object(kind: str, content: bytes) -> Any:
    """Return the hash of an object of git."""
    return hashlib.sha1(b"%b %d\0%b" % (kind.encode(), len(content), content), usedforsecurity=False)


def history_check(
    branches: Mapping[str, Sequence[str]], files: Mapping[str, Contents], *, same: Mapping[str, str]
) -> HiddenCheck:
    """Return a check of the history of ``repo``.

    It reads only the objects, the branches and the index of the repository, none of its settings. The index must be
    that of the commit that is checked out.

    Args:
        branches: messages of all commits of each branch, oldest first, with a blank line after the subject if there is
            more.
        files: of the last commit of branches. Files are in no folders.
        same: ids of commits that must not have changed, by a revision such as "main~1".
    """
    git = "git --no-replace-objects --git-dir=repo/.git -c core.pager=cat -c gc.auto=0"
    script, shown = ["set -e", f"{git} diff-index --cached --quiet HEAD --"], ""
    for branch, messages in branches.items():
        script.append(f"{git} log --reverse --format=%s%n%b refs/heads/{branch} --")
        shown += "".join(message.replace("\n\n", "\n", 1) + "\n\n" for message in messages)
    for branch, contents in files.items():
        script.append(f"{git} ls-tree -r refs/heads/{branch} --")
        for path in sorted(contents):
            shown += f"100644 blob {_object('blob', contents[path].encode()).hexdigest()}\t{path}\n"
    for revision, commit in same.items():
        script.append(f"{git} log -1 --format=%H refs/heads/{revision} --")
        shown += f"{commit}\n"
    read = tuple(f"repo/.git/{part}" for part in ("HEAD", "index", "objects", "refs", "packed-refs"))
    return shell_check("the history of repo", "\n".join(script), stdout=shown, only=read)


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
    made = {"main": main, "lost": lost, "decoy": decoy}
    ids = commit_ids(made)
    find = (
        "$(git log -g --format=%h | while read c; do git log -1 --format='%h %s' $c; done | "
        f"grep '{subject}' | head -1 | cut -d' ' -f1)"
    )
    return TerminalTask(
        instruction=f"In the repository repo, the commit '{subject}' was dropped from the branch main with git reset, "
        "and no branch has it any more. Make a branch rescued that ends with this commit. Leave main as it is.",
        files={},
        setup=repository(made, then=f"git update-ref refs/remotes/main main; {then}"),
        expected={},
        checks=(history_check({}, {}, same={"rescued": ids[titles(lost)], "main": ids[titles(main)]}),),
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
            f"cd repo; git branch rescued {find}; git rm -q --cached README",
            f"cd repo; c={find}; git checkout -q -b rescued $c~2; git cherry-pick $c~2..$c; git checkout -q main",
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
    expected |= {f"repo/{path}": text for path, text in files.items()}
    return TerminalTask(
        instruction=f"In the repository repo, sh total.sh printed {good} in the first commit and prints another number "
        "now. Write the subject (the first line of the message) of the first commit with the wrong number to "
        "first-bad.txt, beside the folder repo. The branch main must be checked out at the end, and unchanged.",
        files={},
        setup=repository({"main": commits}),
        expected=expected,
        checks=(history_check({}, {}, same={"main": commit_ids({"main": commits})[titles(commits)]}),),
        solution=(loop,),
        near_misses=(
            loop.replace("git log -1 --format=%s", "git log -1 --format=%h"),
            loop.replace("git log -1 ", "git log -1 --skip=1 "),
            loop.replace("; git checkout -q main", ""),
            loop.replace("git checkout -q main", "git symbolic-ref HEAD refs/heads/main"),
            f"{loop}; git checkout -q HEAD~{count - bad} -- .",
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
    kept = commit_ids({"main": base})[titles(base)]
    squash = f"cd repo; git reset -q --soft HEAD~{{}}; git commit -q -m '{message}'"
    return TerminalTask(
        instruction="In the repository repo, the last commits of main have messages that begin with 'wip:'. Replace "
        f"them by a single commit with the message '{message}' and the same files. Leave the commits before them as "
        "they are.",
        files={},
        setup=repository({"main": [*base, *work]}),
        expected={f"repo/{path}": text for path, text in work[-1].files.items()},
        checks=(history_check({"main": [*titles(base), message]}, {"main": work[-1].files}, same={"main~1": kept}),),
        solution=(squash.format(count),),
        near_misses=(
            squash.format(count - 1),
            squash.format(count + 1),
            squash.format(count).replace("--soft", "--hard").replace("commit", "commit --allow-empty"),
            squash.format(count).replace(message, work[-1].title),
            f"cd repo; git commit -q --amend -m '{message}'",
            f"cd repo; git checkout -q -b squashed; {squash.format(count)[9:]}",
            f"cd repo; git commit -q --allow-empty -m '{message}'",
            f"{squash.format(count)}; git rebase -q --root --no-ff",
            squash.format(count) + " -m 'wip: all of it'",
            f"cd repo; git checkout -q -b w; git branch -f main HEAD~{count}; git checkout -q main; "
            f"git merge -q --no-ff -m '{message}' w",
            squash.format(count).replace("git commit", "> NOTES; git add NOTES; git commit"),
            squash.format(count).replace("git commit", "git update-index --chmod=+x README; git commit"),
            f"{squash.format(count)}; rm README",
        ),
    )


def move_commits_to_a_branch(rng: random.Random, level: int) -> TerminalTask:
    """Move the last commits from main to a new branch."""
    commits = _grow(rng, 5 + 2 * level)
    count = 1 + level
    branch = f"feature-{rng.choice(WORDS)}"
    kept, ids = commits[:-count], commit_ids({"main": commits})
    added = sorted(f"repo/{path}" for path in set(commits[-1].files) - set(kept[-1].files))
    move = f"cd repo; git branch {branch}; git reset -q --hard HEAD~{count}"
    return TerminalTask(
        instruction=f"In the repository repo, the last {count} commits of main should have been made on a branch. Make "
        f"the branch {branch}, which ends with them, and take them off main. The working files must be those of main, "
        "which is checked out.",
        files={},
        setup=repository({"main": commits}),
        expected={f"repo/{path}": text for path, text in kept[-1].files.items()}
        | dict.fromkeys(added)
        | {"repo/.git/HEAD": "ref: refs/heads/main\n"},
        complete=("repo",),
        checks=(history_check({}, {}, same={"main": ids[titles(kept)], branch: ids[titles(commits)]}),),
        solution=(move,),
        near_misses=(
            f"cd repo; git branch {branch}",
            move.replace(f"HEAD~{count}", f"HEAD~{count - 1}") if count > 1 else f"cd repo; git checkout -b {branch}",
            move.replace("--hard", "--soft"),
            move.replace(f"git branch {branch}; ", ""),
            f"{move}; git checkout -q {branch}",
            f"{move}; git show {branch}:README > notes.txt",
            f"{move}; git rm -q --cached README",
            f"cd repo; git reset -q --hard HEAD~{count}; git branch {branch}",
            f"cd repo; git branch {branch}; git revert --no-edit HEAD~{count}..HEAD",
            *([move.replace("--hard", "--mixed") + "; git checkout -q -- ."] if added else []),
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
    made = {"main": [first, on_main], branch: [first, on_other]}
    ids = commit_ids(made)
    check = history_check(
        {"main": [first.title, on_main.title, on_other.title, f"Merge {branch}"]},
        {"main": {"settings.txt": settings(merged), "NEWS": "Settings changed.\n"}},
        same={
            "main^1": ids[titles(made["main"])],
            "main^2": ids[titles(made[branch])],
            branch: ids[titles(made[branch])],
        },
    )
    return TerminalTask(
        instruction=f"In the repository repo, merge the branch {branch} into main with a merge commit, whose message "
        f"is 'Merge {branch}'. Where both changed the same setting in settings.txt, take the value of {branch}; keep "
        f"all other changes of both branches. Leave the branch {branch} as it is.",
        files={},
        setup=repository(made),
        expected={"repo/settings.txt": settings(merged), "repo/NEWS": "Settings changed.\n"},
        checks=(check,),
        solution=(merge,),
        near_misses=(
            merge.replace("theirs", "ours"),
            merge.replace("-X theirs", "-s ours"),
            merge.replace("-X theirs", "--squash -X theirs").replace(f"-m 'Merge {branch}' ", "")
            + f"; git commit -q -m 'Merge {branch}'",
            merge.replace(f"-m 'Merge {branch}'", "-m Merged"),
            merge.replace(f"-m 'Merge {branch}'", f"-m 'Merge {branch}' -m 'Conflicts: settings.txt'"),
            f"{merge}; git checkout -q HEAD^1 -- settings.txt",
            f"{merge}; git branch -d {branch}",
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
