/** What Copilot gets from the sidecar. Its tools come through the same API, so no account and no model is needed. */

import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { connectArguments, sharing } from "../../src/copilot";
import type { ServerStatus, Tone } from "../../src/protocol";
import { eventually, extension } from "./support";

/** VS Code prefixes tools with the name of the endpoint. */
const named = (tool: string) => vscode.lm.tools.find(one => one.name.startsWith("mcp_") && one.name.endsWith(tool));

describe("the endpoint for Copilot", () => {
  it("leaves out servers that VS Code starts itself, unless the setting is `all`", () => {
    const server = (name: string, file: string, tone: Tone = "good") =>
      ({ name, file, summary: { text: "", tone } }) as ServerStatus;
    const servers = [
      server("ours", "/home/you/shop/mcp.json"),
      server("both", "/home/you/shop/.vscode/mcp.json"),
      server("failed", "/home/you/shop/mcp.json", "bad"),
    ];
    assert.deepEqual(sharing("others", servers), { offered: ["ours"], without: ["both"] });
    assert.deepEqual(sharing("all", servers), { offered: ["ours", "both"], without: [] });
    assert.deepEqual(sharing("off", servers), { offered: [], without: [] });
    assert.deepEqual(connectArguments("/home/you/shop", ["both"]).slice(-2), ["--without", "both"]);
  });

  it("offers the tools, and VS Code alone asks about a call", async () => {
    const { sidecar } = await extension();
    await eventually("a server", () => sidecar.state.server("everything")?.status === "connected");
    await vscode.commands.executeCommand("mcpSidecar.copilot.start");
    // A tool that is not read-only, with a schema that the oldest supported VS Code understands.
    const tool = await eventually("it is among VS Code's tools", () => named("everything__toggle-simulated-logging"));
    const level = { server: "everything", tool: "toggle-simulated-logging" };
    const { policies } = await sidecar.command("mcp.policies", level);
    assert.equal(policies[0]?.level, "require-approval");
    // Toggled on and off again.
    for (let time = 0; time < 2; time++) {
      const result = await vscode.lm.invokeTool(tool.name, { input: {}, toolInvocationToken: undefined });
      const text = result.content
        .map(part => (part instanceof vscode.LanguageModelTextPart ? part.value : ""))
        .join("");
      assert.match(text, /simulated/i);
    }
    assert.deepEqual(
      sidecar.state.approvals.filter(approval => approval.kind === "tool"),
      [],
      "the user was asked a second time",
    );
    const { calls } = await sidecar.command("mcp.calls", { ...level, limit: 1 });
    assert.deepEqual([calls[0]?.requester.kind, calls[0]?.requester.name], ["agent", "VS Code"]);
  });
});
