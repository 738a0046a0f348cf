"""terminal:Archive — tasks with archives and checksums.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import tarfile
from collections.abc import Mapping

from gem.envs.computers.task import HiddenCheck, TerminalTask, shell_check
from gem.envs.computers.terminal.text import NAMES, WORDS
from gem.sandbox.machine import EPOCH_S, FileEntry


def tar(files: Mapping[str, bytes]) -> bytes:
    """Return a tar archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.size, member.mtime = len(content), EPOCH_S
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _secret(rng: random.Random) -> str:
    return f"{rng.choice(WORDS)}-{rng.choice(NAMES)}-{rng.randint(1000, 9999)}\n"


def nested_archives(rng: random.Random, level: int) -> TerminalTask:
    """Take a file out of archives inside archives."""
    secret, name = _secret(rng), rng.choice(NAMES)
    content, inner = {f"notes/{name}.txt": secret.encode()}, ""
    for depth in range(1 + level):
        content[f"notes/{rng.choice(NAMES)}-{depth}.txt"] = _secret(rng).encode()
        inner = f"{rng.choice(WORDS)}.tar{'.gz' if depth % 2 else ''}"
        data = tar(content)
        content = {inner: gzip.compress(data, mtime=0) if depth % 2 else data, f"{name}.txt": _secret(rng).encode()}
    outer = tar(content)
    script = (
        'mkdir w; cd w; tar xf ../outer.tar; while f=$(find . -name \'*.tar*\' | head -1); [ "$f" ]; do tar xf "$f"; '
        'rm "$f"; done; cd ..; '
    )
    return TerminalTask(
        instruction=f"The archive outer.tar contains archives that contain archives. In the innermost one there is the "
        f"file notes/{name}.txt. Copy it to found.txt. Leave outer.tar as it is.",
        files={"outer.tar": FileEntry("outer.tar", outer)},
        expected={"found.txt": secret},
        checks=(
            HiddenCheck(
                name="outer.tar",
                arguments=("/usr/bin/env", "sha256sum", "outer.tar"),
                stdout=f"{hashlib.sha256(outer).hexdigest()}  outer.tar\n",
                only=("outer.tar",),
            ),
        ),
        solution=(f"{script} cp w/notes/{name}.txt found.txt",),
        near_misses=(
            f"{script} cp w/{name}.txt found.txt",
            f"tar xf outer.tar {name}.txt; mv {name}.txt found.txt",
            f"{script} cp w/notes/{name}.txt .",
            f"{script} cp w/notes/{name}.txt found.txt; rm outer.tar",
            f"{script} cat w/notes/*.txt > found.txt",
            f"{script} cp w/notes/{name}.txt found.txt; tar rf outer.tar found.txt",
            f"{script} ln -s w/notes/{name}.txt found.txt",
        ),
    )


def selective_backup(rng: random.Random, level: int) -> TerminalTask:
    """Pack only the files with an ending, with paths relative to their folder."""
    ending = rng.choice(["conf", "ini", "cfg"])
    folders = ["site", *(f"site/{word}" for word in rng.sample(WORDS, 1 + level))]
    names = rng.sample(NAMES, 2 * len(folders))
    files: dict[str, str] = {}
    for number, folder in enumerate(folders):
        files[f"{folder}/{names[2 * number]}.{ending}"] = _secret(rng)
        files[f"{folder}/{names[2 * number + 1]}.{ending}.bak"] = _secret(rng)
    files[f"{folders[-1]}/.hidden.{ending}"] = _secret(rng)
    files[f"{folders[-1]}/{ending}"] = _secret(rng)
    files[f"site/a {rng.choice(WORDS)}.{ending}"] = _secret(rng)
    kept = sorted(path.removeprefix("site/") for path in files if path.endswith(f".{ending}"))
    pack = f"cd site && find . -name '*.{ending}' -type f -print0 | tar -czf ../backup.tar.gz --null -T -"
    listing = "set -e; tar -tzf backup.tar.gz > all; "
    listing += "sed 's,^[.]/,,' all | grep -v '/$' | grep . | LC_ALL=C sort; echo; mkdir x; "
    show = "tar -xzf backup.tar.gz -C x; cd x; find . -type f -print0 | LC_ALL=C sort -z | xargs -0 cat"
    contents = "".join(files[f"site/{path}"] for path in sorted(kept, key=lambda path: f"./{path}".encode()))
    return TerminalTask(
        instruction="Make the compressed archive backup.tar.gz of all files in site and the folders in it whose name "
        f"ends in .{ending}, hidden files included, and of no others. The paths in the archive begin below site, such "
        f"as x/y.{ending} for site/x/y.{ending}. Leave site as it is.",
        files=files,
        expected=files,
        complete=("site",),
        checks=(
            shell_check(
                "backup.tar.gz",
                listing + show,
                stdout="".join(f"{path}\n" for path in kept) + "\n" + contents,
                only=("backup.tar.gz",),
            ),
        ),
        solution=(pack,),
        near_misses=(
            "tar -czf backup.tar.gz -C site .",
            pack.replace("cd site && find .", "find site").replace("../backup", "backup"),
            pack.replace(f"'*.{ending}'", f"'*.{ending}*'"),
            pack.replace(f"'*.{ending}'", f"'*{ending}'"),
            pack.replace("-czf", "-cf"),
            pack.replace("find .", "find . -maxdepth 1"),
            pack.replace("-type f", "! -name '.*' -type f"),
            f"{pack}; find . -name '*.{ending}' -delete",
            f"{pack}; truncate -s -9 ../backup.tar.gz",
        ),
    )


