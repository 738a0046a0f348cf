"""MCPMark with PostgreSQL: gem's own tasks and near misses, the rights of the agent, checkouts, and the end."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time

import pytest

import gem
from gem.datasets import MissingData
from gem.envs.computers.mcpmark import cluster
from gem.envs.computers.mcpmark.checkout import read_tasks
from gem.envs.computers.mcpmark.shop import BUILDERS, SEEDS, ShopTasks, build
from gem.errors import BadValue, MissingDependency, SandboxError

pytest.importorskip("mcp")
from gem.envs.computers.mcpmark.mcpmark_env import Oracle, ShopTaskEnv, State, TaskEnv

TASKS = {builder.__name__: builder for builder in BUILDERS}


@pytest.fixture(autouse=True)
def programs():
    try:
        cluster.programs()
    except MissingDependency as e:
        pytest.skip(str(e))


@pytest.fixture(scope="module")
def env():
    try:
        env = ShopTaskEnv()
    except MissingDependency as e:
        pytest.skip(str(e))
    with env:
        yield env


def run(service, sql):
    """Run SQL as the agent. Returns its output, or the first line of the error."""
    variables = service.cluster.variables(service.role, service._password, service.database)
    done = service.cluster.sql(sql, variables=variables)
    return (done.stdout or done.stderr).decode()


def play(env, name, *queries, seed=0):
    """Return the last step of an episode of a task, with queries of the agent."""
    env.state = State(list(TASKS).index(name) + len(TASKS) * seed)
    env.service.start(env.task())
    if queries:
        shown = run(env.service, "; ".join([*queries, ""]))
        assert "ERROR" not in shown, shown
    return env.step("Done.")


def references(name, seed=0):
    return build(TASKS[name], seed).calls


# ---- our own tasks


@pytest.mark.parametrize("name", TASKS)
def test_the_reference_scores_1_and_doing_nothing_0(env, name):
    assert play(env, name, *references(name)).reward == 1.0
    assert play(env, name, seed=7).reward == 0.0


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(100))
def test_the_references_score_1_and_doing_nothing_0_with_many_seeds(env, seed):
    for name in TASKS:
        assert play(env, name, *references(name, seed), seed=seed).reward == 1.0, name
        assert play(env, name, seed=seed).reward == 0.0, name


def test_each_seed_has_its_own_database():
    tasks = ShopTasks()
    assert len(tasks) == 5 * SEEDS
    assert len({tasks[number].preparation for number in range(0, 500, 5)}) == 100
    assert tasks[12] == tasks[12]


NEAR = {
    "merge_customers": [
        ["DELETE FROM order_lines WHERE order_id IN (SELECT id FROM orders WHERE customer_id IN (11, 12, 13))",
         "DELETE FROM orders WHERE customer_id IN (11, 12, 13)", "DELETE FROM customers WHERE id IN (11, 12, 13)"],
        ["UPDATE orders o SET customer_id = (SELECT min(k.id) FROM customers k JOIN customers c ON lower(k.email) = "
         "lower(c.email) WHERE c.id = o.customer_id)"],
        ["REFERENCE", "UPDATE customers SET email = lower(email), name = upper(name)"],
        ["REFERENCE", "DELETE FROM order_lines WHERE order_id IN (SELECT id FROM orders WHERE customer_id = 14)",
         "DELETE FROM orders WHERE customer_id = 14", "DELETE FROM customers WHERE id = 14"],
        ["REFERENCE", "CREATE TABLE kept AS SELECT * FROM customers"],
        ["REFERENCE", "ALTER TABLE orders DROP CONSTRAINT orders_customer_id_fkey"],
    ],
    "monthly_sales": [
        ["CREATE VIEW monthly_sales AS SELECT 'x' AS month, 1 AS orders, 1.0 AS revenue"],
        ["REFERENCE", "UPDATE monthly_sales SET revenue = round(revenue) + 0.01"],
        ["REFERENCE", "INSERT INTO monthly_sales SELECT * FROM monthly_sales"],
        ["REFERENCE", "ALTER TABLE monthly_sales ALTER revenue TYPE text"],
        ["REFERENCE", "ALTER TABLE monthly_sales RENAME orders TO number"],
        ["REFERENCE", "ALTER TABLE products ALTER price TYPE numeric(20,10)"],
        ["REFERENCE", "DELETE FROM monthly_sales WHERE month = (SELECT min(month) FROM monthly_sales)"],
        ["REFERENCE", "UPDATE orders SET status = 'paid' WHERE status = 'shipped'"],
    ],
    "ship_orders": [
        ["UPDATE orders SET status = 'shipped' WHERE status = 'paid' AND ordered < '2025-01-01'"],
        ["UPDATE orders SET status = 'shipped' WHERE status = 'paid' AND ordered < '2025-01-01'", "REFERENCE"],
        ["REFERENCE", "UPDATE orders SET status = 'shipped' WHERE status = 'paid'"],
        ["REFERENCE", "UPDATE products SET stock = stock + 1 WHERE id = 1"],
        ["REFERENCE", "UPDATE orders SET ordered = ordered + 1 WHERE id = 100"],
    ],
    "add_keys": [
        ["FIRST"],
        ["REFERENCE", "ALTER TABLE customers ALTER email DROP NOT NULL"],
        ["REFERENCE", "ALTER TABLE order_lines DROP CONSTRAINT order_lines_order_id_fkey",
         "ALTER TABLE order_lines ADD FOREIGN KEY (order_id) REFERENCES orders ON DELETE SET NULL"],
        ["REFERENCE", "ALTER TABLE order_lines DROP CONSTRAINT order_lines_order_id_fkey",
         "ALTER TABLE order_lines ADD FOREIGN KEY (order_id) REFERENCES orders ON DELETE CASCADE NOT VALID"],
        ["REFERENCE", "ALTER TABLE customers DROP CONSTRAINT customers_email_key",
         "CREATE UNIQUE INDEX ON customers (email) WHERE id > 0"],
        ["REFERENCE", "ALTER TABLE customers DROP CONSTRAINT customers_email_key",
         "CREATE UNIQUE INDEX ON customers (email, id)"],
        ["REFERENCE", "DELETE FROM orders WHERE id = 100"],
    ],
    "city_view": [
        ["REFERENCE", "CREATE TABLE t AS TABLE city_orders", "DROP VIEW city_orders", "ALTER TABLE t RENAME "
         "TO city_orders"],
        ["MATERIALIZED"],
        ["CREATE VIEW city_orders AS SELECT city, count(*) AS customers, 0::bigint AS orders FROM customers "
         "GROUP BY 1"],
        ["REFERENCE", "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'"],
        ["CREATE VIEW city_orders AS SELECT c.city, count(DISTINCT c.id) AS customers, count(o.id) AS "
         "orders FROM customers c "
         "JOIN orders o ON o.customer_id = c.id GROUP BY 1"],
        ["FROZEN"],
    ],
}  # fmt: skip


@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in (1, 2))])
@pytest.mark.parametrize("name", TASKS)
def test_near_misses_score_0(env, name, part):
    calls = references(name)
    rows = ", ".join("('{city}', {customers}::bigint, {orders}::bigint)".format(**row) for row in
                     build(TASKS["city_view"], 0).rows["city_orders"])  # fmt: skip
    written = {
        "REFERENCE": calls,
        "FIRST": calls[:1],
        "MATERIALIZED": [call.replace("CREATE VIEW", "CREATE MATERIALIZED VIEW") for call in calls],
        "FROZEN": [f"CREATE VIEW city_orders AS SELECT * FROM (VALUES {rows}) v (city, customers, orders)"],
    }  # the rows of a frozen view are right and do not follow the tables
    for near in NEAR[name][part::3]:
        step = play(env, name, *(sql for query in near for sql in written.get(query, [query])))
        assert step.reward == 0.0 and step.info["verifier"], (near, step)


def test_other_ways_to_the_same_end_score_1(env):
    assert play(env, "monthly_sales", *references("monthly_sales"), "ALTER TABLE monthly_sales ADD PRIMARY KEY (month)",
                "ALTER TABLE monthly_sales ALTER orders TYPE integer").reward == 1.0  # fmt: skip
    restrict = "ALTER TABLE orders DROP CONSTRAINT orders_customer_id_fkey, ADD FOREIGN KEY (customer_id) REFERENCES "
    unique = "ALTER TABLE customers DROP CONSTRAINT customers_email_key"
    more = [f"{restrict} customers ON DELETE RESTRICT", unique, "CREATE UNIQUE INDEX ON customers (email)"]
    assert play(env, "add_keys", *references("add_keys"), *more).reward == 1.0


# ---- the agent's rights


REFUSED = {
    "COPY (SELECT 1) TO PROGRAM 'touch /tmp/no'": "pg_execute_server_program",
    "COPY (SELECT 1) TO '/tmp/no'": "pg_write_server_files",
    "CREATE TABLE t (a text); COPY t FROM '/etc/passwd'": "pg_read_server_files",
    "SELECT pg_read_file('/etc/passwd')": "permission denied",
    "SELECT pg_ls_dir('/')": "permission denied",
    "SELECT lo_import('/etc/passwd')": "permission denied",
    "SELECT lo_export(lo_create(0), '/tmp/no')": "permission denied",
    "CREATE ROLE other": "permission denied",
    "ALTER ROLE CURRENT_USER SUPERUSER": "must be superuser",
    "ALTER ROLE CURRENT_USER CONNECTION LIMIT 1000": "permission denied",
    "GRANT pg_execute_server_program TO CURRENT_USER": "must have admin option",
    "SET SESSION AUTHORIZATION postgres": "permission denied",
    "SET ROLE postgres": "permission denied",
    "CREATE DATABASE other": "permission denied",
    "ALTER SYSTEM SET fsync = on": "permission denied",
    "CREATE EXTENSION dblink": "ERROR",
    "CREATE EXTENSION file_fdw": "ERROR",
    "LOAD 'auto_explain'": "ERROR",
    "CREATE LANGUAGE plpython3u": "ERROR",
    "CREATE FUNCTION f() RETURNS int LANGUAGE c AS 'libc.so.6', 'getpid'": "permission denied",
    "CREATE TABLESPACE t LOCATION '/tmp'": "permission denied",
    "SELECT pg_reload_conf()": "permission denied",
    "SELECT rolpassword FROM pg_authid": "permission denied",
    "SET temp_file_limit = -1": "permission denied",
    "SELECT repeat('x', 1000000000)": "out of memory",
}


def test_the_role_of_the_agent_reaches_nothing_outside_its_database(env):
    env.reset(seed=0)
    for sql, reason in REFUSED.items():
        shown = run(env.service, f"{sql};")
        assert "ERROR" in shown and (reason in shown or "must be superuser" in shown or "denied" in shown), (sql, shown)


def test_the_databases_of_other_episodes_cannot_be_opened(env):
    with ShopTaskEnv() as other:
        env.reset(seed=0)
        other.reset(seed=0)
        variables = env.service.cluster.variables(env.service.role, env.service._password, other.service.database)
        with pytest.raises(SandboxError, match="permission denied for database"):
            env.service.cluster.sql("SELECT 1", variables=variables)


@pytest.mark.parametrize(
    "trick",
    [
        "ALTER ROLE CURRENT_USER SET search_path = evil",
        "ALTER ROLE CURRENT_USER SET default_transaction_read_only = on",
        "ALTER TABLE customers ENABLE ROW LEVEL SECURITY",
        "REVOKE ALL ON customers FROM CURRENT_USER",
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
        "CREATE TRIGGER t BEFORE INSERT ON customers FOR EACH ROW EXECUTE FUNCTION f()",
        "CREATE RULE r AS ON INSERT TO customers DO INSTEAD NOTHING",
        "CREATE SCHEMA evil; CREATE TABLE evil.customers ()",
        "ALTER TABLE customers RENAME TO c; CREATE VIEW customers AS TABLE c",
    ],
)
def test_tricks_of_the_agent_do_not_help_and_are_no_failures(env, trick):
    step = play(env, "merge_customers", trick)
    assert (step.reward, step.terminated) == (0.0, True) and step.info["verifier"]


@pytest.mark.parametrize(
    "count",
    ["pg_terminate_backend(pg_backend_pid())::int", "(SELECT 1 FROM pg_sleep(100))", "(1 / 0)"],
)
def test_a_view_that_ends_the_connection_or_the_time_of_its_reader_scores_0(env, monkeypatch, count):
    monkeypatch.setattr(env, "timeout", 0.5 if "sleep" in count else 60.0)
    columns = f"''::text city, 1::bigint customers, {count}::bigint orders"
    step = play(env, "city_view", f"CREATE VIEW city_orders AS SELECT {columns}")
    assert step.reward == 0.0 and "the database cannot be read" in step.info["verifier"]


def test_a_database_that_the_agent_has_made_unreadable_cannot_be_saved(env):
    play(env, "merge_customers")
    env.reset(seed=0)
    run(env.service, "ALTER ROLE CURRENT_USER PASSWORD 'other';")
    assert env.service.save()
    run(env.service, "REVOKE ALL ON customers FROM CURRENT_USER;")
    env.service.before_call({})
    with pytest.raises(BadValue, match=r"the database cannot be saved: .*permission denied"):
        env.get_state()


def test_settings_of_the_agent_do_not_spoil_a_right_end(env):
    settings = ["ALTER ROLE CURRENT_USER SET search_path = evil", "ALTER ROLE CURRENT_USER SET row_security = off"]
    assert play(env, "city_view", *references("city_view"), *settings).reward == 1.0


# ---- the environment


def test_a_saved_episode_goes_on_in_a_copy(env):
    env.reset(seed=0)
    run(env.service, "CREATE TABLE mine AS SELECT 7 AS n;")
    env.service.before_call({})
    state = json.loads(json.dumps(env.get_state()))
    with pickle.loads(pickle.dumps(env)) as copy, ShopTaskEnv() as other:
        other.set_state(state)
        assert other.get_state()["files"] == state["files"]
        for one in (copy, other):
            assert run(one.service, "SELECT n FROM mine;") == "7\n" and one.task() == env.task()
            assert one.step("Done.").reward == 0.0


def test_the_oracle_plays_with_the_tools():
    with gem.make("mcpmark:Postgres") as env:
        for seed in (0, 1):
            observation, _ = env.reset(seed=seed)
            player, step = Oracle(env.unwrapped), None
            while step is None or not (step.terminated or step.truncated):
                step = env.step(player.act(observation if step is None else step.observation))
                assert not step.info["tool_faults"], step
            assert step.reward == 1.0


def test_tools_show_fixed_names_and_refuse_commands_of_psql(tmp_path):
    from gem.messages import ToolCall
    from gem.tools.formats import TAGS

    with gem.make("mcpmark:Postgres") as env:
        env.reset(seed=0)

        def call(name, **arguments):
            return env.step(TAGS.write(ToolCall(name, arguments), [])).observation

        assert "agent | task | NULL" in call("execute_sql", sql="SELECT current_user, current_database(), NULL")
        assert "syntax error" in call("execute_sql", sql=f"\\! touch {tmp_path}/no")
        assert "syntax error" in call("explain_query", sql=f"\n\\! touch {tmp_path}/no")
        assert "does not exist" in call("get_object_details", schema_name="public", object_name="x'; `touch no`\\! --")
        assert not list(tmp_path.iterdir())
        assert "customers_pkey" in call("get_object_details", schema_name="public", object_name="customers")
        assert "order_lines" in call("list_objects", schema_name="public") and "public" in call("list_schemas")
        assert "Seq Scan" in call("explain_query", sql="SELECT * FROM orders")
        assert "at most" in call("execute_sql", sql="x" * 100_001)


def test_a_server_that_has_ended_is_no_verdict():
    with ShopTaskEnv() as env:
        env.reset(seed=0)
        if len(env.service.cluster.users) > 1:
            pytest.skip("other environments use the server")
        env.service.cluster._process.kill()
        env.service.cluster._process.wait()
        with pytest.raises(SandboxError, match="has ended"):
            env.step("Done.")


def test_missing_programs_are_named_with_their_package(monkeypatch):
    monkeypatch.setattr(cluster.glob, "glob", lambda pattern: [])
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv(cluster.PROGRAMS, raising=False)
    with pytest.raises(MissingDependency, match="apt-get install postgresql"):
        gem.make("mcpmark:Postgres")


def test_a_folder_without_the_programs_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv(cluster.PROGRAMS, str(tmp_path))
    with pytest.raises(BadValue, match=f"GEM_POSTGRES must name .* but {tmp_path} has no initdb"):
        gem.make("mcpmark:Postgres")


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
def test_a_timeout_is_a_number_of_seconds(timeout):
    with pytest.raises(BadValue, match="timeout must be"):
        ShopTaskEnv(timeout=timeout)


# ---- the end

CHILD = """
import os, sys, threading
from gem.envs.computers.mcpmark.mcpmark_env import ShopTaskEnv
env = ShopTaskEnv()
starter = threading.Thread(target=lambda: env.reset(seed=1))  # the server outlives the thread that started it
starter.start()
starter.join()
print(env.service.cluster.folder, env.service.cluster._process.pid, flush=True)
assert env.step("Done.").reward == 0.0
if sys.argv[1] == "kill":
    os.kill(os.getpid(), 9)
