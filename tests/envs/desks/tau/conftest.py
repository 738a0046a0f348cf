"""A checkout in the layout of TAU-bench, with a shop of two orders, written for these tests."""

from __future__ import annotations

import pytest

FILES = {
    "__init__.py": "raise RuntimeError('not to be executed')",
    "envs/__init__.py": "raise RuntimeError('not to be executed')",
    "envs/user.py": """
        from litellm import completion
        class LLMUserSimulationEnv:
            def build_system_prompt(self, instruction):
                return "You are a customer. " + instruction
        """,
    "envs/tool.py": "class Tool: pass",
    "envs/retail/__init__.py": "raise RuntimeError('not to be executed')",
    "envs/retail/wiki.md": "Be kind.",
    "envs/retail/wiki.py": "WIKI = 'Be kind.'",
    "envs/retail/data/__init__.py": """
        def load_data():
            return {"orders": {"#1": {"status": "pending", "total": 10}, "#2": {"status": "delivered", "total": 1234}}}
        """,
    "envs/retail/tools/__init__.py": """
        from tau_bench.envs.tool import Tool
        def info(name, *arguments):
            parameters = {"type": "object", "properties": {a: {"type": "string"} for a in arguments}}
            parameters["required"] = list(arguments)
            return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}
        class Cancel(Tool):
            @staticmethod
            def invoke(data, order_id):
                if data["orders"][order_id]["status"] != "pending":
                    return "Error: not pending"
                data["orders"][order_id]["status"] = "cancelled"
                return "done"
            get_info = staticmethod(lambda: info("cancel", "order_id"))
        class Show(Tool):
            @staticmethod
            def invoke(data, order_id):
                return str(data["orders"][order_id])
            get_info = staticmethod(lambda: info("show", "order_id"))
        class Transfer(Tool):
            @staticmethod
            def invoke(data, summary):
                return "Transfer successful"
            get_info = staticmethod(lambda: info("transfer_to_human_agents", "summary"))
        ALL_TOOLS = [Cancel, Show, Transfer]
        """,
    "envs/retail/tasks_test.py": """
        from tau_bench.types import Action, Task
        cancel = Action(name="cancel", kwargs={"order_id": "#1"})
        show = Action(name="show", kwargs={"order_id": "#2"})
        away = Action(name="transfer_to_human_agents", kwargs={"summary": "s"})
        TASKS_TEST = [
            Task(annotator="0", user_id="u", instruction="Cancel order #1.", actions=[cancel], outputs=[]),
            Task(annotator="0", user_id="u", instruction="Ask the total of #2.", actions=[show], outputs=["1234"]),
            Task(annotator="0", user_id="u", instruction="You want a human.", actions=[away], outputs=[]),
        ]
        """,
}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    import textwrap

    from gem.envs.desks.tau import taubench

    for name, text in FILES.items():
        file = tmp_path / "tau-bench" / "tau_bench" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    monkeypatch.setenv("GEM_DATA", str(tmp_path))
    taubench._domain.cache_clear()
    yield tmp_path / "tau-bench"
    taubench._domain.cache_clear()
