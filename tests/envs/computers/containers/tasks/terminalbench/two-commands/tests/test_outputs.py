# canary: gem-terminal-canary-5b1f6c2e-7d3a-4c0e-9a57-1e2d8f4b6a90
from pathlib import Path


class TestFiles:
    def test_the_folder_has_the_file(self):
        assert Path("/app/a/b").is_file()
