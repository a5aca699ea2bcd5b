"""A client made with the Python SDK for the client scenarios of the official suite.

The last argument is the URL of the suite's server. Its user signs in and accepts every form.
"""
import asyncio
import json
import os
import sys
from urllib.parse import parse_qs, urlparse

import httpx
from mcp import ClientSession, types
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

url = sys.argv[-1]
context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
callback = "http://localhost:9/callback"


class Memory:
    """Keeps everything in memory."""

    def __init__(self):
        self.tokens = None
        self.client = None
        if "client_id" in context:
            self.client = OAuthClientInformationFull(
                client_id=context["client_id"],
                client_secret=context.get("client_secret"),
                redirect_uris=[callback],
                token_endpoint_auth_method="client_secret_basic",
            )

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Browser:
    """Follows the sign-in page back."""

    async def open(self, page):
        async with httpx.AsyncClient() as client:
            answer = await client.get(page, follow_redirects=False)
        self.returned = parse_qs(urlparse(answer.headers["location"]).query)

    async def back(self):
        return self.returned["code"][0], self.returned.get("state", [None])[0]


def provider():
    if scenario == "auth/client-credentials-basic":
        return ClientCredentialsOAuthProvider(url, Memory(), context["client_id"], context["client_secret"])
    if scenario == "auth/client-credentials-jwt":
        signer = SignedJWTParameters(
            issuer=context["client_id"],
            subject=context["client_id"],
            signing_algorithm=context.get("signing_algorithm", "ES256"),
            signing_key=context["private_key_pem"],
        )
        return PrivateKeyJWTOAuthProvider(url, Memory(), context["client_id"], signer.create_assertion_provider())
    browser = Browser()
    metadata = OAuthClientMetadata(client_name="compared", redirect_uris=[callback])
    document = "https://conformance-test.local/client-metadata.json"
    return OAuthClientProvider(
        url, metadata, Memory(), browser.open, browser.back, client_metadata_url=document
    )


def sample(schema):
    """The smallest value that a schema accepts."""
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    values = {"number": 1, "integer": 1, "boolean": True, "string": "x", "array": [], "null": None}
    if schema.get("type") in values:
        return values[schema["type"]]
    properties = schema.get("properties", {})
    return {name: sample(properties[name]) for name in schema.get("required", [])}


async def accept(_, params):
    """Fills in the defaults of the form."""
    properties = params.requestedSchema.get("properties", {})
    content = {name: value["default"] for name, value in properties.items() if "default" in value}
    return types.ElicitResult(action="accept", content=content)


async def main():
    async with streamablehttp_client(url, auth=provider()) as (read, write, _):
        async with ClientSession(read, write, elicitation_callback=accept) as session:
            await session.initialize()
            if scenario == "initialize":
                return
            calls = context.get("toolCalls", [])
            for call in calls:
                await session.call_tool(call["name"], call["arguments"])
            tools = (await session.list_tools()).tools
            echo = next((tool for tool in tools if tool.name == "json_schema_echo"), None)
            if echo:
                other = next(tool for tool in tools if tool is not echo)
                await session.call_tool(echo.name, {"schema": other.inputSchema})
                return
            for tool in tools:
                if all(call["name"] != tool.name for call in calls):
                    await session.call_tool(tool.name, sample(tool.inputSchema))


asyncio.run(main())
