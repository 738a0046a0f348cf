# gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
import os
import tempfile

from kvlog import Conflict, DamagedLog, Log, Store, decode, encode


class Clock:
    def __init__(self):
        self.now = 100

    def __call__(self):
        return self.now


def in_file(*steps, clock=None, **options):
    """Run each step on a store opened anew on the same file. Returns their results and the file's lines."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log")
        results = []
        for step in steps:
            with Store(path, clock=clock or Clock(), **options) as store:
                results.append(step(store))
        with open(path, encoding="utf-8", newline="") as file:
            return results, file.read()


def shown(store):
    return [(key, store.get(key), store.version(key)) for key in store.keys()]


def damaged(change, *records):
    """Return what is read from a file whose bytes were changed, and its size afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log")
        log = Log(path)
        for record in records:
            log.append(record)
        log.close()
        with open(path, "rb") as file:
            data = file.read()
        with open(path, "wb") as file:
            file.write(change(data))
        log = Log(path)
        try:
            found = log.read()
        except DamagedLog as error:
            return "damaged", error.line
        log.append([("delete", ["later", 9])])
        log.close()
        again = Log(path)
        try:
            return found, again.read(), again.records
        finally:
            again.close()


ONE = [("set", ["a", "1", 1, None])]
TWO = [("set", ["b", "2", 1, None])]
BOTH = [("set", ["c", "3", 1, 7.5]), ("delete", ["a", 1])]


def probe_get_and_set():
    store = Store()
    return [store.set("a", "x"), store.get("a"), store.get("b"), store.get("b", 5), "a" in store, "b" in store]


def probe_delete():
    store = Store()
    store.set("a", "x")
    return [store.delete("a"), store.delete("a"), store.delete("b"), store.get("a"), len(store), store.version("a")]


def probe_versions():
    store = Store()
    return [store.set("a", "1"), store.set("a", "1"), store.version("a"), store.version("b"), store.set("b", "")]


def probe_versions_after_deletion():
    store = Store()
    store.set("a", "1")
    store.set("a", "2")
    store.delete("a")
    return [store.version("a"), store.set("a", "3")]


def probe_versions_after_deletion_in_file():
    def first(store):
        store.set("a", "1")
        store.set("a", "2")
        return store.delete("a")

    return in_file(first, lambda store: store.set("a", "3"))


def probe_expected_version():
    store = Store()
    results = [store.set("a", "1", expected=0), store.set("a", "2", expected=1)]
    for expected in (0, 1, 3):
        try:
            results.append(store.set("a", "9", expected=expected))
        except Conflict as error:
            results.append(("conflict", error.version, str(error)))
    return [*results, store.get("a")]


def probe_expected_version_of_deletion():
    store = Store()
    store.set("a", "1")
    results = []
    for expected in (0, 2, 1, 0):
        try:
            results.append(store.delete("a", expected=expected))
        except Conflict as error:
            results.append(("conflict", error.version))
    return results


def probe_expected_version_of_expired():
    clock = Clock()
    store = Store(clock=clock)
    store.set("a", "1", seconds=5)
    clock.now = 105
    results = [store.version("a"), store.set("a", "2", expected=0)]
    return [*results, store.version("a")]


def probe_expiry():
    clock = Clock()
    store = Store(clock=clock)
    store.set("a", "1", seconds=5)
    store.set("b", "2")
    results = []
    for now in (104, 105, 106):
        clock.now = now
        results.append((store.get("a"), store.keys(), len(store), "a" in store))
    return [*results, store.delete("a")]


def probe_expiry_is_replaced():
    clock = Clock()
    store = Store(clock=clock)
    store.set("a", "1", seconds=5)
    store.set("a", "2")
    store.set("b", "1")
    store.set("b", "2", seconds=3)
    clock.now = 110
    return shown(store)


def probe_expiry_in_file():
    clock = Clock()

    def later(store):
        clock.now = 104
        before = shown(store)
        clock.now = 105.5
        return before, shown(store)

    return in_file(lambda store: store.set("a", "1", seconds=5.5), later, clock=clock)


def probe_seconds():
    return Store().set("a", "1", seconds=0)


