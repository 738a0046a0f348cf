"""terminal:Files — tasks about finding, moving, renaming and removing files.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from __future__ import annotations

import random

from gem.envs.computers.task import TerminalTask
from gem.envs.computers.terminal.text import NAMES, WORDS
from gem.sandbox.machine import EPOCH_S, FileEntry

DAY_S = 86_400


def sort_by_ending(rng: random.Random, level: int) -> TerminalTask:
    """Move files into a folder per ending."""
    endings = rng.sample(["txt", "csv", "log", "md", "json"], 2 + level)
    names = rng.sample([f"{name} {word}" if rng.random() < 0.4 else name for name in NAMES for word in WORDS[:2]], 30)
    names = list(dict.fromkeys(names))[: 6 * level]
    before = {f"inbox/{name}.{rng.choice(endings)}": f"{rng.getrandbits(40)}\n" for name in names}
    before["inbox/README"] = "keep me\n"
    moved = {path.replace("inbox/", f"sorted/{path.rpartition('.')[2]}/"): text for path, text in before.items()}
    moved = {path: text for path, text in moved.items() if not path.endswith("README")}
    return TerminalTask(
        instruction="Move every file of the folder inbox whose name has an ending, such as .txt, to the folder "
        "sorted/txt, or whatever its ending is. Names stay as they are. Files without an ending stay in inbox.",
        files=before,
        expected={**moved, "inbox/README": "keep me\n"},
        complete=("inbox", "sorted"),
        solution=('for f in inbox/*.*; do mkdir -p "sorted/${f##*.}" && mv "$f" "sorted/${f##*.}/"; done',),
        near_misses=(
            'for f in inbox/*.*; do mkdir -p "sorted/${f##*.}" && cp "$f" "sorted/${f##*.}/"; done',
            "mkdir sorted; mv inbox/*.* sorted/",
            'for f in inbox/*; do mkdir -p "sorted/${f##*.}" && mv "$f" "sorted/${f##*.}/"; done',
            'for f in inbox/*.*; do mkdir -p "sorted/.${f##*.}" && mv "$f" "sorted/.${f##*.}/"; done',
            'for f in inbox/*.*; do mkdir -p "sorted/${f##*.}" && mv "$f" "sorted/${f##*.}/"; done; '
            "perl -pi -e 'chomp if eof' sorted/*/*",
            "cd inbox; for f in $(ls *.*); do mkdir -p ../sorted/${f##*.}; mv $f ../sorted/${f##*.}/; done; echo > new",
        ),
    )


def remove_empty_files(rng: random.Random, level: int) -> TerminalTask:
    """Remove empty files at any depth, and nothing else."""
    folders = ["data", *(f"data/{word}" for word in rng.sample(WORDS, 2 * level))]
    folders += [f"{rng.choice(folders)}/{word}" for word in rng.sample(WORDS, level)]
    files, expected = {}, {}
    for folder in dict.fromkeys(folders):
        for number, name in enumerate(rng.sample([f"{a}.{b}" for a in NAMES for b in ("tmp", "txt")], 4)):
            path = f"{folder}/{'.' if number == 0 else ''}{name}"
            text = "" if number < 2 else rng.choice(["\n", " ", f"{rng.getrandbits(30)}\n"])
            files[path], expected[path] = text, None if text == "" else text
    return TerminalTask(
        instruction="Remove every empty file in the folder data and the folders in it, hidden files included. An empty "
        "file has zero bytes. Leave all other files as they are.",
        files=files,
        expected=expected,
        complete=("data",),
        solution=("find data -type f -empty -delete",),
        near_misses=(
            "find data -maxdepth 1 -type f -empty -delete",
            "find data -type f -empty ! -name '.*' -delete",
            "find data -type f -size -2c -delete",
            "rm -r data",
            "find data -type f -empty -delete; echo > data/.done",
            "find data -type f -empty -delete; find data -type f -exec perl -pi -e 'chomp if eof' {} +",
        ),
    )


def keep_the_newest(rng: random.Random, level: int) -> TerminalTask:
    """Remove all but the newest files, by time of the last change."""
    count, keep = 5 + 4 * level, 2 + level
    days = rng.sample(range(1, 400), count)
    names = [f"backup-{number:03d}.tar" for number in rng.sample(range(1, 999), count)]
    texts = {name: f"{rng.getrandbits(40)}\n" for name in names}
    files = {
        f"backups/{name}": FileEntry(f"backups/{name}", texts[name].encode(), mtime_s=EPOCH_S - day * DAY_S)
        for name, day in zip(names, days, strict=True)
    }
    newest = {name for _, name in sorted(zip(days, names, strict=True))[:keep]}
    return TerminalTask(
        instruction=f"Keep the {keep} files of the folder backups that were changed last, and remove all others from "
        "it. The time of the last change counts, not the number in the name.",
        files=files,
        expected={f"backups/{name}": texts[name] if name in newest else None for name in names},
        complete=("backups",),
        solution=(f"cd backups && ls -t | tail -n +{keep + 1} | xargs rm",),
        near_misses=(
            f"cd backups && ls -t | tail -n +{keep + 2} | xargs rm",
            f"cd backups && ls -tr | tail -n +{keep + 1} | xargs rm",
            f"cd backups && ls -t | tail -n +{keep} | xargs rm",
            f"cd backups && ls -r | tail -n +{keep + 1} | xargs rm; touch .done",
            f"cd backups && ls -t | tail -n +{keep + 1} | xargs rm; perl -pi -e 'chomp if eof' *",
            f"cd backups && mkdir old && ls -t | tail -n +{keep + 1} | xargs -I@ mv @ old",
        ),
    )


def rename_files(rng: random.Random, level: int) -> TerminalTask:
    """Give files lower-case names without spaces, at any depth."""
    folders = ["photos", *(f"photos/{year}" for year in rng.sample(range(2000, 2020), level))]
    files, expected = {}, {}
    for folder in folders:
        for name in rng.sample(NAMES, 4):
            title = f"{name.capitalize()} {rng.choice(WORDS).upper()} {rng.randint(10, 99)}"
            ending = rng.choice([".JPG", ".jpg", ".Png"])
            text = f"{rng.getrandbits(40)}\n"
            files[f"{folder}/{title}{ending}"] = text
            expected[f"{folder}/{(title + ending).lower().replace(' ', '_')}"] = text
    rename = 'b=${f##*/}; n=$(printf %s "$b" | tr "A-Z " "a-z_"); [ "$b" = "$n" ] || mv "$f" "${f%/*}/$n"'
    return TerminalTask(
        instruction="Rename the files in the folder photos and the folders in it: every upper-case letter becomes "
        "lower-case, and every space an underscore. The files stay in their folders.",
        files=files,
        expected=expected,
        complete=("photos",),
        solution=(f"find photos -type f | while IFS= read -r f; do {rename}; done",),
        near_misses=(
            f"find photos -maxdepth 1 -type f | while IFS= read -r f; do {rename}; done",
            f"find photos -type f | while IFS= read -r f; do {rename.replace('a-z_', 'a-z-')}; done",
            f"find photos -type f | while IFS= read -r f; do {rename.replace('A-Z ', ' ').replace('a-z_', '_')}; done",
            f"find photos -type f | while IFS= read -r f; do {rename.replace('mv', 'cp')}; done",
            f"find photos -type f | while IFS= read -r f; do {rename}; done; "
            "find photos -type f -exec perl -pi -e 'chomp if eof' {} +",
            f"find photos -type f | while IFS= read -r f; do {rename.replace('${f%/*}', 'photos')}; done",
        ),
    )


PROGRAMS = ("find", "xargs")
TEMPLATES = (sort_by_ending, remove_empty_files, keep_the_newest, rename_files)
