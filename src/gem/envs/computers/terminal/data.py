"""terminal:Data — tasks with CSV files, JSON files and SQLite databases.

Canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
"""

from __future__ import annotations

import json
import random
from typing import Any

from gem.envs.computers.task import HiddenCheck, TerminalTask
from gem.envs.computers.terminal.text import NAMES, WORDS

CITIES = ("Arendal", "Bruck", "Corvo", "Delft", "Ennis", "Fano", "Gera", "Horta")
SQL = "sqlite3 -batch -init /dev/null"


def database_check(name: str, query: str, printed: str) -> HiddenCheck:
    """Return a check of what a query of an SQLite database prints."""
    arguments = ("/usr/bin/env", *SQL.split(), "-readonly", name, query)
    return HiddenCheck(name=name, arguments=arguments, stdout=printed, only=(name,))


def total_per_customer(rng: random.Random, level: int) -> TerminalTask:
    """Add up a column of a CSV file whose fields contain commas and quotes."""
    customers = [f"{name.capitalize()}, {rng.choice(CITIES)}" for name in rng.sample(NAMES, 3 + 2 * level)]
    customers[0] = customers[0].replace(",", ' "the boss",')
    rows = [(rng.choice(customers), f'{rng.choice(WORDS)} 5"', rng.randint(1, 400)) for _ in range(20 * level)]
    rows += [(customer, rng.choice(WORDS), rng.randint(401, 900)) for customer in customers]
    sums = [sum(amount for c, _, amount in rows if c == customer) for customer in customers[1:3]]
    rows += [(c, "", max(sums) - total + 1) for c, total in zip(customers[1:3], sums, strict=True)]  # equal sums
    rng.shuffle(rows)
    text = "customer,item,amount\n" + "".join(f"{_quoted(c)},{_quoted(i)},{a}\n" for c, i, a in rows)
    totals = {customer: sum(amount for c, _, amount in rows if c == customer) for customer in customers}
    ranked = sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))
    load = "sqlite3 -separator '|' :memory: '.import --csv orders.csv o' "
    query = "select customer, sum(amount) s from o group by 1 order by s desc, 1"
    return TerminalTask(
        instruction="orders.csv is a CSV file with a header; fields may be in double quotes, and a doubled quote "
        "stands for a quote. Write one line per customer to totals.txt: the customer as it would be without quoting, "
        "the character |, and the sum of the amounts. The largest sum comes first; customers with equal sums are in "
        "alphabetical order. There is no header.",
        files={"orders.csv": text},
        expected={"totals.txt": "".join(f"{c}|{total}\n" for c, total in ranked), "orders.csv": text},
        solution=(f"{load} '{query}' > totals.txt",),
        near_misses=(
            "awk -F, 'NR > 1 { t[$1] += $NF } END { for (c in t) print c \"|\" t[c] }' orders.csv | sort > totals.txt",
            f"{load} '{query.replace(' desc', '')}' > totals.txt",
            f"{load} '{query.replace('s desc, 1', 's desc, 1 desc')}' > totals.txt",
            f"{load} '{query}' | sed 's/\"/\"\"/g' > totals.txt",
            f"{load} '{query.replace('sum(amount)', 'count(*)')}' > totals.txt",
            f"{load} '{query.replace('sum(amount)', 'max(amount)')}' > totals.txt",
            f"{load.replace('|', ',')} '{query}' > totals.txt",
            f"{load} '.headers on' '{query}' > totals.txt",
        ),
    )