def probe_add():
    store = Store()
    store.set("b", "40")
    return [store.add("a"), store.add("a", 5), store.add("b", -42), store.get("a"), store.version("a"), shown(store)]


def probe_add_to_text():
    store = Store()
    store.set("a", "x")
    return store.add("a")


def probe_add_keeps_expiry():
    clock = Clock()
    store = Store(clock=clock)
    store.set("a", "7", seconds=10)
    results = [store.add("a", 1)]
    clock.now = 112
    return [*results, store.get("a"), store.add("a", 1), store.get("a"), store.version("a")]


def probe_rename():
    store = Store()
    store.set("a", "1")
    store.set("b", "2")
    store.set("b", "3")
    store.rename("a", "b")
    store.rename("b", "b")
    return shown(store)


def probe_rename_missing():
    return Store().rename("a", "b")


def probe_rename_keeps_expiry():
    clock = Clock()
    store = Store(clock=clock)
    store.set("a", "1", seconds=4)
    store.rename("a", "b")
    results = [store.get("b")]
    clock.now = 104
    return [*results, store.get("b")]


def probe_rename_is_one_transaction():
    return in_file(lambda store: [store.set("a", "1"), store.rename("a", "b")], shown)


def probe_keys():
    store = Store()
    for key in ("b/2", "a", "b/1", "b", "c", "b/10"):
        store.set(key, key)
    store.delete("c")
    return [store.keys(), store.keys("b/"), store.keys("z"), store.keys(start="b"), store.keys("b/", start="b/1")]


def probe_keys_with_limit():
    store = Store()
    for key in "dbca":
        store.set(key, key)
    return [store.keys(limit=2), store.keys(limit=0), store.keys(limit=9), store.keys(start="b", limit=1)]


def probe_transaction():
    store = Store()
    with store.transaction() as inner:
        inner.set("a", "1")
        store.set("b", "2")
        seen = store.get("a")
    return [seen, shown(store)]


def probe_transaction_taken_back():
    store = Store()
    store.set("a", "1")
    store.set("b", "1")
    try:
        with store.transaction():
            store.set("a", "2")
            store.delete("b")
            store.set("c", "1")
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    return [shown(store), store.set("c", "1"), store.set("a", "3")]


def probe_transactions_nested():
    store = Store()
    with store.transaction():
        store.set("a", "1")
        try:
            with store.transaction():
                store.set("a", "2")
                store.set("b", "2")
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        with store.transaction():
            store.set("c", "3")
        store.set("d", "4")
    return shown(store)


def probe_transactions_nested_in_file():
    def steps(store):
        with store.transaction():
            store.set("a", "1")
            try:
                with store.transaction():
                    store.set("b", "2")
                    raise ZeroDivisionError
            except ZeroDivisionError:
                pass
            with store.transaction():
                store.set("c", "3")
            store.set("d", "4")
        store.set("e", "5")

    return in_file(steps, shown)


def probe_outer_transaction_taken_back():
    def steps(store):
        store.set("a", "1")
        try:
            with store.transaction():
                with store.transaction():
                    store.set("b", "2")
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        store.set("c", "3")

    return in_file(steps, shown)


def probe_empty_transaction():
    def steps(store):
        with store.transaction():
            pass

    return in_file(steps, shown)


def probe_file():
    def first(store):
        store.set("a", "1")
        store.set("b", "2")
        store.set("a", "3")
        store.delete("b")

    return in_file(first, shown)


def probe_file_with_special_text():
    texts = ["tab\there", "line\nbreak", "back\\slash", "\\n", "return\r", "", "ümlaut 日本", "\\0", "\\\\t"]

    def first(store):
        for number, text in enumerate(texts):
            store.set(f"{number}{text}", text)

    results, text = in_file(first, lambda store: [store.get(key) for key in store.keys()])
    return [results[1] == texts, results[1], text]


def probe_compaction():
    def first(store):
        for number in range(5):
            store.set("a", str(number))
        store.set("b", "x")
        store.set("c", "y")
        store.delete("c")
        store.compact()
        return store.set("a", "more")

    return in_file(first, shown, lambda store: store.set("c", "z"))


