"""terminal:Text — tasks for grep, sed, awk, sort and join.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from __future__ import annotations

import random
from collections import Counter

from gem.envs.computers.task import TerminalTask

NAMES = (
    *("ada", "alan", "alice", "anna", "ben", "berta", "carl", "clara", "dana", "david", "edgar", "emma"),
    *("felix", "fiona", "george", "greta", "hans", "hilda", "ida", "ivan", "jakob", "julia", "karl", "klara"),
    *("leon", "linda", "martin", "mona", "nils", "nora", "oskar", "olga", "paul", "petra", "quentin", "rosa"),
    *("simon", "sofia", "theo", "vera"),
)
WORDS = (
    *("apple", "bridge", "candle", "desert", "engine", "forest", "garden", "harbor", "island", "jacket"),
    *("kettle", "ladder", "market", "needle", "orange", "pencil", "quarry", "river", "saddle", "temple"),
    *("umbrella", "valley", "window", "yellow", "zebra", "anchor", "basket", "copper", "dragon", "eagle"),
)


def total_of_column(rng: random.Random, level: int) -> TerminalTask:
    """Add up a column of the lines with a name."""
    names = rng.sample(NAMES, 6)
    wanted, longer = names[0], names[0] + "lie"  # a name that contains the other
    rows = [
        (rng.choice([*names, wanted, longer]), rng.choice(WORDS), rng.randint(1, 90), rng.randint(1, 500))
        for _ in range(30 * level)
    ]
    rows += [(wanted, rng.choice(WORDS), 7, 11), (longer, wanted, 5, 3)]
    rng.shuffle(rows)
    text = "".join(f"{name} {item} {count} {price}\n" for name, item, count, price in rows)
    total = sum(count * price for name, _, count, price in rows if name == wanted)
    return TerminalTask(
        instruction=f"Each line of orders.txt has a name, an item, a number of pieces and a price per piece. Write the "
        f"total that {wanted} has to pay to total.txt: pieces times price, added up over all lines of {wanted}.",
        files={"orders.txt": text},
        expected={"total.txt": f"{total}\n", "orders.txt": text},
        solution=(f"awk '$1 == \"{wanted}\" {{ total += $3 * $4 }} END {{ print total }}' orders.txt > total.txt",),
        near_misses=(
            f"awk '/{wanted}/ {{ total += $3 * $4 }} END {{ print total }}' orders.txt > total.txt",
            f"awk '$1 == \"{wanted}\" {{ total += $4 }} END {{ print total }}' orders.txt > total.txt",
            f'awk \'$1 == "{wanted}" {{ t += $3 * $4 }} END {{ print "total", t }}\' orders.txt > total.txt',
            f"awk '$1 == \"{wanted}\" {{ total += $3 + $4 }} END {{ print total }}' orders.txt > total.txt",
            f"awk '$1 == \"{longer}\" {{ total += $3 * $4 }} END {{ print total }}' orders.txt > total.txt",
        ),
    )


def most_frequent_words(rng: random.Random, level: int) -> TerminalTask:
    """Count words and list the most frequent ones."""
    words = rng.sample(WORDS, 12)
    drawn = [word for number, word in enumerate(words) for _ in range(3 + number + rng.randint(0, 2 * level))]
    rng.shuffle(drawn)
    drawn = [word.capitalize() if rng.random() < 0.3 else word for word in drawn]
    lines = [" ".join(drawn[start : start + 9]) for start in range(0, len(drawn), 9)]
    most = sorted(Counter(word.lower() for word in drawn).items(), key=lambda pair: (-pair[1], pair[0]))
    top = 4 + level
    text = "\n".join(lines) + "\n"
    count = "tr ' ' '\\n' < text.txt | tr A-Z a-z | sort | uniq -c | sort -k1,1nr -k2 | "
    return TerminalTask(
        instruction=f"Find the {top} most frequent words of text.txt, without regard to upper and lower case. Write "
        "them to top.txt in lower case, one line per word: the number, a space, the word. The most frequent word comes "
        "first; words that are equally frequent are in alphabetical order.",
        files={"text.txt": text},
        expected={"top.txt": "".join(f"{n} {word}\n" for word, n in most[:top]), "text.txt": text},
        solution=(count + f"head -n {top} | awk '{{ print $1, $2 }}' > top.txt",),
        near_misses=(
            count + f"head -n {top} > top.txt",
            count + f"head -n {top - 1} | awk '{{ print $1, $2 }}' > top.txt",
            count + f"head -n {top} | awk '{{ print $2, $1 }}' > top.txt",
            count.replace("tr A-Z a-z | ", "") + f"head -n {top} | awk '{{ print $1, $2 }}' > top.txt",
            count.replace("-k1,1nr", "-k1,1n") + f"head -n {top} | awk '{{ print $1, $2 }}' > top.txt",
        ),
    )


def join_two_files(rng: random.Random, level: int) -> TerminalTask:
    """Join two files by a number that is not sorted and not always in both."""
    ids = rng.sample(range(1, 300), 10 * level)
    names = {number: f"{rng.choice(NAMES)}-{number}" for number in ids}
    scores = {number: rng.randint(0, 99) for number in [*ids[len(ids) // 4 :], *rng.sample(range(300, 400), 4)]}
    people = "".join(f"{number}\t{name}\n" for number, name in names.items())
    shuffled = rng.sample(sorted(scores), len(scores))
    points = "".join(f"{number}\t{scores[number]}\n" for number in shuffled)
    both = sorted((names[number], scores[number]) for number in scores if number in names)
    join = "join -t '\t' -o 1.2,2.2 <(sort people.tsv) <(sort points.tsv)"
    return TerminalTask(
        instruction="people.tsv has a number and a name per line, points.tsv a number and points; a tab separates "
        "them. Write the name and the points, separated by a comma, of everyone who is in both files to result.csv, "
        "sorted by name. Lines end with a line feed, without a carriage return.",
        files={"people.tsv": people, "points.tsv": points},
        expected={
            "result.csv": "".join(f"{name},{score}\n" for name, score in both),
            "people.tsv": people,
            "points.tsv": points,
        },
        solution=(join + " | tr '\\t' ',' | sort > result.csv",),
        near_misses=(
            join + " | sort > result.csv",
            "join -t '\t' -a 1 -o 1.2,2.2 <(sort people.tsv) <(sort points.tsv) | tr '\\t' ',' | sort > result.csv",
            join + " | tr '\\t' ',' | sort -r > result.csv",
            join.replace("1.2,2.2", "2.2,1.2") + " | tr '\\t' ',' | sort > result.csv",
            join.replace("1.2,2.2", "1.1,2.2") + " | tr '\\t' ',' | sort > result.csv",
        ),
    )


def change_a_setting(rng: random.Random, level: int) -> TerminalTask:
    """Change a value in configuration files, but not in comments or similar settings."""
    old, new = rng.sample([f"{word}.example.org" for word in WORDS], 2)
    other = old.replace(".example", "xexample")  # matches the old value if its dots are not escaped
    before, after = {}, {}
    for number in range(2 * level + 1):
        lines = [f"port={rng.randint(1000, 9999)}", f"# host={old}", f"backup_host={old}", f"host={other}"]
        lines += [f"host={old}"] * rng.randint(1, 2) + [f"name={rng.choice(NAMES)}"]
        rng.shuffle(lines)
        path = f"conf/{WORDS[number]}.conf"
        before[path] = "".join(f"{line}\n" for line in lines)
        after[path] = "".join(f"host={new}\n" if line == f"host={old}" else f"{line}\n" for line in lines)
    keep = f"notes/{WORDS[0]}.txt"
    before[keep] = after[keep] = f"host={old}\n"
    escaped = old.replace(".", "\\.")
    return TerminalTask(
        instruction=f"In the files of the folder conf, change the setting host from {old} to {new}. Change only lines "
        f"that read exactly host={old}, not comments and not other settings, and no file outside of conf.",
        files=before,
        expected=after,
        solution=(f"sed -i 's/^host={escaped}$/host={new}/' conf/*.conf",),
        near_misses=(
            f"sed -i 's/host={escaped}/host={new}/' conf/*.conf",
            f"sed -i 's/^host={old}$/host={new}/' conf/*.conf",
            f"sed -i 's/^host={escaped}$/host={new}/' conf/{WORDS[0]}.conf",
            f"sed -i 's/^host={escaped}$/host={new}/' conf/* notes/*",
            f"sed -i.bak 's/^host={escaped}$/host={new}/' conf/*.conf",
            f"perl -pi -e 's/^host={escaped}$/host={new}/; chomp if eof' conf/*.conf",
        ),
        complete=("conf", "notes"),
    )


PROGRAMS = ("awk", "sed", "join")
TEMPLATES = (total_of_column, most_frequent_words, join_two_files, change_a_setting)