def select_from_json(rng: random.Random, level: int) -> TerminalTask:
    """List the people of a JSON file that fulfil two conditions."""
    names = rng.sample(NAMES, 6 + 6 * level)
    cities = rng.sample(CITIES, 3)
    people: list[dict[str, Any]] = [
        {"name": name, "age": rng.randint(16, 70), "address": {"city": rng.choice(cities), "birthplace": cities[0]}}
        for name in names
    ]
    limit = sorted(person["age"] for person in people)[len(people) // 3]
    people[0] = {"name": names[0], "age": limit, "address": {"city": cities[0], "birthplace": cities[1]}}
    people[1] = {"name": names[1], "age": limit + 1, "address": {"city": cities[0], "birthplace": cities[1]}}
    people[2] = {"name": names[2], "age": limit - 1, "address": {"city": cities[0], "birthplace": cities[0]}}
    people[3] = {"name": names[3], "age": limit + 2, "address": {"city": cities[1], "birthplace": cities[0]}}
    rng.shuffle(people)
    found = sorted(
        (p for p in people if p["age"] >= limit and p["address"]["city"] == cities[0]),
        key=lambda p: str(p["name"]),
    )
    text = json.dumps(people, indent=1) + "\n"
    query = (
        "select json_extract(value, '$.name') n, json_extract(value, '$.age') a from "
        "json_each(readfile('people.json')) "
        f"where a >= {limit} and json_extract(value, '$.address.city') = '{cities[0]}' order by n"
    )

    def script(query: str, separator: str = " ") -> str:
        return f'sqlite3 -separator "{separator}" :memory: "{query}" > found.txt'.replace("'$.", "'\\$.")

    return TerminalTask(
        instruction=f"people.json is a list of people. Write those who live in {cities[0]} and are at least {limit} "
        "years old to found.txt, one line each: the name, a space, the age. Sort the lines by name.",
        files={"people.json": text},
        expected={"found.txt": "".join(f"{p['name']} {p['age']}\n" for p in found), "people.json": text},
        solution=(script(query),),
        near_misses=(
            script(query.replace(">=", ">")),
            script(query.replace(".city", ".birthplace")),
            script(query.replace("order by n", "order by n desc")) + "; echo >> found.txt",
            script(query, ","),
            script(query.replace(f"a >= {limit} and", "")),
            script(query.replace("order by n", "limit 1")) if len(found) > 1 else "touch found.txt",
        ),
    )


def query_a_database(rng: random.Random, level: int) -> TerminalTask:
    """Count the orders of each customer, customers without any included."""
    names = rng.sample(NAMES, 5 + 3 * level)
    orders = [(rng.randrange(len(names) - 2), rng.choice(["paid", "open", "cancelled"])) for _ in range(15 * level)]
    orders += [(0, "paid"), (0, "cancelled"), (1, "open"), (len(names) - 2, "cancelled")]
    rng.shuffle(orders)
    lines = ["create table customers (id integer primary key, name text);"]
    lines += ["create table orders (id integer primary key, customer integer, status text);"]
    lines += [f"insert into customers values ({10 + i}, '{name}');" for i, name in enumerate(names)]
    lines += [f"insert into orders (customer, status) values ({10 + i}, '{status}');" for i, status in orders]
    counts = sorted((name, sum(o[0] == i and o[1] != "cancelled" for o in orders)) for i, name in enumerate(names))
    query = (
        "select name, count(o.id) from customers c left join orders o on o.customer = c.id and status != 'cancelled' "
        "group by c.id order by name"
    )
    run = f'{SQL} -csv shop.db "{{}}" > counts.csv'
    return TerminalTask(
        instruction="shop.db is an SQLite database. Write the name and the number of orders of every customer to "
        "counts.csv, as name,number, sorted by name and without a header. Lines end with a line feed, without a "
        "carriage return. Orders whose status is cancelled do not count. Customers without orders have the number 0.",
        files={},
        setup=f"{SQL} shop.db <<'END'\nbegin;\n" + "\n".join(lines) + "\ncommit;\nEND",
        expected={"counts.csv": "".join(f"{name},{count}\n" for name, count in counts)},
        solution=(run.format(query),),
        near_misses=(
            run.format(query.replace("left join", "join")),
            run.format(query.replace("count(o.id)", "count(*)")),
            run.format(query.replace(" and status != 'cancelled'", "")),
            run.format(query.replace("and status", "where status")),
            run.format(query.replace("order by name", "order by name desc")),
            run.format(query).replace("-csv", "-csv -header"),
            run.format(query) + "; sed -i 's/$/\\r/' counts.csv",
        ),
    )


def remove_duplicates(rng: random.Random, level: int) -> TerminalTask:
    """Remove rows of a database that repeat earlier ones, without regard to case."""
    names = rng.sample(NAMES, 5 + 4 * level)
    rows = [(name, f"{name}@example.org") for name in names]
    rows += [(name, mail.upper()) for name, mail in rng.sample(rows, 2 + level)]
    rows += [(f"{name} 2", mail.capitalize()) for name, mail in rng.sample(rows[: len(names)], 2)]
    rng.shuffle(rows)
    ids = sorted(rng.sample(range(1, 500), len(rows)))
    table = list(zip(ids, rows, strict=True))
    first: dict[str, int] = {}
    for number, (_, mail) in table:
        first.setdefault(mail.lower(), number)
    kept = [(number, row) for number, row in table if number in first.values()]
    inserts = "\n".join(f"insert into users values ({i}, '{name}', '{mail}');" for i, (name, mail) in table)
    delete = "delete from users where id not in (select min(id) from users group by lower(mail))"
    run, rename = f'{SQL} users.db "{{}}"', "alter table u rename to users"
    show = (
        "select id, name, mail from users order by id; select count(*) from sqlite_master; "
        "select name, lower(type), pk from pragma_table_info('users')"
    )
    return TerminalTask(
        instruction="The table users of the SQLite database users.db has users more than once: two rows with the same "
        "mail address, without regard to upper and lower case, are the same user. Of each user keep only the row with "
        "the smallest id, unchanged, and delete the others. Do not change the schema.",
        files={},
        setup=f"{SQL} users.db <<'END'\nbegin;\ncreate table users (id integer primary key, name text, mail text);\n"
        f"{inserts}\ncommit;\nEND",
        expected={},
        checks=(
            database_check(
                "users.db",
                show,
                "".join(f"{i}|{name}|{mail}\n" for i, (name, mail) in kept)
                + "1\nid|integer|1\nname|text|0\nmail|text|0\n",
            ),
        ),
        solution=(run.format(delete),),
        near_misses=(
            run.format(delete.replace("lower(mail)", "mail")),
            run.format(delete.replace("min(id)", "max(id)")),
            run.format(delete.replace("lower(mail)", "name")),
            run.format(f"update users set mail = lower(mail); {delete}"),
            run.format(f"{delete}; create index i on users (mail)"),
            run.format(delete.replace("not in", "in")),
            run.format(f"create table kept as select * from users; {delete}"),
            run.format(f"create table u as select * from users; drop table users; {rename}; {delete}"),
        ),
    )


def load_json_into_a_database(rng: random.Random, level: int) -> TerminalTask:
    """Make a database of measurements from JSON files, one object per line."""
    files: dict[str, str] = {}
    rows = []
    for station in rng.sample(WORDS, 1 + level):
        lines: list[str] = []
        for day in sorted(rng.sample(range(1, 29), 4 + 2 * level)):
            value = None if rng.random() < 0.3 and lines else rng.randint(-200, 400) / 10
            lines.append(json.dumps({"day": f"2024-03-{day:02d}", "value": value}))
            if value is not None:
                rows.append((station, f"2024-03-{day:02d}", value))
        lines.append(json.dumps({"day": "2024-03-30", "value": None}))
        files[f"stations/{station}.jsonl"] = "\n".join(lines) + "\n"
    make = "create table m (station text, day text, value real);"
    insert = (
        "insert into m select '$s', json_extract(value, '\\$.day'), json_extract(value, '\\$.value') from "
        "json_each('['||replace(rtrim(readfile('$f'), char(10)), char(10), ',')||']') "
        "where json_extract(value, '\\$.value') is not null;"
    )

    def script(insert: str = insert, make: str = make, rest: str = "") -> str:
        loop = f'for f in stations/*.jsonl; do s=$(basename $f .jsonl); {SQL} m.db "{insert}"; done'
        return f'{SQL} m.db "{make}"; {loop}' + (f'; {SQL} m.db "{rest}"' if rest else "")

    query = (
        "select station, day, printf('%.1f', value), typeof(value), typeof(station), typeof(day) from m "
        "order by station, day; "
        "select lower(type) t from pragma_table_info('m') where lower(name) in ('station', 'day', 'value') order by t; "
        "select type from sqlite_master where lower(name) = 'm'"
    )
    return TerminalTask(
        instruction="Each file of the folder stations has the measurements of one station, one JSON object per line; "
        "the station has the name of the file without .jsonl. Create the SQLite database m.db with a table m that has "
        "the columns station (text), day (text) and value (real), and one row per measurement. Leave out those whose "
        "value is null.",
        files=files,
        expected=files,
        checks=(
            database_check(
                "m.db",
                query,
                "".join(f"{s}|{d}|{v:.1f}|real|text|text\n" for s, d, v in sorted(rows)) + "real\ntext\ntext\ntable\n",
            ),
        ),
        solution=(script(),),
        near_misses=(
            script(insert.partition(" where")[0] + ";"),
            script(insert.replace("'$s'", "'$f'")),
            script(make=make.replace("real", "text")),
            script(make=make.replace(" text", "")),
            script(insert.replace("is not null", "> 0 or json_extract(value, '\\$.value') < -1000")),
            script(rest="delete from m where rowid = (select max(rowid) from m)"),
            script(rest="insert into m select * from m limit 1"),
            script(rest="alter table m rename to n; create view m as select * from n"),
            script(rest="update m set day = cast(day as blob)"),
        ),
    )


def _quoted(field: str) -> str:
    return '"' + field.replace('"', '""') + '"' if "," in field or '"' in field else field


PROGRAMS = ("sqlite3", "awk")
TEMPLATES = (total_per_customer, select_from_json, query_a_database, remove_duplicates, load_json_into_a_database)