def probe_compaction_by_itself():
    def first(store):
        for number in range(9):
            store.set("a", str(number))
            store.set(f"b{number}", "x")
        return store.log.records

    return in_file(first, shown, compact_after=4)


def probe_compaction_limit():
    sizes = []

    def first(store):
        for number in range(8):
            store.set("a", str(number))
            sizes.append(store.log.records)

    in_file(first, compact_after=3)
    return sizes


def probe_compaction_removes_expired():
    clock = Clock()

    def first(store):
        store.set("a", "1", seconds=5)
        store.set("b", "2", seconds=50)
        clock.now = 110
        store.compact()
        return len(store.entries)

    return in_file(first, shown, clock=clock)


def probe_compaction_in_transaction():
    store = Store()
    with store.transaction():
        store.compact()


def probe_compaction_in_memory():
    store = Store()
    store.set("a", "1")
    store.delete("a")
    store.set("b", "1")
    store.set("b", "2")
    store.compact()
    return [shown(store), store.set("a", "2"), store.set("b", "3")]


def probe_records():
    return [encode("set", "a", "b", 1, None), encode("begin"), encode("delete", "x\ty", 2)]


def probe_records_are_read():
    return [decode(encode("set", "a\\\n", "\t\r", 1, 2.5)), decode(encode("commit")), decode(encode("delete", "", 0))]


def probe_record_with_wrong_fields():
    return encode("set", "a", "b")


def probe_record_damaged():
    results = []
    line = encode("set", "a", "b", 1, None)
    for changed in (line[:-1], line.replace("a\tb", "a\tc"), "\n", line.upper(), line[1:], "x" + line):
        try:
            results.append(decode(changed))
        except ValueError as error:
            results.append(str(error))
    return results


def probe_log():
    return [damaged(lambda data: data, ONE, BOTH, TWO), damaged(lambda data: b""), damaged(lambda data: b"x")]


def probe_log_with_half_a_line():
    return [damaged(lambda data: data[:-1], ONE, TWO), damaged(lambda data: data + b"123", ONE, TWO)]


def probe_log_with_half_a_transaction():
    return [damaged(lambda data: data[:-9], ONE, BOTH), damaged(lambda data: data[:-30], TWO, BOTH)]


def probe_log_with_wrong_last_line():
    return [damaged(lambda data: data[:-3] + b"7" + data[-2:], ONE, TWO), damaged(lambda d: d + b"\n\n", ONE)]


def probe_log_damaged_in_the_middle():
    def change(data):
        return data.replace(b"a\t1", b"a\t2")

    return [damaged(change, ONE, TWO), damaged(change, TWO, ONE), damaged(change, TWO, ONE, BOTH)]


def probe_log_with_special_characters():
    record = [("set", ["日", "ü\x0b\x0c\x85\u2028z", 1, None])]
    return [damaged(lambda data: data, record, TWO), damaged(lambda data: data[:-1], record, TWO)]


def probe_expiry_between_whole_seconds():
    clock = Clock()
    store = Store(clock=clock)
    store.set("a", "1", seconds=5)
    store.set("b", "1", seconds=0.5)
    results = []
    for now in (100.25, 100.5, 104.001, 104.75, 104.999, 105.0):
        clock.now = now
        results.append((store.get("a"), store.get("b"), len(store)))
    return results


def probe_three_transactions_in_file():
    def inner_fails(store):
        with store.transaction():
            store.set("a", "1")
            with store.transaction():
                store.set("b", "1")
                try:
                    with store.transaction():
                        store.set("c", "1")
                        raise ZeroDivisionError
                except ZeroDivisionError:
                    pass
        return shown(store)

    def outer_fails(store):
        try:
            with store.transaction():
                store.set("a", "2")
                with store.transaction():
                    with store.transaction():
                        store.set("d", "2")
                    store.set("b", "2")
                raise ZeroDivisionError
        except ZeroDivisionError:
            return shown(store)

    def middle_fails(store):
        with store.transaction():
            store.set("a", "3")
            try:
                with store.transaction():
                    with store.transaction():
                        store.set("e", "3")
                    raise ZeroDivisionError
            except ZeroDivisionError:
                pass
        return shown(store)

    return in_file(inner_fails, outer_fails, middle_fails, shown)
