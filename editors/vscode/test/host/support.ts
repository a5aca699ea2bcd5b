/** Shared by the tests in the extension host: the extension, files of the workspace, and waiting with a limit. */

import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import type { Api } from "../../src/extension";
import type { ServerStatus, ToolResult } from "../../src/protocol";

const LIMIT_MS = 90_000;

/** The extension, once its sidecar is ready. */
export async function extension(): Promise<Api> {
  const found = vscode.extensions.getExtension<Api>("mcp-sidecar.mcp-sidecar");
  assert.ok(found, "the extension is not there");
  const api = await found.activate();
  await api.ready;
  return api;
}

export function file(name: string): vscode.Uri {
  const folder = vscode.workspace.workspaceFolders?.[0];
  assert.ok(folder);
  return vscode.Uri.joinPath(folder.uri, name);
}

export async function open(name: string): Promise<vscode.TextEditor> {
  return vscode.window.showTextDocument(await vscode.workspace.openTextDocument(file(name)));
}

/** Polls until `look` finds something, for what VS Code has no event for. */
export async function eventually<T>(what: string, look: () => T | undefined | Promise<T | undefined>): Promise<T> {
  const until = Date.now() + LIMIT_MS;
  for (;;) {
    const found = await look();
    if (found) {
      return found;
    }
    assert.ok(Date.now() < until, `not within ${LIMIT_MS} ms: ${what}`);
    await new Promise(resolve => setTimeout(resolve, 50));
  }
}

/** A server of the workspace, trusted and connected. */
export async function connected(name: string): Promise<ServerStatus> {
  const { sidecar } = await extension();
  const { servers } = await sidecar.command("mcp.servers", { server: name });
  await sidecar.command("mcp.server.trust", { server: name, trusted: true, digest: servers[0]?.trustDigest ?? null });
  return eventually(`${name} is connected`, () => {
    const server = sidecar.state.server(name);
    return server?.status === "connected" ? server : undefined;
  });
}

/** Calls a tool as a user who has just seen the arguments. */
export async function call(tool: string, given: Record<string, unknown> = {}): Promise<ToolResult> {
  const { sidecar } = await extension();
  return sidecar.command("mcp.tool.call", { tool, arguments: given, decision: "allow-once" });
}
