"""Exit with 0 if the test directory is as expected.json says, which maps paths to contents."""

import json
import os
import sys
from pathlib import Path

root = Path(os.environ["FILESYSTEM_TEST_DIR"])
expected = json.loads(Path(__file__).with_name("expected.json").read_text(encoding="utf-8"))
found = {
    path.relative_to(root).as_posix(): path.read_bytes().decode("utf-8", "replace")
    for path in root.rglob("*")
    if path.is_file()
}


def value(path, text):
    """Return what counts of a file: every byte, unless the agent has to write it."""
    if path.endswith(".json"):
        try:
            return json.dumps(json.loads(text), sort_keys=True)
        except ValueError:
            return text
    return [line.rstrip() for line in text.strip().splitlines()] if path == "todo.md" else text


wrong = [
    path
    for path in sorted({*found, *expected})
    if path not in found or path not in expected or value(path, found[path]) != value(path, expected[path])
]
print(f"wrong: {', '.join(wrong)}" if wrong else "as expected")
sys.exit(bool(wrong))
