"""Send requests of standard input with the openai client and print its replies, both as JSON."""

import json
import sys

import openai

asked = json.load(sys.stdin)
client = openai.OpenAI(base_url=asked["url"], api_key=asked["key"], max_retries=0)
KNOWN = ("model", "messages", "temperature", "max_tokens", "seed", "stop")
replies = []
for body in asked["bodies"]:
    known = {name: value for name, value in body.items() if name in KNOWN}
    rest = {name: value for name, value in body.items() if name not in KNOWN and name != "n"}
    replies.append(client.chat.completions.create(**known, extra_body=rest).model_dump())
print(json.dumps(replies))
