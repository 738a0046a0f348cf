"""terminal:Build — tasks with make and with scripts that build something. They are checked with other inputs.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from __future__ import annotations

import random

from gem.envs.computers.task import HiddenCheck, TerminalTask, shell_check
from gem.envs.computers.terminal.text import NAMES, WORDS


def missing_prerequisite(rng: random.Random, level: int) -> TerminalTask:
    """Repair a Makefile that does not build again when some inputs change."""
    parts = rng.sample(WORDS, 2 + level)
    forgotten = rng.sample(parts, level)
    listed = [f"data/{part}.txt" for part in parts if part not in forgotten]
    every = [f"data/{part}.txt" for part in parts]
    recipe = f"\tcat {' '.join(every)} | sort -n > report.txt\n"
    rule = f"report.txt: {' '.join(listed)}\n{recipe}"
    makefile = f"all: report.txt\n\n{rule}\nclean:\n\trm -f report.txt\n"
    files = {path: "".join(f"{rng.randint(1, 999)}\n" for _ in range(4)) for path in every}
    hidden = {f"data/{part}.txt": f"{rng.randint(1000, 9999)}\n7\n" for part in parts}

    def report(texts: dict[str, str]) -> str:
        return "".join(f"{n}\n" for n in sorted(int(n) for text in texts.values() for n in text.split()))

    steps = "touch -d @0 data/*; touch -d @100 report.txt; cp new/$p.txt data; make -s; cp report.txt after-$p.txt"
    checks = (
        shell_check(
            "make after a change",
            f"make -s; for p in {' '.join(parts)}; do {steps}; done",
            files={path.replace("data", "new"): text for path, text in hidden.items()},
            expected={
                f"after-{part}.txt": report(files | {path: hidden[path] for path in every[: number + 1]})
                for number, part in enumerate(parts)
            },
        ),
        shell_check(
            "make without a change", "make -s all && touch -d @0 report.txt data/* && make -q; echo $?", stdout="0\n"
        ),
        shell_check("make clean", "make -s; make -s clean", expected={"report.txt": None, **files}),
    )
    edit = "sed -i 's,^report.txt:.*,report.txt: {},' Makefile"
    return TerminalTask(
        instruction="The Makefile builds report.txt from the files in data, but make does not build it again when some "
        "of them change. Repair the Makefile, so that make builds report.txt again whenever a file that it is made of "
        "has changed, and only then. The other targets must keep working.",
        files={"Makefile": makefile, **files},
        expected=files,
        checks=checks,
        solution=(edit.format(" ".join(every)),),
        near_misses=(
            edit.format(" ".join(every[:-1])) if every[-1] in hidden else edit.format(every[-1]),
            edit.format("FORCE") + "; echo 'FORCE:' >> Makefile",
            "echo '.PHONY: report.txt' >> Makefile",
            "rm -f report.txt; make",
            edit.format(" ".join(every)) + "; sed -i 's/^clean:/tidy:/' Makefile",
            edit.format(" ".join(every)) + "; sed -i 's/sort -n/sort/' Makefile",
            edit.format(" ".join(every)) + "; sed -i 's/sort -n/sort -nu/' Makefile",
            edit.format(" ".join(every)) + "; sed -i '/^all:/d' Makefile",
            edit.format(f"Makefile {' '.join(every)}"),
            f"sed -i 's,^all: .*,all: clean report.txt,' Makefile; {edit.format(' '.join(every))}",
            edit.format(" ".join(every)) + "; sed -i 's,^\\tcat,    cat,' Makefile",
        ),
    )


def write_a_makefile(rng: random.Random, level: int) -> TerminalTask:
    """Write a Makefile with a rule for each file in a folder."""
    ending = rng.choice(["txt", "note", "md"])
    names = rng.sample(NAMES, 3 + 2 * level)
    texts = {name: f"{rng.choice(WORDS)} {rng.randint(1, 99)}\nand {rng.choice(WORDS)}\n" for name in names}
    shown, extra = names[:-1], names[-1]
    files = {f"src/{name}.{ending}": texts[name] for name in shown} | {"src/README": "Not a source.\n"}
    results = {f"out/{name}.up": text.upper() for name, text in texts.items()}
    first = {path: text for path, text in results.items() if extra not in path}
    first_name = shown[0]
    checks = (
        shell_check("make", "rm -rf out; make -s", expected={**first, "out/README.up": None}),
        shell_check(
            "make with another file",
            "rm -rf out; make -s -j4",
            files={f"src/{extra}.{ending}": texts[extra]},
            expected=results,
        ),
        shell_check(
            "make after a change",
            (
                "rm -rf out; make -s && echo kept | tee out/*.up >/dev/null && touch -d '3 days ago' src/* && "
                f"touch -d '2 days ago' out/*.up && touch -d yesterday src/{first_name}.{ending} && make -s"
            ),
            expected={path: text if path == f"out/{first_name}.up" else "kept\n" for path, text in first.items()},
        ),
        shell_check("make clean", "make -s && make -s clean", expected={**dict.fromkeys(first), **files}),
    )
    makefile = (
        f"SRC := $(wildcard src/*.{ending})\\n"
        f"all: $(SRC:src/%.{ending}=out/%.up)\\n"
        f"out/%.up: src/%.{ending}\\n\\t@mkdir -p out\\n\\ttr a-z A-Z < $< > $@\\n"
        "clean:\\n\\trm -rf out\\n"
    )

    def script(makefile: str) -> str:
        return "printf '" + makefile.replace("%", "%%") + "' > Makefile"

    return TerminalTask(
        instruction=f"Write a Makefile. For every file src/NAME.{ending}, make without arguments writes out/NAME.up, "
        "which has the same text in upper case. It must also do so for files that are added to src later, create the "
        "folder out if it is missing, and build only what is missing or older than its source. make clean removes the "
        "results.",
        files=files,
        expected=files,
        complete=("src",),
        checks=checks,
        solution=(script(makefile),),
        near_misses=(
            script(makefile.replace(f"$(wildcard src/*.{ending})", " ".join(files))),
            script(makefile.replace("\\t@mkdir -p out\\n", "")),
            script(makefile.replace("\\n\\t@mkdir -p out", " out") + "out:\\n\\tmkdir -p out\\n"),
            script(makefile.replace("tr a-z A-Z", "cat")),
            script(makefile.replace("tr a-z A-Z < $<", "head -n 1 $< | tr a-z A-Z")),
            script(makefile.replace("\\n\\t@mkdir", " Makefile\\n\\t@mkdir")),
            script(
                makefile.replace(f"$(wildcard src/*.{ending})", "$(wildcard src/*)").replace(
                    f"$(SRC:src/%.{ending}=out/%.up)", "$(patsubst src/%,out/%.up,$(basename $(SRC)))"
                )
            ),
            script(makefile.replace("clean:", "tidy:")),
            script(makefile + ".PHONY: all $(SRC:src/%.{e}=out/%.up)\\n".replace("{e}", ending)),
            script(makefile.replace("rm -rf out", "rm -rf out src")),
            script(makefile.replace("out/%.up", "src/%.up")),
            script(
                f"all:\\n\\tmkdir -p out; for f in src/*.{ending}; do tr a-z A-Z < $$f > out/$$(basename $$f "
                f".{ending}).up; done\\nclean:\\n\\trm -rf out\\n"
            ),
        ),
    )


def repair_a_script(rng: random.Random, level: int) -> TerminalTask:
    """Repair a script that fails on names with spaces and hides failures."""
    target = rng.choice(WORDS)
    files = {
        f"pages/{name}.txt": f"{rng.choice(WORDS)}\n{rng.randint(1, 99)}\n" for name in rng.sample(NAMES, 2 + level)
    }
    script = (
        "#!/bin/sh\n# Writes " + target + ".txt: for each page its name, a colon, and its number of lines.\n"
        f"rm -f {target}.txt\n"
        "for page in $(ls pages); do\n"
        "  lines=$(cat pages/$page | wc -l)\n"
        f"  echo $page: $lines > {target}.txt\n"
        "done\n"
        "[ -s check.txt ] && sh check.txt\n"
        "exit 0\n"
    )
    name = f"{rng.choice(WORDS)} {rng.choice(NAMES)}"
    hidden = {f"pages/{name}": "1 2 4\n\n3\n", f"pages/ {rng.choice(WORDS)}  two.txt": "1\n"}
    hidden |= {"pages/-n": "1\n2\n", "pages/100%s\\ta.txt": "1\n"}

    def table(pages: dict[str, str]) -> str:
        ordered = sorted(path.removeprefix("pages/") for path in pages)
        return "".join(f"{page}: {pages[f'pages/{page}'].count(chr(10))}\n" for page in ordered)

    checks = (
        shell_check(
            "build.sh",
            "rm -f check.txt; sh build.sh >/dev/null; echo $?",
            stdout="0\n",
            expected={f"{target}.txt": table(files)},
        ),
        HiddenCheck(
            name="build.sh with spaces in names",
            arguments=("/bin/sh", "build.sh"),
            files=hidden,
            expected={f"{target}.txt": table(files | hidden)},
        ),
        shell_check(
            "build.sh twice",
            f"rm -f {target}.txt; (sh build.sh && sh build.sh) >/dev/null && echo fine",
            files={"check.txt": f"[ -s {target}.txt ]\n"},
            stdout="fine\n",
            expected={f"{target}.txt": table(files)},
        ),
        shell_check(
            "build.sh with a failing check", "sh build.sh; echo $?", files={"check.txt": "exit 3\n"}, stdout="3\n"
        ),
    )
    fixed = (
        f'rm -f {target}.txt\nfor page in pages/*; do\n  name=${{page#pages/}}\n  lines=$(wc -l < "$page")\n'
        f'  printf "%s: %s\\n" "$name" $((lines)) >> {target}.txt\ndone\nif [ -s check.txt ]; then sh check.txt; fi\n'
    )

    def write(script: str) -> str:
        return f"cat > build.sh <<'END_OF_SCRIPT'\n{script}END_OF_SCRIPT"

    return TerminalTask(
        instruction=f"build.sh should write {target}.txt: for each file in the folder pages, in alphabetical order, "
        "its name, a colon, a space, and its number of lines. It must do so for any names, such as names with spaces, "
        "and may be run more than once. If there is a file check.txt, it runs it with sh and exits with its status; "
        "otherwise it exits with 0. Only the files in pages and check.txt change. Repair build.sh; it is run with sh.",
        files={"build.sh": script, **files},
        expected=files,
        complete=("pages",),
        checks=checks,
        solution=(write(fixed),),
        near_misses=(
            "sed -i 's/ > / >> /' build.sh",
            write(fixed.replace('wc -l < "$page"', "cat $page | wc -l")),
            write(fixed.replace(f"rm -f {target}.txt\n", "")),
            write(fixed + "exit 0\n"),
            write(
                fixed.replace("for page in pages/*", "ls pages | while read name").replace(
                    "  name=${page#pages/}\n", '  page="pages/$name"\n'
                )
            ),
            write(fixed.replace("sh check.txt; fi", "sh check.txt || exit 1; fi")),
            write(fixed.replace('"$name" $((', "$name $((")),
            write(fixed.replace('printf "%s: %s\\n" "$name" $((lines))', 'echo "$name: $((lines))"')),
            write(fixed.replace('printf "%s: %s\\n" "$name" $((lines))', 'printf "$name: $((lines))\\n"')),
            write(fixed.replace("pages/*;", "pages/*.txt;")),
            write(fixed.replace("wc -l", "grep -c .").replace(" < ", " ")),
            write(fixed.replace("wc -l", "wc -w")),
            write(fixed.replace("if [ -s check.txt ]; then sh check.txt; fi", "[ -s check.txt ] && sh check.txt")),
            write("[ ! -s check.txt ] || sh check.txt || exit\n" + fixed.partition("if [ -s")[0]),
            write(fixed.replace('"$name"', '"$page"')),
            write("cat <<EOF > " + target + ".txt\n" + table(files) + "EOF\n[ ! -s check.txt ] || sh check.txt\n"),
        ),
    )


def parallel_build(rng: random.Random, level: int) -> TerminalTask:
    """Repair a Makefile that works only without parallel jobs."""
    names = rng.sample(NAMES, 2 + level)
    numbers = {name: rng.randint(10, 99) for name in names}
    outs = " ".join(f"build/{name}" for name in names)
    makefile = (
        f"all: prepare {outs} sum.txt\n\nprepare:\n\t@sleep 0.3; mkdir -p build\n\n"
        + "".join(f"build/{name}: {name}.txt\n\tsleep 0.1; sort -n {name}.txt | head -n 1 > $@\n\n" for name in names)
        + "sum.txt:\n\tcat build/* | awk '{ n += $$1 } END { print n }' > $@\n\nclean:\n\trm -rf build sum.txt\n"
    )
    files = {f"{name}.txt": f"{number + 5}\n{number}\n" for name, number in numbers.items()}
    total = sum(numbers.values())
    later = [total - sum(numbers[name] - 3 for name in names[: count + 1]) for count in range(len(names))]
    # Which files depend on an input shows when it alone is new; what runs first when jobs race depends on the load.
    change_each = (
        f"make -s -j8; for name in {' '.join(names)}; do touch -d '3 days ago' *.txt; touch -d '2 days ago' build/*; "
        "touch -d yesterday sum.txt; printf '7\\n3\\n' > $name.txt; make -s -j8 > /dev/null; cat sum.txt; done"
    )
    right = {"sum.txt": f"{total}\n"}
    checks = (
        shell_check("make -j8", "rm -rf build sum.txt; make -s -j8", expected=right),
        shell_check("make", "rm -rf build sum.txt; make -s", expected=right),
        shell_check("make -j8 after a change", change_each, stdout="".join(f"{number}\n" for number in later)),
        shell_check(
            "make clean", "make -s; make -s clean", expected={**dict.fromkeys((*right, *outs.split())), **files}
        ),
    )
    order = f"sed -i 's,^build/.*:.*,& | prepare,; s,^sum.txt:,sum.txt: {outs},' Makefile"
    return TerminalTask(
        instruction="make works in a fresh folder, but make -j8 fails or gives a wrong sum.txt, because the Makefile "
        "does not say what depends on what; sum.txt is not updated when an input changes either. Repair the Makefile "
        "so that both work with make and with make -j8, and make clean too.",
        files={"Makefile": makefile, **files},
        expected=files,
        checks=checks,
        solution=(order,),
        near_misses=(
            order.replace("s,^build/.*:.*,& | prepare,; ", ""),
            order.replace("build/.*:.*", "build/.*:"),  # the inputs are order-only prerequisites
            order.partition("; s,^sum")[0] + "' Makefile",
            f"{order}; sed -i 's/^clean:/tidy:/' Makefile",
            order.replace(outs, f"build/{names[0]}"),
            order.replace(outs, f"build/{names[-1]}"),
            "mkdir build; make",
            f"{order}; sed -i 's/head -n 1/head -n 2/' Makefile",
            f"{order}; sed -i 's/-rf build/-f/' Makefile",
            "sed -i 's/sleep 0.3; //' Makefile",
        ),
    )


PROGRAMS = ("make", "awk")
TEMPLATES = (missing_prerequisite, write_a_makefile, repair_a_script, parallel_build)
