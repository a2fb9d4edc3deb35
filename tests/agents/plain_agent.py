"""An agent of a few lines, made to order: it does what its flags say."""

import http.client
import json
import os
from urllib.parse import urlsplit

import raw_agent

from agentlib import probe
from agentlib.jsonvalues import thaw


class Plain:
    """An agent of the Chat API that does what its flags say; it runs the call of a whole stream."""

    def __init__(self, **flags):
        self.flags = {"stream": True, "tool": "edit", "note": True, **flags}

    def __call__(self):
        messages = [{"role": "user", "content": "go"}]
        data = self.ask(messages)
        chunks = [json.loads(line[6:]) for line in data.splitlines() if line.startswith(b"data: {")]
        deltas = [choice["delta"] for chunk in chunks for choice in chunk.get("choices", ())]
        parts = [part for delta in deltas for part in delta.get("tool_calls", ())]
        if parts:
            self.act(messages, parts)
        total = sum((chunk.get("usage") or {}).get("prompt_tokens", 0) for chunk in chunks)
        return f"used {total:,} tokens" if self.flags.get("adds") else "done"

    def act(self, messages, parts):
        call_id = parts[0]["id"]
        text = "".join(part["function"]["arguments"] for part in parts if part["index"] == 0)
        if self.flags["note"]:
            probe.ran("edit", **json.loads(text))
        output = probe.nonce() if self.flags.get("nonce") else self.flags.get("output", "ok")
        function = {"name": "edit", "arguments": text}
        asked = {"id": call_id, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [asked]})
        result = {"role": "tool", "tool_call_id": call_id, "content": output}
        messages += [result] * self.flags.get("results", 1)
        self.ask(messages)

    def ask(self, messages):
        root = urlsplit(os.environ["OPENAI_BASE_URL"])
        function = {
            "name": self.flags["tool"],
            "parameters": thaw(raw_agent.TOOLS.get("edit").parameters),
        }
        body = {
            "model": "m",
            "messages": messages,
            "tools": [{"type": "function", "function": function}],
            "stream": self.flags["stream"],
        }
        connection = http.client.HTTPConnection(root.hostname, root.port, timeout=20)
        try:
            connection.request("POST", f"{root.path}/chat/completions", json.dumps(body))
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise RuntimeError(data.decode())
        return data
