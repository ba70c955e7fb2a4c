"""What Python's clients make of an endpoint: one JSON object on standard output.

    python python_clients.py <openai|litellm|claude> <address> <key>          the address ends with /v1
"""

import asyncio
import json
import os
import sys

client, address, key = sys.argv[1:]
messages = [{"role": "user", "content": "Go."}]
parameters = {
    "type": "object",
    "properties": {"where": {"type": "string"}},
    "required": ["where"],
    "additionalProperties": False,
}
tools = [{"type": "function", "function": {"name": "look", "parameters": parameters, "strict": True}}]
flat = [{"type": "function", **tools[0]["function"]}]


def streamed(chunks):
    """Name and arguments of the call of a stream, as agents put them together, and the number of its parts."""
    name, given, parts = "", "", 0
    for chunk in chunks:
        for call in (chunk.choices[0].delta.tool_calls or []) if chunk.choices else []:
            name += call.function.name or ""
            given += call.function.arguments or ""
            parts += 1
    return {"name": name, "arguments": json.loads(given), "parts": parts}


def responded(response):
    calls = [item for item in response.output if item.type == "function_call"]
    return [[call.name, json.loads(call.arguments)] for call in calls]


def by_openai():
    import openai
    from pydantic import BaseModel

    class Answer(BaseModel):
        verdict: str

    api = openai.OpenAI(base_url=address, api_key=key, max_retries=0)
    ask = {"model": "policy", "messages": messages}
    return {
        "version": openai.__version__,
        "text": api.chat.completions.create(**ask).choices[0].message.content,
        "call": streamed(api.chat.completions.create(**ask, tools=tools, tool_choice="required", stream=True)),
        "parsed": api.chat.completions.parse(**ask, response_format=Answer).choices[0].message.parsed.verdict,
        "responses": responded(api.responses.create(model="policy", input="Go.", tools=flat, tool_choice="required")),
    }


def by_litellm():
    import importlib.metadata

    import litellm

    to = {"api_base": address, "api_key": key, "max_retries": 0}
    ask = {"model": "openai/policy", "messages": messages, **to}
    return {
        "version": importlib.metadata.version("litellm"),
        "text": litellm.completion(**ask).choices[0].message.content,
        "call": streamed(litellm.completion(**ask, tools=tools, tool_choice="required", stream=True)),
        "responses": responded(
            litellm.responses(model="openai/policy", input="Go.", tools=flat, tool_choice="required", **to)
        ),
    }


async def by_claude():
    import claude_agent_sdk as sdk

    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1"}
    of = {"ANTHROPIC_BASE_URL": address.removesuffix("/v1"), "ANTHROPIC_API_KEY": key, **quiet}
    options = sdk.ClaudeAgentOptions(model="policy", max_turns=1, env=of, setting_sources=[])
    texts = []
    async for message in sdk.query(prompt="Go.", options=options):
        if isinstance(message, sdk.AssistantMessage):
            texts += [block.text for block in message.content if isinstance(block, sdk.TextBlock)]
    return {"version": sdk.__version__, "text": "".join(texts)}


os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
told = asyncio.run(by_claude()) if client == "claude" else {"openai": by_openai, "litellm": by_litellm}[client]()
print(json.dumps(told))
