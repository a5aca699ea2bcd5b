/** The Agents view, and what tools cost. */

import * as assert from "node:assert/strict";
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import * as vscode from "vscode";
import type { AgentStatus, Call } from "../../src/protocol";
import { callPage } from "../../src/results/page";
import { tokens } from "../../src/text";
import { agentRow } from "../../src/views/agentRows";
import { callRow } from "../../src/views/callRows";
import { groupRow } from "../../src/views/serverRows";
import { html } from "../../src/web/html";
import { connected, eventually, extension, file } from "./support";

const IDLE: AgentStatus = {
  id: "3",
  name: "claude-code",
  folder: "/home/you/shop",
  since: "2026-11-16T08:00:00.000Z",
  paused: false,
  doing: "idle",
  calls: [],
  today: { calls: 2, denied: 1, tokens: 5400 },
};

describe("the Agents view", () => {
  let agent: ChildProcessWithoutNullStreams | undefined;

  after(() => agent?.kill());

  it("says what an agent does, and offers what is possible", () => {
    const idle = agentRow(IDLE);
    assert.equal(idle.description, "idle · 2 calls");
    assert.equal(idle.contextValue, "agent.running");
    assert.equal(agentRow(IDLE, ["/work/other"]).description, "shop · idle · 2 calls", "it works elsewhere");
    assert.match(idle.tooltip ?? "", /2 calls, 1 denied, ~5.4k tokens/);
    const paused = agentRow({ ...IDLE, paused: true, doing: "paused", set: "review" });
    assert.equal(paused.description, "paused · set review · 2 calls");
    assert.equal(paused.contextValue, "agent.paused");
    const call = { callId: "5f", server: "demo", tool: "echo", since: IDLE.since, question: "a1" };
    assert.equal(agentRow({ ...IDLE, calls: [call] }).icon, "bell-dot");
  });

  it("the log says where an agent called, and offers no second run of its own tools", () => {
    const call: Call = {
      callId: "5f",
      folder: "/work/shop-login",
      time: IDLE.since,
      kind: "tool",
      server: "demo",
      tool: "echo",
      requester: { kind: "agent", name: "claude-code" },
      decision: "allow-once",
      decidedBy: "user",
      success: true,
      durationMs: 4,
      waitedMs: 0,
    };
    assert.match(callRow(call).description ?? "", /^demo · claude-code in shop-login · /);
    assert.match(callPage(call, "text", html`the result`).text, /in \/work\/shop-login.*Run again….*the result/s);
    const own: Call = { ...call, kind: "hook", server: "claude-code", tool: "agent:Bash" };
    assert.equal(callRow(own).contextValue, "call.own");
    assert.doesNotMatch(callPage(own, "text", html`the result`).text, /Run again…|the result/);
  });

  it("rounds tokens for people", () => {
    assert.deepEqual([0, 340, 1234, 9100, 12345].map(tokens), ["~0", "~340", "~1.2k", "~9.1k", "~12k"]);
    assert.equal(groupRow("demo", "tools", 9, 596).description, "9 · ~596 tokens");
    assert.equal(groupRow("demo", "prompts", 1).description, "1");
  });

  it("lists an agent that connects, pauses it and disconnects it", async () => {
    const { app, sidecar } = await extension();
    const server = await connected("demo");
    assert.ok(server.tokens > 100, "its tools cost something");
    const program = process.env.MCP_SIDECAR_BINARY ?? "mcp-sidecar";
    agent = spawn(program, ["connect", "--name", "reviewer"], { cwd: file(".").fsPath });
    const clientInfo = { name: "reviewer", version: "1" };
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
    agent.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params })}\n`);
    const ended = new Promise(resolve => agent?.on("exit", resolve));
    const shown = () => app.agents.getChildren().then(agents => agents.find(({ name }) => name === "reviewer"));
    const found = await eventually("the agent", shown);
    assert.equal(found.doing, "idle");
    await vscode.commands.executeCommand("mcpSidecar.agent.pause", found);
    await eventually("it is paused", async () => (await shown())?.paused);
    await vscode.commands.executeCommand("mcpSidecar.agent.resume", found);
    await eventually("it goes on", async () => (await shown())?.paused === false);
    await sidecar.command("mcp.agent.disconnect", { agent: found.id });
    await ended;
    await eventually("it is gone", async () => (await shown()) === undefined);
  });
});
