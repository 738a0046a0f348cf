"""A fast MCP server over stdin and stdout that needs only the standard library and misbehaves on request.

  python plain_mcp_server.py [--log FILE] [--refuse] [--stay] [--chatty] [--tools a,b] [--pages KIND]

--log: append the process id to FILE, the name of each call to FILE.calls, and the cursor of each page to FILE.lists.
--refuse: exit at once with a message on stderr. --stay: keep running after stdin has ended. --chatty: also print lines
on stdout that are not messages. --odd: also list tools with an invalid description or schema, and one that requires
tasks.
--pages KIND: list a tool per page. The cursor after the last page is "", at which the list starts again (restart) or
which is refused (refuse); the first cursor is "" and leads on (lead); all cursors are the same and lead on (same) or
not (stuck); each page has a new cursor, and the tools repeat (turn); the first page has no tool (gap).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
NUMBER = {"type": "object", "properties": {"n": {"type": "number"}}}
TOOLS = {
    "ask": "Ask the user, and fail without an answer.",
    "busy": "Respond when the file LOG.go exists; other calls wait.",
    "change": "Add the tool 'new' to the list.",
    "child": "Start a process that ignores the end of the server, in a session of its own if n is 1; return its id.",
    "confide": "Log, report progress, and return the sampling result of the client.",
    "count": "Counts the calls of this process.",
    "die": "Kills the server.",
    "echo": "Return the argument.",
    "emoji": "Half of an emoji.",
    "environment": "The names of the variables in its environment.",
    "fail": "Fails.",
    "hang": "Never respond, also to later calls.",
    "long": "n letters.",
    "mistake": "Return an invalid error.",
    "nonsense": "Return an invalid response.",
    "picture": "A picture, a link and a resource.",
    "pid": "The process id.",
    "refuse": "Reject all arguments.",
    "sleep": "Respond after n seconds; other calls are handled meanwhile.",
    "sound": "A recording, valid if n is 1.",
    "structured": "Structured content without text.",
    "wait": "Respond when the file LOG.go exists; other calls are handled meanwhile.",
}


class Server:
    def __init__(self, names, log, odd=False, pages=None):
        self.odd, self.log, self.pages, self.position = odd, log, pages, 0
        self.names, self.calls, self.confided, self.lock = names, 0, None, threading.Lock()

    def send(self, message):
        with self.lock:
            print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def handle(self, message):
        number, params = message.get("id"), message.get("params") or {}
        if number == "elicited":
            failed = "result" not in message
            self.answer(self.confided, str(message.get("error") or message["result"]), isError=failed)
            return
        if number == "asked":
            said = message.get("error") or message["result"]
            self.answer(self.confided, said.get("message") or said["content"]["text"])
            return
        if number is None:
            return
        if message["method"] == "initialize":
            info = {"name": "plain", "version": "1"}
            result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
            self.send({"id": number, "result": result})
        elif message["method"] == "tools/list":
            tools = [{"name": name, "description": TOOLS[name], "inputSchema": NUMBER} for name in self.names]
            if self.odd:
                tools += [{"name": "odd", "inputSchema": 3}, {"name": 3}, "odd"]
                tools += [{"name": "untyped", "inputSchema": {}}]
                tools += [{"name": "type", "inputSchema": {"type": "object", "properties": {"n": {"type": "numbr"}}}}]
                tools += [
                    {"name": "output", "inputSchema": NUMBER, "outputSchema": {"type": "object", "minLength": -1}}
                ]
                tools += [{"name": "task", "inputSchema": NUMBER, "execution": {"taskSupport": "required"}}]
            if self.log:
                append(f"{self.log}.lists", params.get("cursor"))
            page = self.page(tools, params.get("cursor"))
            refused = {"error": {"code": -32602, "message": "no such cursor"}}
            self.send({"id": number, **(refused if page is None else {"result": page})})
        elif message["method"] == "tools/call":
            self.call(number, params)
        else:
            self.send({"id": number, "error": {"code": -32601, "message": f"no method {message['method']}"}})

    def page(self, tools, cursor):
        """Return a page of a list, or None for a cursor that is refused."""
        if self.pages is None:
            return {"tools": tools}
        if self.pages == "refuse" and cursor == "":
            return None
        if self.pages == "same":
            self.position = 0 if cursor is None else self.position + 1
        number = self.position if self.pages == "same" else int(cursor or (self.pages == "lead" and cursor == ""))
        more, is_last, shown = str(number + 1), number == len(tools) - 1, [tools[number % len(tools)]]
        if self.pages == "gap":
            is_last, shown = number == len(tools), tools[number - 1 : number] if number else []
        if is_last and self.pages not in ("stuck", "turn"):
            return {"tools": shown, "nextCursor": "" if self.pages in ("restart", "refuse") else None}
        after = {"stuck": "1", "same": "next", "lead": more if number else ""}
        return {"tools": shown, "nextCursor": after.get(self.pages, more)}

    def call(self, number, params):
        name, n = params["name"], (params.get("arguments") or {}).get("n", 0)
        if self.log:
            append(f"{self.log}.calls", name)
        if name == "confide":
            self.confided, token = number, (params.get("_meta") or {}).get("progressToken")
            self.send({"method": "notifications/message", "params": {"level": "info", "data": "a secret"}})
            if token is not None:
                progress = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
                self.send({"method": "notifications/progress", "params": progress})
            question = {"role": "user", "content": {"type": "text", "text": "who?"}}
            params = {"messages": [question], "maxTokens": 10}
            self.send({"id": "asked", "method": "sampling/createMessage", "params": params})
        elif name == "ask":
            self.confided = number
            params = {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}
            self.send({"id": "elicited", "method": "elicitation/create", "params": params})
        elif name == "busy":
            self.wait(number)
        elif name == "change":
            TOOLS["new"] = "A new tool."
            self.names = [*self.names, "new"]
            self.send({"method": "notifications/tools/list_changed"})
            self.answer(number, "changed")
        elif name == "child":
            null = subprocess.DEVNULL
            child = subprocess.Popen(["sleep", "60"], stdin=null, stdout=null, stderr=null, start_new_session=n == 1)
            self.answer(number, str(child.pid))
        elif name == "sleep":
            timer = threading.Timer(n, self.answer, (number, "slept"))
            timer.daemon = True
            timer.start()
        elif name == "wait":
            threading.Thread(target=self.wait, args=(number,), daemon=True).start()
        elif name == "hang":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(3600)
        elif name == "die":
            print("died of a call", file=sys.stderr, flush=True)
            os._exit(3)
        elif name == "nonsense":
            self.send({"id": number, "result": {"content": 3}})
        elif name == "refuse":
            self.send({"id": number, "error": {"code": -32602, "message": "not these arguments"}})
        elif name == "fail":
            self.answer(number, "it failed", isError=True)
        elif name == "picture":
            link = {"type": "resource_link", "name": "notes", "uri": "file:///notes"}
            resource = {"type": "resource", "resource": {"uri": "file:///a", "text": "inside a"}}
            image = {"type": "image", "data": PIXEL if n else "AAAA", "mimeType": "image/png"}
            self.send({"id": number, "result": {"content": [image, link, resource]}})
        elif name == "sound":
            sound = {"type": "audio", "data": "UklGRg==" if n else "?", "mimeType": "audio/x-wav"}
            self.send({"id": number, "result": {"content": [sound]}})
        elif name == "emoji":
            self.answer(number, "cut: \ud83d")
        elif name == "mistake":
            self.send({"id": number, "error": {"code": "x"}})
        elif name == "structured":
            self.send({"id": number, "result": {"content": [], "structuredContent": {"sum": 3}}})
        else:
            self.calls += name == "count"
            texts = {"count": str(self.calls), "pid": str(os.getpid()), "echo": str(n)}
            texts["long"] = "x" * int(n) if name == "long" else ""
            self.answer(number, texts.get(name, " ".join(sorted(os.environ))))

    def wait(self, number):
        while not os.path.exists(f"{self.log}.go"):
            time.sleep(0.01)
        self.answer(number, "done")

    def answer(self, number, text, **more):
        self.send({"id": number, "result": {"content": [{"type": "text", "text": text}], **more}})


def append(path, line):
    with open(path, "a") as file:
        print(line, file=file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log")
    parser.add_argument("--refuse", action="store_true")
    parser.add_argument("--stay", action="store_true")
    parser.add_argument("--odd", action="store_true")
    parser.add_argument("--chatty", action="store_true")
    parser.add_argument("--pages", choices=["restart", "refuse", "lead", "same", "stuck", "turn", "gap"])
    parser.add_argument("--tools", default=",".join(TOOLS))
    args = parser.parse_args()
    if args.log:
        append(args.log, os.getpid())
    if args.refuse:
        sys.exit("it has no wish to start")
    server = Server(args.tools.split(","), args.log, args.odd, args.pages)
    for line in sys.stdin:
        if args.chatty:
            print("got a line\n\n[]", flush=True)
        server.handle(json.loads(line))
    if args.stay:
        time.sleep(60)


if __name__ == "__main__":
    main()
