"""Machines of a remote sandbox server. Created by RemoteSandbox.machine(). See protocol.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gem.errors import SandboxError
from gem.sandbox.inputs import as_base64
from gem.sandbox.machine import FileEntry, Machine, MachineFiles, Typed, entries_of
from gem.sandbox.remote import protocol
from gem.sandbox.results import Limits, Result

Send = Callable[[str, str, "Mapping[str, Any] | None", float], dict[str, Any]]


class RemoteMachine(Machine):
    """A machine on the server.

    Its states are kept by the server until that shuts down, and can be restored only there.

    Args:
        send: sends (method, path, body, seconds that it may take on the server) and returns the decoded response.
        limits: limits of the machine.
        start: files, folder and state, as in RemoteSandbox.machine(), encoded.
    """

    def __init__(self, send: Send, limits: Limits, start: Mapping[str, Any]) -> None:
        self._send, self._limits, self._closed = send, limits, False
        answer = send("POST", "/machines", {**start, "limits": protocol.packed_limits(limits)}, limits.wall_s)
        self._path, self.folder = f"/machines/{answer.get('id')}", str(answer.get("folder"))

    def exec(self, command: str, *, wall_s: float | None = None) -> Result:
        options = {"command": command, "wall_s": wall_s}
        return self._call("exec", options, protocol.unpacked_result, self._seconds(wall_s))

    def read(self, path: str) -> bytes:
        return self._call("read", {"path": path}, protocol.unpacked)

    def write(self, files: MachineFiles) -> None:
        self._call("write", {"files": protocol.packed_entries(entries_of(files))}, bool)

    def entries(self, folder: str = "/") -> list[FileEntry]:
        return self._call("entries", {"folder": folder}, protocol.unpacked_entries)

    def run(self, arguments: Sequence[str], *, stdin: bytes = b"", wall_s: float | None = None) -> Result:
        options = {"arguments": list(arguments), "stdin": as_base64(stdin), "wall_s": wall_s}
        return self._call("run", options, protocol.unpacked_result, self._seconds(wall_s))

    def type_keys(
        self, keys: bytes, *, rows: int = 24, columns: int = 80, wait_s: float = 0.0, wall_s: float | None = None
    ) -> Typed:
        options = {"keys": as_base64(keys), "rows": rows, "columns": columns, "wait_s": wait_s, "wall_s": wall_s}
        return self._call("type_keys", options, protocol.unpacked_typed, wait_s + self._seconds(wall_s))

    def stop(self, *, keep: Iterable[int] = ()) -> None:
        self._call("stop", {"keep": list(keep)}, bool)

    def sleep(self, seconds: float) -> None:
        self._call("sleep", {"seconds": seconds}, bool, seconds)

    def get_state(self) -> dict[str, Any]:
        return self._call("get_state", {}, dict)

    def close(self) -> None:
        if not self._closed:
            self._closed, self.ended = True, self.ended or "closed"
            self._send("DELETE", self._path, None, 0)

    def _seconds(self, wall_s: float | None) -> float:
        return self._limits.wall_s if wall_s is None else wall_s

    def _call(
        self,
        operation: str,
        arguments: Mapping[str, Any],
        decode: Callable[[Any], protocol.Decoded],
        seconds: float = 0.0,
    ) -> protocol.Decoded:
        """Run an operation, which may take that many seconds, on the server, and return its decoded value.

        Raises:
            OSError: as the operation raised it there.
            SandboxError: if the sandbox failed, or the response does not follow the protocol.
        """
        if self._closed:
            raise SandboxError("this machine is closed")
        answer = self._send("POST", f"{self._path}/{operation}", arguments, seconds)
        self.folder, self.ended = str(answer.get("folder")), str(answer.get("ended") or "")
        if (failure := answer.get("failure")) is not None:
            raise SandboxError(str(failure))
        if (error := answer.get("os_error")) is not None:
            raise OSError(*protocol.decoded(protocol.unpacked_os_error, error))
        return protocol.decoded(decode, answer.get("value"))
