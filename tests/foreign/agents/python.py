"""An agent made with the Python SDK, of whichever version is installed. Obeys lines of JSON on stdin: list, call,
cancel. Tells what comes of it in lines on stdout."""

import contextlib
import importlib.metadata
import json
import os
import sys

import anyio
import mcp.types as types
from mcp import StdioServerParameters

VERSION = "v" + importlib.metadata.version("mcp").split(".")[0]
INFO = types.Implementation(name=f"python-{VERSION}", version="1")


def tell(**message):
    print(json.dumps(message), flush=True)


async def answer(_context, params):
    tell(asked=params.message)
    return types.ElicitResult(action="accept", content={"decision": "allow-once"})


async def on_progress(_progress, _total, message):
    tell(progress=message)


@contextlib.asynccontextmanager
async def connected(server):
    """Gives the client, and what takes a call back that the library itself would only forget."""
    if VERSION == "v1":
        from mcp import ClientSession
        from mcp.client.stdio import stdio_client

        async with stdio_client(server) as (read, write):
            async with ClientSession(read, write, elicitation_callback=answer, client_info=INFO) as session:
                await session.initialize()

                async def withdraw():
                    last = session._request_id - 1
                    params = types.CancelledNotificationParams(requestId=last, reason="changed its mind")
                    cancelled = types.CancelledNotification(method="notifications/cancelled", params=params)
                    await session.send_notification(types.ClientNotification(cancelled))

                yield session, withdraw
    else:
        from mcp import Client

        async with Client(server, elicitation_callback=answer, client_info=INFO) as client:

            async def withdraw():
                pass

            yield client, withdraw


async def call(client, scope, tool, given):
    with scope:
        try:
            result = await client.call_tool(tool, given, progress_callback=on_progress)
            tell(result=result.model_dump(mode="json", by_alias=True))
        except Exception as error:
            tell(error=str(error))
    if scope.cancelled_caught:
        tell(error="cancelled")


async def main():
    server = StdioServerParameters(command=sys.argv[1], args=["connect"], env=dict(os.environ))
    async with connected(server) as (client, withdraw), anyio.create_task_group() as group:
        scope = anyio.CancelScope()
        while line := await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
            wish = json.loads(line)
            if wish["do"] == "list":
                listed = await client.list_tools()
                tell(tools=[tool.name for tool in listed.tools])
            elif wish["do"] == "list-all":
                templates = await client.list_resource_templates()
                lists = {
                    "tools": (await client.list_tools()).tools,
                    "prompts": (await client.list_prompts()).prompts,
                    "resources": (await client.list_resources()).resources,
                    "resourceTemplates": templates.resourceTemplates if VERSION == "v1" else templates.resource_templates,
                }
                tell(lists={key: [entry.name for entry in entries] for key, entries in lists.items()})
            elif wish["do"] == "cancel":
                await withdraw()
                scope.cancel()
            else:
                scope = anyio.CancelScope()
                group.start_soon(call, client, scope, wish["tool"], wish["arguments"])
        global leaving
        leaving = True


def nobody_reads(error):
    inner = getattr(error, "exceptions", None)
    return all(map(nobody_reads, inner)) if inner else isinstance(error, anyio.BrokenResourceError)


leaving = False
try:
    anyio.run(main)
except BaseException as error:
    # Version 1 of the library breaks when a notice comes in while it closes; that is no fault of the other side.
    if not (leaving and nobody_reads(error)):
        raise