if sys.argv[1] == "close":
    folder = env.service.cluster.folder
    env.close()
    assert not os.path.exists(folder)
"""


@pytest.mark.parametrize("way", ["kill", "close"])
def test_nothing_remains_of_the_server(way):
    done = subprocess.run([sys.executable, "-c", CHILD, way], capture_output=True, text=True, check=False)
    assert done.returncode == (-signal.SIGKILL if way == "kill" else 0), done.stderr
    folder, pid = done.stdout.split()
    deadline = time.monotonic() + 60
    while (os.path.exists(folder) or os.path.exists(f"/proc/{pid}")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(folder) and not os.path.exists(f"/proc/{pid}")


def test_an_environment_that_is_closed_starts_again_and_forks_have_their_own_server(env):
    one = ShopTaskEnv()
    one.reset(seed=3)
    one.close()
    one.reset(seed=3)
    assert one.step("Done.").reward == 0.0
    folder, child = one.service.cluster.folder, os.fork()
    if not child:
        try:
            one.reset(seed=4)
            own = one.service.cluster.folder != folder
            one.close()
            os._exit(0 if own else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0 and os.path.isdir(folder)
    one.close()


# ---- checkouts

VERIFY = """
import os, sys
import psycopg2

connection = psycopg2.connect(host=os.environ["POSTGRES_HOST"], port=os.environ["POSTGRES_PORT"],
    user=os.environ["POSTGRES_USERNAME"], password=os.environ["POSTGRES_PASSWORD"],
    dbname=os.environ["POSTGRES_DATABASE"])
