"""Tests of the registry: registering, making, listing and plug-ins."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest

import gem
from gem import registry
from gem.core import Env, Step
from gem.errors import BadValue, DuplicateEnv, MissingDependency, UnknownArgument, UnknownEnv, install_command
from gem.registry import ENV_REGISTRY, EnvSpec, list_envs, make, print_envs, register, resolve


class EchoEnv(Env):
    def __init__(self, word: str = "echo", times: int = 1) -> None:
        self.word, self.times = word, times

    def reset(self, seed=None):
        super().reset(seed)
        return self.word * self.times, {}

    def step(self, action):
        return Step(action, terminated=True)


@pytest.fixture
def clean_registry(monkeypatch):
    """A separate registry for each test."""
    fresh = registry._Registry()
    monkeypatch.setattr(registry, "ENV_REGISTRY", fresh)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [])
    return fresh


def plug_in(monkeypatch: pytest.MonkeyPatch, *loads: Any) -> None:
    """Replace the entry points of the group gem.envs by these objects or exceptions."""

    def point(loaded: Any) -> SimpleNamespace:
        def load() -> Any:
            if isinstance(loaded, BaseException):
                raise loaded
            return loaded

        return SimpleNamespace(load=load, value=f"plugin:{getattr(loaded, '__name__', 'broken')}")

    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point(x) for x in loads])


# register


@pytest.mark.parametrize("env_id", ["sokoban", "my:Env-v3-hard", "with space", "日本"])
def test_any_string_is_an_id(clean_registry, env_id):
    register(env_id, EchoEnv)
    assert make(env_id).env_id == env_id


@pytest.mark.parametrize(
    "entry_point",
    [EchoEnv, lambda word="echo", times=1: EchoEnv(word, times)],
    ids=["class", "factory"],
)
def test_keywords_of_register_go_to_the_constructor(clean_registry, entry_point):
    register("x", entry_point, word="ha", times=2)
    assert make("x").reset()[0] == "haha"
    assert make("x", times=3).reset()[0] == "hahaha"


def test_a_string_entry_point_is_imported_when_first_made(clean_registry, tmp_path, monkeypatch):
    (tmp_path / "their_envs.py").write_text("from gem import Env\nclass Theirs(Env):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    register("theirs", entry_point="their_envs:Theirs")
    assert "their_envs" not in sys.modules
    env = make("theirs")
    assert type(env).__name__ == "Theirs"
    assert env.entry_point == "their_envs:Theirs"


def test_a_whole_spec_can_be_registered(clean_registry):
    spec = EnvSpec("x", EchoEnv, {"times": 2}, description="Says it twice.")
    register(spec)
    assert clean_registry["x"] is spec
    assert make("x").times == 2


def test_registering_a_spec_takes_no_other_arguments(clean_registry):
    with pytest.raises(BadValue, match=r"no other arguments.*None and \{'times': 2\}"):
        register(EnvSpec("x", EchoEnv), times=2)


def test_an_id_cannot_be_registered_twice(clean_registry):
    register("x", EchoEnv)
    with pytest.raises(DuplicateEnv, match=r"'x' is already registered .*EchoEnv"):
        register("x", "other:Env")
    with pytest.raises(DuplicateEnv, match="game:GuessTheNumber-v0"):
        register("game:GuessTheNumber-v0", EchoEnv)


@pytest.mark.parametrize("entry_point", [None, "no_colon", 7])
def test_an_entry_point_must_be_a_string_with_a_colon_or_a_callable(clean_registry, entry_point):
    with pytest.raises(BadValue, match=r"entry_point of 'x' .*'module:Class'.*got"):
        register("x", entry_point)
    assert "x" not in clean_registry


@pytest.mark.parametrize("name", ["no_such_module:Env", "json:NoSuchClass", "json:", ":Env"])
def test_an_entry_point_that_cannot_be_loaded_is_named(name):
    with pytest.raises(BadValue, match=f"entry point '{name}' cannot be loaded"):
        resolve(name)


# make


def test_an_unknown_id_is_reported_with_the_closest_one():
    with pytest.raises(UnknownEnv, match=r"'game:GuessTheNumbr-v0'.*'game:GuessTheNumber-v0"):
        make("game:GuessTheNumbr-v0")


def test_an_id_of_a_family_of_paths_has_the_path_as_an_argument_and_is_not_listed():
    spec = ENV_REGISTRY["swebench:data/rows.jsonl#a__b-1"]
    assert (spec.id, spec.kwargs) == ("swebench:data/rows.jsonl#a__b-1", {"dataset_name": "data/rows.jsonl#a__b-1"})
    assert spec.id in ENV_REGISTRY and spec.id not in list(ENV_REGISTRY)
    assert "swebench:" not in ENV_REGISTRY and "swebench" not in ENV_REGISTRY


def test_an_unknown_id_is_also_a_key_error():
    with pytest.raises(KeyError):
        make("zzz")


def test_a_misspelled_argument_is_rejected_with_a_suggestion():
    with pytest.raises(UnknownArgument, match=r"'max_turn'.*'max_turns'.*min_number"):
        make("game:GuessTheNumber-v0", max_turn=1)


class TypedEnv(EchoEnv):
    def __init__(
        self,
        turns: int,
        *,
        rate: float = 1.0,
        loud: bool = False,
        mode: Literal["end", "continue"] | None = None,
        sizes: Sequence[int] = (),
        note: str = None,  # noqa: RUF013  its default is accepted all the same
        source: str | EnvSpec = "",
        pair: tuple[str, int] = ("", 0),
    ) -> None:
        super().__init__()
        self.given = (turns, rate, loud, mode, sizes, note, source, pair)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"turns": "5"}, "turns .*integer, got '5'"),
        ({"turns": 2.5}, r"turns .*integer, got 2\.5"),
        ({"turns": True}, "turns .*integer, got True"),
        ({"turns": 1, "rate": "x"}, "rate .*number, got 'x'"),
        ({"turns": 1, "loud": "false"}, "loud .*True or False, got 'false'"),
        ({"turns": 1, "mode": "ends"}, "mode .*'end', 'continue' or None.*'ends'.*'end'"),
        ({"turns": 1, "sizes": [1, "2"]}, r"sizes .*list .*integer, got \[1, '2'\]"),
        ({"turns": 1, "sizes": "12"}, "sizes .*list .*integer, got '12'"),
        ({"turns": 1, "note": 3}, "note must be a str"),
        ({}, "TypedEnv: .*missing.*'turns'.*turns, rate"),
    ],
)
def test_a_value_of_the_wrong_type_is_rejected_with_the_expected_type(clean_registry, kwargs, message):
    register("x", TypedEnv)
    with pytest.raises(BadValue, match=f"^{message}"):
        make("x", **kwargs)


def test_values_that_match_their_annotation_and_unchecked_types_are_accepted(clean_registry):
    register("x", TypedEnv, turns=np.int64(3))
    given = {"rate": 2, "loud": np.True_, "mode": "end", "sizes": range(2), "note": None, "source": 5, "pair": ["a", 1]}
    assert make("x", **given).given == (3, 2, True, "end", range(2), None, 5, ["a", 1])


@pytest.mark.parametrize("annotation", ["no such type!", "NoSuchName", "1 / 0", "list[]"])
def test_an_annotation_that_cannot_be_evaluated_is_not_checked(clean_registry, annotation):
    def factory(times: Any) -> Env:
        return EchoEnv(times=int(times))

    factory.__annotations__["times"] = annotation
    register("x", factory)
    assert make("x", times="2").times == 2


def test_arguments_of_a_factory_are_checked_too(clean_registry):
    def factory(times: int) -> Env:
        return EchoEnv(times=times)

    register("x", factory)
    with pytest.raises(BadValue, match=r"times .*integer.*'a'"):
        make("x", times="a")


def test_the_id_under_another_name_is_rejected(clean_registry):
    with pytest.raises(BadValue, match=r"register\('my:Env-v0', MyEnv\).*id='x'"):
        register(id="x", entry_point=EchoEnv)


def test_making_changes_neither_the_spec_nor_the_callers_arguments(clean_registry):
    given = {"times": 3}
    register("x", EchoEnv, times=2)
    make("x", **given, seed=1)
    assert given == {"times": 3}
    assert clean_registry["x"].kwargs == {"times": 2}
    assert make("x").times == 2


def test_any_environment_takes_a_seed_and_rejects_an_invalid_one(clean_registry):
    class Swallower(EchoEnv):
        def __init__(self, **_: Any) -> None:
            super().__init__()

    register("x", EchoEnv)
    register("y", Swallower)
    for env_id in ("x", "y"):
        env = make(env_id, seed=3)
        env.reset()
        first = env.rng.random()
        env.reset(seed=3)
        assert env.rng.random() == first
        with pytest.raises(BadValue, match="seed must be an integer"):
            make(env_id, seed=-3)


def test_a_constructor_with_a_seed_parameter_receives_the_seed(clean_registry):
    class Seeded(EchoEnv):
        def __init__(self, seed: int = 0) -> None:
            super().__init__()
            self.seed = seed

    register("x", Seeded)
    assert make("x", seed=3).seed == 3


def test_a_missing_optional_library_is_named_with_the_pip_command(clean_registry):
    register(EnvSpec("x", "no_such_library:Env", extra="search"))
    with pytest.raises(MissingDependency, match=r"no_such_library.*" + re.escape(install_command("search"))):
        make("x")


@pytest.mark.parametrize(
    ("env_id", "library", "extras"),
    [
        ("math:Algebra", "sympy", "math"),
        ("vision:Charts", "sympy", "math,vision"),
        ("vision:Geometry", "PIL", "math,vision"),
        ("math:GSM8K", "sympy", "data,math"),
        ("rg:chain_sum", "reasoning_gym", "reasoning"),
    ],
)
def test_a_missing_extra_is_found_by_make(monkeypatch, env_id, library, extras):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependency, match=re.escape(install_command(extras))):
        make(env_id)


def test_64_threads_make_256_environments(clean_registry):
    start = threading.Barrier(64)

    def build(i: int) -> Any:
        if i < 64:
            start.wait()
        env = make("game:GuessTheNumber-v0-easy", seed=i)
        return env.reset()[0], env.state, env.env_id

    with ThreadPoolExecutor(64) as pool:
        made = list(pool.map(build, range(256)))
    alone = [make("game:GuessTheNumber-v0-easy", seed=i) for i in range(256)]
    assert made == [(env.reset()[0], env.state, env.env_id) for env in alone]


# The registry as a mapping


def test_the_registry_is_a_mapping_of_specs():
    spec = ENV_REGISTRY["game:GuessTheNumber-v0"]
    assert spec.entry_point == "gem.envs.games.guess_the_number:GuessTheNumberEnv"
    assert spec.kwargs == {"min_number": 1, "max_number": 20, "max_turns": 10}
    assert "game:GuessTheNumber-v0" in ENV_REGISTRY
    assert "zzz" not in ENV_REGISTRY
    assert ENV_REGISTRY.get("zzz") is None
    assert len(ENV_REGISTRY) == len(list(ENV_REGISTRY)) == len(set(ENV_REGISTRY))


def test_a_built_in_id_can_be_deleted_before_the_first_lookup(clean_registry):
    del clean_registry["game:GuessTheNumber-v0"]
    assert "game:GuessTheNumber-v0" not in clean_registry
    with pytest.raises(KeyError):
        del clean_registry["game:GuessTheNumber-v0"]


def test_a_spec_set_explicitly_overrides_the_catalogue(clean_registry):
    mine = EnvSpec("game:GuessTheNumber-v0", EchoEnv)
    clean_registry["game:GuessTheNumber-v0"] = mine
    assert clean_registry["game:GuessTheNumber-v0"] is mine


def test_registering_while_iterating_over_the_registry_is_safe(clean_registry):
    ids = iter(clean_registry)
    seen = [next(ids)]
    register("x", EchoEnv)  # as another thread might
    assert "game:GuessTheNumber-v0" in [*seen, *ids]


def test_a_spec_is_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ENV_REGISTRY["game:GuessTheNumber-v0"].runs = "process"


# Listing


def test_list_envs_takes_a_shell_pattern_or_a_prefix():
    ids = [spec.id for spec in list_envs("game:GuessTheNumber*")]
    assert ids == sorted(ids)
    assert ids == [spec.id for spec in list_envs("game:GuessTheNumber")]
    assert "game:GuessTheNumber-v0" in ids
    assert list_envs("zzz") == []
    assert len(list_envs()) == len(ENV_REGISTRY)


def test_print_envs_prints_every_id_and_its_description(capsys):
    print_envs()
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == sorted(ENV_REGISTRY)
    assert all(spec.description in line for spec, line in zip(list_envs(), printed, strict=True))


@pytest.mark.parametrize("spec", list_envs("game:GuessTheNumber"), ids=lambda s: s.id)
def test_listed_parameters_are_those_that_make_uses(spec):
    env = make(spec.id)
    shown = registry.describe_parameters(spec)
    assert set(shown) == {"min_number", "max_number", "max_turns", "random_range", "on_unreadable"}
    assert (env.min_number, env.max_number) == (shown["min_number"], shown["max_number"])


# Plug-ins


def test_a_plug_in_function_is_called_to_register(clean_registry, monkeypatch):
    plug_in(monkeypatch, lambda: register("plugged:X-v0", EchoEnv))
    assert make("plugged:X-v0").env_id == "plugged:X-v0"


@pytest.mark.parametrize("value", ["their_plugin:register_all", "their_plugin.on_import"])
def test_an_installed_package_is_found_by_its_entry_points(tmp_path, value):
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[gem.envs]\ntheirs = {value}\n")
    package = tmp_path / "their_plugin"
    package.mkdir()
    register_all = "import gem\ndef register_all():\n    gem.register('plugged:X-v0', 'their_plugin:X')\n"
    (package / "__init__.py").write_text(f"{register_all}class X(gem.Env):\n    pass\n")
    (package / "on_import.py").write_text("import their_plugin\ntheir_plugin.register_all()\n")
    path = ":".join([str(tmp_path), *filter(None, sys.path)])
    code = "import gem; print(gem.make('plugged:X-v0').env_id)"
    run = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("plugged:X-v0\n", "")


def test_plug_ins_are_loaded_once_and_not_for_a_built_in_environment(clean_registry, monkeypatch):
    calls = []
    plug_in(monkeypatch, lambda: calls.append(1))
    make("game:GuessTheNumber-v0")
    assert calls == []
    list_envs(), list_envs()
    assert calls == [1]


def test_a_failing_plug_in_is_logged_and_does_not_affect_the_others(clean_registry, monkeypatch, caplog):
    plug_in(monkeypatch, ImportError("half installed"), SystemExit(3), lambda: register("plugged:X-v0", EchoEnv))
    with caplog.at_level(logging.WARNING, logger="gem"):
        assert "plugged:X-v0" in clean_registry
    assert "half installed" in caplog.text
    assert "failed to register" in caplog.text


def test_a_broken_plug_in_is_reported_in_one_line(clean_registry, monkeypatch, caplog):
    plug_in(monkeypatch, ValueError("first line\nsecond line"))
    list_envs()
    (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert record.exc_info is None and "\n" not in record.getMessage()
    assert "ValueError: first line second line" in record.getMessage()


def test_a_plug_in_that_names_a_class_is_reported_and_the_class_is_not_called(clean_registry, monkeypatch, caplog):
    class Theirs(EchoEnv):
        def __init__(self) -> None:
            raise AssertionError

    plug_in(monkeypatch, Theirs)
    list_envs()
    assert "plugin:Theirs" in caplog.text and "a module or a function" in caplog.text


class Folder(EchoEnv):
    def __init__(self, folder: str, *, times: int = 1) -> None:
        super().__init__(word=folder, times=times)


def test_ids_that_end_in_a_path_are_registered_and_not_listed(clean_registry):
    register(EnvSpec("maze:PATH", Folder, {"times": 2}, path="folder"))
    assert "maze:some/where" in clean_registry and "maze:" not in clean_registry
    env = make("maze:some/where")
    assert (env.word, env.times, env.env_id) == ("some/where", 2, "maze:some/where")
    assert list_envs("maze:*") == []
    with pytest.raises(DuplicateEnv, match="maze:PATH"):
        register(EnvSpec("maze:PATH", EchoEnv, path="word"))


def test_a_misspelled_id_is_no_path_in_a_family_that_has_ids(clean_registry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    register(EnvSpec("maze:PATH", Folder, path="folder"))
    register("maze:Small", EchoEnv)
    with pytest.raises(UnknownEnv, match="did you mean 'maze:Small'"):
        make("maze:Smal")
    assert make("maze:./Smal").word == "./Smal" and make("maze:Smal.txt").word == "Smal.txt"
    (tmp_path / "Smal").mkdir()
    assert make("maze:Smal").word == "Smal"


@pytest.mark.parametrize("spec", [EnvSpec("maze:X", Folder, path="folder"), EnvSpec("maze", Folder, path="folder")])
def test_a_spec_of_ids_with_a_path_is_named_for_the_family(clean_registry, spec):
    with pytest.raises(BadValue, match=r"'family:PATH', got 'maze"):
        register(spec)


def test_a_plug_in_adds_ids_with_a_path_and_exporters(clean_registry, monkeypatch):
    def register_all():
        register(EnvSpec("maze:PATH", Folder, path="folder"))
        registry.register_exporter("json", print)

    plug_in(monkeypatch, register_all)
    assert make("maze:here").word == "here"
    assert clean_registry.exporter("json") is print


def test_a_plug_in_that_adds_a_wrapper_alone_is_not_reported(clean_registry, monkeypatch, caplog):
    table: dict[str, Any] = {}
    clean_registry.watch(table)
    plug_in(monkeypatch, lambda: table.setdefault("my_tool", print))
    list_envs()
    assert caplog.text == ""


def test_a_plug_in_that_only_imports_a_table_is_reported(clean_registry, monkeypatch, caplog):
    plug_in(monkeypatch, lambda: clean_registry.watch({"a_tool": print}))
    list_envs()
    assert "registered nothing" in caplog.text


def test_exporters_are_found_by_name(clean_registry):
    assert clean_registry.exporter("harbor").__module__ == "gem.envs.computers.containers.harbor_export"
    with pytest.raises(BadValue, match=r"no export format 'harbour'; did you mean 'harbor'\?.*available: harbor"):
        clean_registry.exporter("harbour")
    with pytest.raises(BadValue, match="an exporter 'harbor' is already registered"):
        registry.register_exporter("harbor", print)
    with pytest.raises(BadValue, match="'module:function' or a callable, got 3"):
        registry.register_exporter("x", 3)


@pytest.mark.parametrize("loaded", [lambda: None, importlib.metadata], ids=["function", "module"])
def test_a_plug_in_that_registers_nothing_is_reported(clean_registry, monkeypatch, caplog, loaded):
    plug_in(monkeypatch, loaded)
    list_envs()
    assert "registered nothing" in caplog.text


def test_a_plug_in_that_was_imported_before_is_not_reported(clean_registry, monkeypatch, caplog):
    point = SimpleNamespace(load=lambda: importlib.metadata, value="importlib.metadata")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point])
    register("theirs", EchoEnv)
    list_envs()
    assert caplog.text == ""


def test_a_lookup_waits_while_another_thread_loads_plug_ins(clean_registry, monkeypatch):
    found = []
    asking = threading.Thread(target=lambda: found.append("plugged:X-v0" in clean_registry))

    def slow_plug_in() -> None:
        asking.start()
        asking.join(0.2)  # it must still be waiting for the plug-in
        register("plugged:X-v0", EchoEnv)

    plug_in(monkeypatch, slow_plug_in)
    list_envs()
    asking.join()
    assert found == [True]


def test_gem_forwards_to_the_registry():
    assert gem.make is make
    assert gem.register is register
    assert gem.ENV_REGISTRY is ENV_REGISTRY
