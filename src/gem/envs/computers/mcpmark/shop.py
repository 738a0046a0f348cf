"""gem's own tasks for PostgreSQL: the database of a shop, generated from a seed.

What a task expects is computed here, not by the reference queries. A database solves a task if it has exactly the
expected tables, views, columns, keys and rows, and no code: no functions, triggers, rules, policies or types. Therefore
the queries of mismatch() return what is in the tables, whatever the agent has done.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, overload

from gem._internal.inbound import MESSAGE, check_json, loads
from gem.envs.computers.mcpmark.checkout import ServiceTask

SEEDS = 100_000  # databases of each task
MAX_CHARS = 1_000_000  # of the rows of a table, as JSON
CANARY = "gem canary 6c1f5a52-7f0e-4a57-9a0c-mcpmark"
COLUMNS = {
    "customers": {"id": "integer", "name": "text", "city": "text", "email": "text"},
    "products": {"id": "integer", "name": "text", "price": "numeric", "stock": "integer"},
    "orders": {"id": "integer", "customer_id": "integer", "ordered": "date", "status": "text"},
    "order_lines": {"order_id": "integer", "product_id": "integer", "quantity": "integer"},
}
KEYS = [("customers", ("id",)), ("products", ("id",)), ("orders", ("id",)), ("order_lines", ("order_id", "product_id"))]
REFERENCES = [
    ("orders", ("customer_id",), "customers", ("id",), "a"),
    ("order_lines", ("order_id",), "orders", ("id",), "a"),
    ("order_lines", ("product_id",), "products", ("id",), "a"),
]
_NAMES = [
    *("Ada Berg", "Ben Costa", "Cleo Dunn", "Dina Eco", "Emil Falk"),
    *("Fay Grant", "Gus Holm", "Hana Ito", "Ivo Jansen"),
]
_CITIES = ["Bergen", "Dover", "Lyon", "Porto", "Turku"]
_PRODUCTS = ["chair", "desk", "lamp", "paper", "shelf", "stool", "toner", "vase"]
_STATUSES = ["cancelled", "new", "paid", "shipped"]
# Equal names of types; a task names the first.
_TYPES = {"character varying": "text", "bigint": "integer"}
_OWN = "n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND n.nspname !~ '^pg_(temp|toast_temp)_'"

Row = dict[str, Any]
Rows = dict[str, list[Row]]


class QueryFailed(Exception):
    """A query of a verifier failed."""


@dataclass(frozen=True, kw_only=True)
class ShopTask(ServiceTask):
    """A task on the database of the shop.

    Args:
        preparation: SQL that makes the first database.
        rows: expected rows of each table and view.
        columns: expected columns of each table and view, with their types.
        keys, references: expected keys of the tables, apart from tables that the task asks for.
        required: (table, column) that must not be null, besides the columns of primary keys.
        made: name and kind ("r" table, "v" view) of what the task asks for; "" if it asks for none.
        probe: SQL that changes other tables, and the rows of the view after that.
        calls: reference queries.
    """

    preparation: str
    rows: Rows
    columns: dict[str, dict[str, str]] = field(default_factory=lambda: COLUMNS)
    keys: Sequence[tuple[str, tuple[str, ...]]] = tuple(KEYS)
    references: Sequence[tuple[str, tuple[str, ...], str, tuple[str, ...], str]] = tuple(REFERENCES)
    required: frozenset[tuple[str, str]] = frozenset()
    made: tuple[str, str] = ("", "r")
    probe: tuple[str, list[Row]] = ("", [])
    calls: Sequence[str] = ()

    def mismatch(self, query: Callable[[str], str]) -> str:
        """Return "" if a database solves the task, else what is wrong.

        Args:
            query: runs a script and returns its output. It raises QueryFailed if the database refuses it.
        """
        if structure := self._structure_fault(loads(query(_catalog()), "the catalog", MESSAGE)):
            return structure
        change, later = self.probe
        expected = [*self.rows.items(), *([(self.made[0], later)] if change else [])]
        script = ["BEGIN;", *map(_reading, self.rows), change, _reading(self.made[0]) if change else "", "ROLLBACK;"]
        found = query("\n".join(script)).splitlines()
        if len(found) != len(expected):
            return "the tables cannot be read"
        for shown, (name, rows) in zip(found, expected, strict=True):
            if not _equal(shown, rows):
                return f"{name} has other rows than expected{', or does not follow its tables' if change else ''}"
        return ""

    def _structure_fault(self, found: dict[str, Any]) -> str:
        made, kind = self.made
        if found["code"]:
            return f"the database has a {found['code'][0]}, which the task does not ask for"
        expected = {("public", name, kind if name == made else "r", False, "p") for name in self.columns}
        if other := expected ^ {tuple(relation) for relation in found["relations"] or ()}:
            return f"tables and views are missing, or are not as expected: {sorted(name for _, name, *_ in other)}"
        columns: dict[str, dict[str, str]] = defaultdict(dict)
        for table, column, name, required, computed in found["columns"]:
            columns[table][column] = _family(name) if table == made else name
            if table != made and (computed or required != self._is_required(table, column)):
                return f"the column {table}.{column} is not as expected"
        for table in self.columns:
            if columns[table] != self.columns[table]:
                return f"the columns of {table} are not as expected"
        keys = {(table, tuple(names)) for table, names in found["keys"] or () if table != made}
        if keys != {(table, tuple(sorted(names))) for table, names in self.keys}:
            return f"the unique keys are not as expected: {sorted(keys)}"
        references = {
            (table, tuple(names), to, tuple(there), act) for table, names, to, there, act in found["references"] or ()
        }
        if references != set(self.references):
            return f"the foreign keys are not as expected: {sorted(references)}"
        return ""

    def _is_required(self, table: str, column: str) -> bool:
        primary = any(table == name and column in names for name, names in KEYS)
        return primary or (table, column) in self.required


@cache
def _catalog() -> str:
    """Return the query of the structure of a database."""
    return (files("gem.envs") / "data" / "mcpmark" / "catalog.sql").read_text("utf-8").replace("{own}", _OWN)


def _family(name: str) -> str:
    """Return the name that a task uses for a type, such as "text" for "character varying(9)"."""
    name = name.partition("(")[0]
    return _TYPES.get(name, name)


def _reading(name: str) -> str:
    # A view can read the query, so that the query must not contain the expected rows.
    return f"SELECT left(coalesce(jsonb_agg(t), '[]')::text, {MAX_CHARS}) FROM public.{name} t;"


def _equal(found: str, rows: list[Row]) -> bool:
    try:
        check_json(found.encode(), "a table", MESSAGE)
        read = json.loads(found, parse_float=Decimal, parse_int=Decimal)
    except ValueError:  # cut
        return False
    return Counter(map(_values, read)) == Counter(map(_values, rows))


def _values(row: Row) -> frozenset[tuple[str, Any]]:
    return frozenset((k, Decimal(str(v)) if isinstance(v, (int, float, Decimal)) else v) for k, v in row.items())


class ShopTasks(Sequence[ServiceTask]):
    """The tasks of all seeds: five builders, each with SEEDS databases."""

    def __len__(self) -> int:
        return len(BUILDERS) * SEEDS

    @overload
    def __getitem__(self, number: int) -> ShopTask: ...
    @overload
    def __getitem__(self, number: slice) -> list[ServiceTask]: ...
    def __getitem__(self, number: int | slice) -> ServiceTask | list[ServiceTask]:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        if not 0 <= number < len(self):
            raise IndexError(number)
        return build(BUILDERS[number % len(BUILDERS)], number // len(BUILDERS))


def build(builder: Callable[[random.Random, Rows], dict[str, Any]], seed: int) -> ShopTask:
    """Return the task of a builder for a seed."""
    rng = random.Random(f"{builder.__name__} {seed}")
    rows = shop(rng)
    first = {name: [dict(row) for row in table] for name, table in rows.items()}
    fields = builder(rng, rows)
    if "preparation" not in fields:
        fields["preparation"] = creation(first)
    name = f"postgres/easy/shop/{builder.__name__}"
    return ShopTask(name=name, folder=Path(), state=Path(), rows=fields.pop("rows", rows), **fields)


def shop(rng: random.Random) -> Rows:
    """Return the rows of a shop. Prices are exact as floats of two decimals in JSON."""
    customers = [
        {"id": n, "name": name, "city": rng.choice(_CITIES), "email": f"{name.split()[0].lower()}{n}@example.com"}
        for n, name in enumerate(rng.sample(_NAMES, 7), 1)
    ]
    products = [
        {"id": n, "name": name, "price": rng.randrange(200, 9000) / 100, "stock": rng.randrange(60, 200)}
        for n, name in enumerate(rng.sample(_PRODUCTS, 6), 1)
    ]
    orders = [
        {
            "id": 100 + n,
            "customer_id": rng.choice(customers)["id"],
            "ordered": f"{rng.choice((2024, 2025))}-{rng.randrange(1, 7):02}-{rng.randrange(1, 29):02}",
            "status": _STATUSES[n % 4],
        }
        for n in range(30)
    ]
    lines = [
        {"order_id": order["id"], "product_id": product["id"], "quantity": rng.randrange(1, 6)}
        for order in orders
        for product in rng.sample(products, rng.randrange(1, 4))
    ]
    return {"customers": customers, "products": products, "orders": orders, "order_lines": lines}


def creation(rows: Rows, keys: bool = True) -> str:
    """Return SQL that creates the tables, with their keys unless told otherwise."""
    script = []
    for table, columns in COLUMNS.items():
        rules = [f"PRIMARY KEY ({', '.join(names)})" for name, names in KEYS if name == table] if keys else []
        required = {column for name, names in KEYS if name == table for column in names}
        rules += [
            f"FOREIGN KEY ({', '.join(names)}) REFERENCES {to} ({', '.join(there)})"
            for name, names, to, there, _ in REFERENCES
            if name == table and keys
        ]
        shown = [f"{name} {kind}{' NOT NULL' if name in required else ''}" for name, kind in columns.items()]
        script.append(f"CREATE TABLE {table} ({', '.join([*shown, *rules])});")
        script.append(insertion(table, rows[table]))
    return "\n".join([*script, f"COMMENT ON TABLE customers IS '{CANARY}';"])


def insertion(table: str, rows: list[Row]) -> str:
    values = ",\n ".join(f"({', '.join(map(_sql, row.values()))})" for row in rows)
    return f"INSERT INTO {table} VALUES {values};"


def _sql(value: Any) -> str:
    return str(value) if isinstance(value, (int, float)) else "'" + value.replace("'", "''") + "'"


# ---- the tasks: each changes ``rows`` to what is expected, and returns the other fields of its ShopTask


def merge_customers(rng: random.Random, rows: Rows) -> dict[str, Any]:
    customers = rows["customers"]
    twins = rng.sample(customers, 3)
    for number, twin in enumerate(twins, 11):
        email = twin["email"].upper() if number % 2 else twin["email"].title()
        customers.append({"id": number, "name": twin["name"].split()[0], "city": twin["city"], "email": email})
    namesake = rng.choice(customers[:7])  # a second person of this name and city
    customers.append({**namesake, "id": 14, "email": f"x{namesake['email']}"})
    for order in rows["orders"][::3]:
        order["customer_id"] = rng.choice((11, 12, 13, 14))
    preparation = creation(rows)
    kept = {number: twin["id"] for number, twin in enumerate(twins, 11)}
    rows["customers"] = [row for row in customers if row["id"] not in kept]
    for order in rows["orders"]:
        order["customer_id"] = kept.get(order["customer_id"], order["customer_id"])
    return {
        "preparation": preparation,
        "description": "Some people are in `customers` twice: their email addresses are equal apart from upper and "
        "lower case. Of each such pair keep the row with the smaller `id` as it is, let the orders of the other row "
        "belong to it, and delete the other row.",
        "calls": [
            "UPDATE orders o SET customer_id = (SELECT min(k.id) FROM customers k JOIN customers c ON lower(k.email) "
            "= lower(c.email) WHERE c.id = o.customer_id)",
            "DELETE FROM customers c USING customers k WHERE lower(k.email) = lower(c.email) AND k.id < c.id",
        ],
    }


def monthly_sales(rng: random.Random, rows: Rows) -> dict[str, Any]:
    year = rng.choice(("2024", "2025"))
    prices = {product["id"]: round(product["price"] * 100) for product in rows["products"]}
    months = {order["id"]: order["ordered"][:7] for order in rows["orders"] if order["status"] in ("paid", "shipped")}
    months = {number: month for number, month in months.items() if month.startswith(year)}
    revenue: Counter[str] = Counter()
    for line in rows["order_lines"]:
        if line["order_id"] in months:
            revenue[months[line["order_id"]]] += line["quantity"] * prices[line["product_id"]]
    made = [
        {"month": month, "orders": count, "revenue": revenue[month] / 100}
        for month, count in Counter(months.values()).items()
    ]
    return {
        "rows": {**rows, "monthly_sales": made},
        "columns": {**COLUMNS, "monthly_sales": {"month": "text", "orders": "integer", "revenue": "numeric"}},
        "made": ("monthly_sales", "r"),
        "description": f"Create the table `monthly_sales` with the columns `month` (text, such as {year}-03), "
        f"`orders` (integer) and `revenue` (numeric). It has one row for each month of {year} with orders whose "
        "status is `paid` or `shipped`: their number, and the sum of quantity times price of their lines.",
        "calls": [
            "CREATE TABLE monthly_sales AS SELECT to_char(o.ordered, 'YYYY-MM') AS month, count(DISTINCT o.id) AS "
            "orders, sum(l.quantity * p.price) AS revenue FROM orders o JOIN order_lines l ON l.order_id = o.id JOIN "
            "products p ON p.id = l.product_id WHERE o.status IN ('paid', 'shipped') AND extract(year FROM "
            f"o.ordered) = {year} GROUP BY 1"
        ],
    }


def ship_orders(rng: random.Random, rows: Rows) -> dict[str, Any]:
    day = f"2025-0{rng.randrange(2, 5)}-15"
    for order, ordered in zip((o for o in rows["orders"] if o["status"] == "paid"), ("2024-05-03", day), strict=False):
        order["ordered"] = ordered
    preparation = creation(rows)
    ready = {order["id"] for order in rows["orders"] if order["status"] == "paid" and order["ordered"] < day}
    for order in rows["orders"]:
        if order["id"] in ready:
            order["status"] = "shipped"
    taken: Counter[int] = Counter()
    for line in rows["order_lines"]:
        taken[line["product_id"]] += line["quantity"] * (line["order_id"] in ready)
    for product in rows["products"]:
        product["stock"] -= taken[product["id"]]
    return {
        "preparation": preparation,
        "description": f"All orders with status `paid` from before {day} leave today. Set their status to `shipped`, "
        "and subtract the quantities of their lines from the `stock` of the products. No other order changes.",
        "calls": [
            "UPDATE products p SET stock = stock - s.total FROM (SELECT l.product_id, sum(l.quantity) AS total FROM "
            f"order_lines l JOIN orders o ON o.id = l.order_id WHERE o.status = 'paid' AND o.ordered < '{day}' GROUP "
            "BY 1) s WHERE s.product_id = p.id; UPDATE orders SET status = 'shipped' WHERE status = 'paid' AND "
            f"ordered < '{day}'"
        ],
    }


def add_keys(rng: random.Random, rows: Rows) -> dict[str, Any]:
    first = {name: list(table) for name, table in rows.items()}
    lost = [{"order_id": 900 + n, "product_id": rng.randrange(1, 7), "quantity": 1} for n in range(3)]
    gone = [{"order_id": rows["orders"][n]["id"], "product_id": 70 + n, "quantity": 2} for n in range(2)]
    first["order_lines"] = rng.sample([*first["order_lines"], *lost, *gone], len(first["order_lines"]) + 5)
    return {
        "preparation": creation(first, keys=False),
        "required": frozenset({("customers", "email")}),
        "keys": (*KEYS, ("customers", ("email",))),
        "references": [
            (table, names, to, there, "c" if to == "orders" else "a") for table, names, to, there, _ in REFERENCES
        ],
        "description": "The tables have no keys. Delete the rows of `order_lines` whose order or product does not "
        "exist. Then add primary keys (`id`; for `order_lines` the order and the product) and foreign keys for "
        "`customer_id`, `order_id` and `product_id`. Deleting an order must delete its lines; other deletions of "
        "referenced rows must fail. Last, `email` of `customers` must be unique and not null.",
        "calls": [
            "DELETE FROM order_lines WHERE order_id NOT IN (SELECT id FROM orders) OR product_id NOT IN (SELECT id "
            "FROM products)",
            "ALTER TABLE customers ADD PRIMARY KEY (id), ADD UNIQUE (email), ALTER email SET NOT NULL; ALTER TABLE "
            "products ADD PRIMARY KEY (id); ALTER TABLE orders ADD PRIMARY KEY (id), ADD FOREIGN KEY (customer_id) "
            "REFERENCES customers; ALTER TABLE order_lines ADD PRIMARY KEY (order_id, product_id), ADD FOREIGN KEY "
            "(product_id) REFERENCES products, ADD FOREIGN KEY (order_id) REFERENCES orders ON DELETE CASCADE",
        ],
    }


def city_view(rng: random.Random, rows: Rows) -> dict[str, Any]:
    status = rng.choice(_STATUSES[1:])

    def counted(rows: Rows) -> list[Row]:
        people = Counter(row["city"] for row in rows["customers"])
        homes = {row["id"]: row["city"] for row in rows["customers"]}
        orders = Counter(homes[row["customer_id"]] for row in rows["orders"] if row["status"] == status)
        return [{"city": city, "customers": count, "orders": orders[city]} for city, count in people.items()]

    more = [{"id": 50, "name": "Kim", "city": "Nauru", "email": "kim@example.com"}]
    more += [{"id": 51, "name": "Lou", "city": rows["customers"][0]["city"], "email": "lou@example.com"}]
    orders = [{"id": 500 + n, "customer_id": 51, "ordered": "2025-03-02", "status": _STATUSES[n % 4]} for n in range(6)]
    later = {"customers": [*rows["customers"], *more], "orders": [*rows["orders"], *orders]}
    probe = "\n".join(insertion(f"public.{table}", new) for table, new in (("customers", more), ("orders", orders)))
    return {
        "rows": {**rows, "city_orders": counted(rows)},
        "columns": {**COLUMNS, "city_orders": {"city": "text", "customers": "integer", "orders": "integer"}},
        "made": ("city_orders", "v"),
        "probe": (probe, counted(later)),
        "description": "Create the view `city_orders` with the columns `city`, `customers` and `orders`. It has one "
        "row for each city of customers: the number of its customers, and the number of their orders with status "
        f"`{status}`, which may be 0. It must follow later changes of the tables.",
        "calls": [
            "CREATE VIEW city_orders AS SELECT c.city, count(DISTINCT c.id) AS customers, count(o.id) AS orders FROM "
            f"customers c LEFT JOIN orders o ON o.customer_id = c.id AND o.status = '{status}' GROUP BY c.city"
        ],
    }


BUILDERS = (merge_customers, monthly_sales, ship_orders, add_keys, city_view)
