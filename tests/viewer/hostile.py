"""Strings that run script, load something or break out of their element where a page does not escape them."""

from __future__ import annotations

from typing import Any

RUN = "window.pwned=1;alert(1)"
STRINGS = [
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"<!--<script>{RUN}</script>-->",
    f"--><script>{RUN}</script>",
    f"<!--<script></script><script>{RUN}</script>",
    f"]]><script>{RUN}</script>",
    f"</title><script>{RUN}</script>",
    f"</style><script>{RUN}</script>",
    f"</textarea><script>{RUN}</script>",
    f"</pre></section></main><script>{RUN}</script>",
    f"<SCRIPT SRC=data:text/javascript,{RUN}></SCRIPT>",
    f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    f"<script\x0c>{RUN}</script>",
    f"<script/x>{RUN}</script/x>",
    f"\x00<script>{RUN}</script>",
    f"\ufeff<script>{RUN}</script>",
    f"+ADw-script+AD4-{RUN}+ADw-/script+AD4-",
    f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
    f"&lt;script&gt;{RUN}&lt;/script&gt;",
    f"&#60;script&#62;{RUN}&#60;/script&#62;",
    f"\u2028<script>{RUN}</script>\u2029",
    f"{{{{script}}}}<script>{RUN}</script>",
    f"{{{{constructor.constructor('{RUN}')()}}}}",
    f"${{{RUN}}}",
    f"`;{RUN}//",
    f"';{RUN}//",
    f'";{RUN}//',
    f'"}}];{RUN};[{{"',
    f"<img src=x onerror={RUN}>",
    f"<img src=x onerror='{RUN}'//",
    f'"><img src=x onerror="{RUN}">',
    f"' autofocus onfocus={RUN} x='",
    f'" onmouseover="{RUN}" x="',
    f"<svg onload={RUN}>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<math><mtext></mtext><mglyph><style><img src=x onerror={RUN}>",
    f"<body onload={RUN}>",
    f"<details open ontoggle={RUN}>",
    f"<video><source onerror={RUN}>",
    f"<input autofocus onfocus={RUN}>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<iframe src='javascript:{RUN}'></iframe>",
    f"javascript:{RUN}",
    f"data:text/html,<script>{RUN}</script>",
    f"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='{RUN}'/>",
    f"data:image/png;base64,AAAA' onerror='{RUN}",
    f"<a href='javascript:{RUN}' id=rows>x</a>",
    f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'>",
    "<base href='https://example.com/'>",
    "<link rel=stylesheet href=https://example.com/x.css>",
    "https://example.com/pixel.png",
    "<style>@import url(https://example.com/x.css);*{display:none}</style>",
    f"$\\href{{javascript:{RUN}}}{{x}}$",
    f"$\\text{{<img src=x onerror={RUN}>}}$",
    f"\\(\\style{{background:url(https://example.com/x)}}{{x}}\\) \\[\\class{{x}}{{<script>{RUN}</script>}}\\]",
    "$$\\def\\x{\\x\\x}\\x$$ $\\newcommand{\\y}{\\y\\y}\\y$ $\\rule{999em}{999em}$",
    f"```html\n<script>{RUN}</script>\n```\n<python><img src=x onerror={RUN}></python>",
    f"<think>\n<script>{RUN}</script>\n</think>\n**<img src=x onerror={RUN}>** `<svg onload={RUN}>`",
    "__proto__",
    "constructor",
    "\u202e reversed \u2066 isolated",
    "\ud800 a surrogate",
    "a" * 50_000,
]


def trajectory(text: str) -> dict[str, Any]:
    """The JSON of an episode with a text in every field that can hold one, and in every key."""
    call = {"id": text, "type": text, "function": {"name": text, "arguments": text}}
    reply = {"role": text, "content": text, "tool_calls": [call], "reasoning_content": text}
    images = [{"type": "image_url", "image_url": {"url": text}}, {"type": "image", "image": {"$image": text}}]
    prompt = [
        {"role": text, "content": text},
        {"role": "user", "content": [*images, {"type": "text", "text": text}, text]},
    ]
    turn = {
        "observation": prompt,
        "action": text,
        "prompt_ids": {"keeps": 0, "adds": [1, 2]},
        "sampled_ids": [3, 4],
        "logprobs": [text, -0.5],
        "loss_mask": [1, 0],
        "finish": text,
        "reward": 1.0,
        "reward_parts": {text: 1.0, "other": text},
        "invalid": text,
        "seconds": {text: 0.5},
        "policy_version": text,
        "role": text,
        "dropped": text,
        "usage": {text: text, "nested": {text: [text]}},
        "message": reply,
        "tool_calls": [{"name": text, "arguments": {text: text}, "fault": text}],
        "explanation": text,
        "checks": [{"name": text, "passed": text, "detail": text}, text],
    }
    plain = {**turn, "message": None, "observation": text, "policy_version": 0}
    mapped = {**turn, "observation": {text: {text: [text, None, 1.5]}}}
    ends = {name: text for name in ("env_id", "stop_reason", "row_id", "group_id", "seed", "model", "slot", "episode")}
    rest = {"sampling": {text: text}, "tools": [{text: text}], "final_observation": {"text": text, "images": [text]}}
    return {**ends, **rest, "failure": None, "terminated": True, "truncated": False, "turns": [turn, mapped, plain]}
