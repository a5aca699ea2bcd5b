/** Everyday work with servers, by the commands that menus run. */

import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import type { Level, ToolResult } from "../../src/protocol";
import { call, connected, eventually, extension } from "./support";

/** A call as an agent makes it. */
async function asAgent(tool: string, given: Record<string, unknown>): Promise<ToolResult> {
  const { sidecar } = await extension();
  return sidecar.command("mcp.tool.call", { tool, arguments: given, requester: { kind: "agent", name: "codex" } });
}

/** A call that waits for an answer. */
async function pending(tool: string, given: Record<string, unknown>) {
  const { sidecar } = await extension();
  const answer = asAgent(tool, given);
  answer.catch(() => {}); // Checked later.
  const question = await eventually("the question", () => sidecar.state.approvals.find(one => one.kind === "tool"));
  return { question, answer };
}

describe("everyday work", () => {
  before(async () => {
    await connected("demo");
  });

  it("a question waits in its view, and after it is allowed the call runs", async () => {
    const { app } = await extension();
    const { question, answer } = await pending("mcp__demo__take_note", { text: "first" });
    assert.deepEqual(
      (await app.approvals.getChildren()).map(one => one.id),
      [question.id],
    );
    await vscode.commands.executeCommand("mcpSidecar.approval.allowOnce", question);
    assert.equal((await answer).isError, false);
    assert.deepEqual(await app.approvals.getChildren(), []);
  });

  it("an answer without a question, as a key binding gives it, allows nothing", async () => {
    const { sidecar } = await extension();
    const { question, answer } = await pending("mcp__demo__take_note", { text: "unseen" });
    for (const name of ["allowOnce", "allowSession", "allowProject", "allowAlways", "disable", "deny"]) {
      await vscode.commands.executeCommand(`mcpSidecar.approval.${name}`);
      assert.deepEqual(
        sidecar.state.approvals.map(one => one.id),
        [question.id],
        name,
      );
    }
    await vscode.commands.executeCommand("mcpSidecar.approval.deny", question);
    await assert.rejects(answer, { message: /denied/ });
  });

  it("a tool that is allowed for the session is a grant that can be taken back", async () => {
    const { app } = await extension();
    const { question, answer } = await pending("mcp__demo__take_note", { text: "second" });
    await vscode.commands.executeCommand("mcpSidecar.approval.allowSession", question);
    await answer;
    assert.equal((await asAgent("mcp__demo__take_note", { text: "third" })).isError, false);
    const grants = await eventually("the grant", async () => {
      const found = await app.grants.getChildren();
      return found.length > 0 ? found : undefined;
    });
    assert.deepEqual(
      grants.map(grant => [grant.tool, grant.level]),
      [["take_note", "allow-session"]],
    );
    await vscode.commands.executeCommand("mcpSidecar.grant.revoke", grants[0]);
    const again = await pending("mcp__demo__take_note", { text: "fourth" });
    await vscode.commands.executeCommand("mcpSidecar.approval.deny", again.question);
    await assert.rejects(again.answer, { message: /denied/ });
  });

  it("the log shows who asked and what was decided", async () => {
    const { app } = await extension();
    const calls = await eventually("the calls", async () => {
      const found = await app.calls.getChildren();
      return found.some(one => !one.success) ? found : undefined;
    });
    const denied = calls.find(one => !one.success);
    assert.deepEqual([denied?.tool, denied?.requester.name, denied?.decision], ["take_note", "codex", "deny"]);
  });

  it("resources are read-only documents", async () => {
    const { sidecar } = await extension();
    const { resources } = await sidecar.command("mcp.resources", { server: "demo" });
    const note = resources.find(resource => resource.uri?.includes("note"));
    assert.ok(note, JSON.stringify(resources));
    await vscode.commands.executeCommand("mcpSidecar.resource.open", { server: "demo", uri: note.uri });
    const { document } = await eventually("the document", () => vscode.window.activeTextEditor);
    assert.equal(document.uri.scheme, "mcp");
    assert.match(document.getText(), /\S/);
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
  });

  it("a new level applies at once", async () => {
    const { sidecar } = await extension();
    const set = (level?: Level) =>
      sidecar.command("mcp.tool.policy", { server: "demo", tool: "echo", scope: "session", ...(level && { level }) });
    await set("deny");
    await assert.rejects(call("mcp__demo__echo", { text: "hello" }), { message: /denied/ });
    await set();
    assert.equal((await call("mcp__demo__echo", { text: "hello" })).content[0]?.text, "hello");
  });

  it("every contributed command is registered", async () => {
    const { app } = await extension();
    const registered = new Set(await vscode.commands.getCommands(true));
    const contributed: { command: string }[] = app.context.extension.packageJSON.contributes.commands;
    assert.deepEqual(
      contributed.map(one => one.command).filter(command => !registered.has(command)),
      [],
    );
  });
});