cursor = connection.cursor()
cursor.execute("SELECT n FROM numbers")
print(rows := cursor.fetchall())
sys.exit(rows != [(8,)])
"""
PREPARE = VERIFY[: VERIFY.index("cursor.execute")] + (
    'cursor.execute("CREATE TABLE numbers AS SELECT 7 AS n")\nconnection.commit()\n'
)
FAILS_LATER = VERIFY[: VERIFY.index("cursor.execute")] + (
    'cursor.execute("SELECT n FROM numbers")\nif cursor.fetchone()[0] == 7:\n    raise SystemExit(1)\n'
)


def write_task(root, name="postgres/easy/numbers/one", verify=VERIFY, prepare=""):
    folder = root / "tasks" / name
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text(json.dumps({"task_id": "one", "category_id": name.split("/")[2]}))
    (folder / "description.md").write_text("Make it 8.")
    (folder / "verify.py").write_text(verify)
    if prepare:
        (folder / "prepare_environment.py").write_text(prepare)
    return folder


def test_a_missing_dump_is_named_with_its_address(tmp_path):
    write_task(tmp_path)
    with pytest.raises(MissingData, match=r"postgres_state/numbers.backup; get https://.*/numbers.backup"):
        TaskEnv(str(tmp_path))


def test_tasks_that_change_roles_are_left_out(tmp_path, caplog):
    write_task(tmp_path)
    write_task(tmp_path, "postgres/easy/numbers/two", verify='execute("SET ROLE reader")')
    assert [task.name for task in read_tasks(str(tmp_path))] == ["postgres/easy/numbers/one"]
    assert "numbers/two is left out" in caplog.text
    with pytest.raises(BadValue, match="need roles"):
        read_tasks(f"{tmp_path}#two")


def test_a_checkout_with_a_dump_is_played(tmp_path, env):
    pytest.importorskip("psycopg2")
    env.reset(seed=0)
    run(env.service, "CREATE TABLE numbers AS SELECT 7 AS n;")
    env.service.before_call({})
    (tmp_path / "postgres_state").mkdir()
    (tmp_path / "postgres_state" / "numbers.backup").write_bytes(env.service.save())
    write_task(tmp_path)
    with TaskEnv(str(tmp_path)) as checkout:
        for sql, reward in (("UPDATE numbers SET n = 8", 1.0), ("SELECT 1", 0.0), ("DROP TABLE numbers", 0.0)):
            checkout.reset(seed=0)
            run(checkout.service, f"{sql};")
            assert checkout.step("Done.").reward == reward, sql


@pytest.mark.parametrize("dump", [b"", b"PGDMP cut"])
def test_a_dump_that_cannot_be_restored_is_named(tmp_path, dump):
    pytest.importorskip("psycopg2")
    (tmp_path / "postgres_state").mkdir()
    (tmp_path / "postgres_state" / "numbers.backup").write_bytes(dump)
    write_task(tmp_path)
    with TaskEnv(str(tmp_path)) as checkout:
        query = "SELECT count(*) FROM pg_database WHERE datname LIKE 'template\\_%'"
        before = checkout.service.cluster.sql(query).stdout
        for _ in range(2):
            with pytest.raises(BadValue, match=r"numbers\.backup cannot be restored: "):
                checkout.reset(seed=0)
        assert checkout.service.cluster.sql(query).stdout == before


def test_a_verifier_that_always_fails_is_no_verdict_and_one_that_the_database_breaks_is(tmp_path):
    pytest.importorskip("psycopg2")
    broken = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    for name, verify in (("always", broken), ("changed", f"{FAILS_LATER}{broken}")):
        write_task(tmp_path / name, verify=verify, prepare=PREPARE)
        with TaskEnv(str(tmp_path / name)) as checkout:
            checkout.reset(seed=0)
            run(checkout.service, "UPDATE numbers SET n = 9;")
            if name == "always":
                with pytest.raises(SandboxError, match="first database"):
                    checkout.step("Done.")
            else:
                step = checkout.step("Done.")
                assert step.reward == 0.0 and "not on the first one" in step.info["verifier"]


def test_a_checkout_with_a_preparation_is_played(tmp_path):
    pytest.importorskip("psycopg2")
    write_task(tmp_path, prepare=PREPARE)
    with TaskEnv(str(tmp_path)) as checkout:
        checkout.reset(seed=0)
        run(checkout.service, "UPDATE numbers SET n = 8;")
        assert checkout.step("Done.").reward == 1.0
        shutil.rmtree(tmp_path / "tasks")
        with pytest.raises(MissingData, match="is missing"):
            checkout.reset(seed=0)