def restore_damaged_files(rng: random.Random, level: int) -> TerminalTask:
    """Restore the files whose checksum is wrong from an archive whose other files are old."""
    paths = [f"docs/{name}.txt" for name in rng.sample(NAMES, 5 + 3 * level)]
    good = {path: _secret(rng) for path in paths}
    old = {path: _secret(rng) for path in paths}
    damaged = sorted(rng.sample(paths, 2 + level))
    found = {path: text[:-3] + "??\n" if path in damaged else text for path, text in good.items()}
    sums = "".join(f"{hashlib.sha256(text.encode()).hexdigest()}  {path}\n" for path, text in good.items())
    archive = tar({path: (good[path] if path in damaged else old[path]).encode() for path in paths})
    bad = "sha256sum -c SUMS 2>/dev/null | sed -n 's/: FAILED$//p'"
    return TerminalTask(
        instruction="SUMS has the SHA-256 checksums of the files in docs. Some files are damaged: their checksum "
        "differs. Restore these, and only these, from the archive backup.tar; its copies of the others are old. Write "
        "the paths of the damaged files, as in SUMS, to damaged.txt, sorted.",
        files={**found, "SUMS": sums, "backup.tar": FileEntry("backup.tar", archive)},
        expected={**good, "SUMS": sums, "damaged.txt": "".join(f"{path}\n" for path in damaged)},
        complete=("docs",),
        solution=(f"{bad} | sort > damaged.txt; tar xf backup.tar -T damaged.txt",),
        near_misses=(
            f"{bad} | sort > damaged.txt; tar xf backup.tar",
            f"{bad} | sort > damaged.txt",
            f"{bad} | sort > damaged.txt; tar xf backup.tar -T damaged.txt; sed -i 's,docs/,,' damaged.txt",
            f"{bad} | sort -r > damaged.txt; tar xf backup.tar -T damaged.txt",
            f"{bad} | sort | head -n 1 > damaged.txt; tar xf backup.tar -T damaged.txt",
            f"{bad} | sort > damaged.txt; sha256sum docs/* > SUMS",
            f"{bad} | sort > damaged.txt; tar xf backup.tar -T damaged.txt; perl -pi -e 'chomp if eof' docs/*",
            f"{bad} | sort > damaged.txt; tar xf backup.tar -T damaged.txt; rm damaged.txt",
        ),
    )


def join_the_parts(rng: random.Random, level: int) -> TerminalTask:
    """Join the numbered parts of an archive and unpack it."""
    files = {f"album/{name}.txt": "".join(_secret(rng) for _ in range(3 * level)) for name in rng.sample(NAMES, 5)}
    data = gzip.compress(tar({path: text.encode() for path, text in files.items()}), mtime=0)
    count = 10 + 2 * level
    size = -(-len(data) // count)
    parts = {
        f"parts/album.tar.gz.{number + 1}": FileEntry(
            f"parts/album.tar.gz.{number + 1}", data[number * size : (number + 1) * size]
        )
        for number in range(count)
    }
    total = hashlib.sha256(data).hexdigest()
    join = "cat $(ls parts/* | sort -t. -k4,4n) > album.tar.gz"
    digest = "sha256sum album.tar.gz | cut -d' ' -f1 > album.sha256"
    return TerminalTask(
        instruction=f"The archive album.tar.gz was split into {count} numbered parts, in the folder parts. Join them, "
        "unpack the archive in your home folder, and write the SHA-256 checksum of the joined album.tar.gz, 64 digits "
        "and nothing else, to album.sha256.",
        files=parts,
        expected={**files, "album.sha256": f"{total}\n"},
        complete=("album",),
        solution=(f"{join}; tar xzf album.tar.gz; {digest}",),
        near_misses=(
            f"cat parts/* > album.tar.gz; tar xzf album.tar.gz; {digest}",
            f"{join}; tar xzf album.tar.gz",
            f"{join}; tar xzf album.tar.gz; sha256sum album.tar.gz > album.sha256",
            f"{join}; tar xzf album.tar.gz --strip-components=1; {digest}",
            f"{join}; mkdir out; tar xzf album.tar.gz -C out; {digest}",
            f"{join}; tar xzf album.tar.gz; gunzip album.tar.gz; {digest.replace('.gz', '')}",
            f"{join}; tar xzf album.tar.gz; {digest.replace('sha256sum', 'sha1sum')}",
        ),
    )


PROGRAMS = ("tar", "gzip", "sha256sum", "find")
TEMPLATES = (nested_archives, selective_backup, restore_damaged_files, join_the_parts)
