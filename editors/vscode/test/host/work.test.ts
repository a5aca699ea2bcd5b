/** Everyday work with servers, by the commands that menus run. */

import * as assert from "node:assert/strict";
import * as vscode from "vscode";
import { approvalPage } from "../../src/approvals/page";
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

/** The messages that VS Code shows while `run` runs, with their buttons. The user presses none. */
async function messages(run: () => Thenable<unknown>): Promise<string[][]> {
  const { showErrorMessage, showInformationMessage } = vscode.window;
  const found: string[][] = [];
  const show = async (...texts: unknown[]) => void found.push(texts.map(String));
  Object.assign(vscode.window, { showErrorMessage: show, showInformationMessage: show });
  try {
    await run();
  } finally {
    Object.assign(vscode.window, { showErrorMessage, showInformationMessage });
  }
  return found;
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

  it("arguments that are too large for the list are fetched when the question is opened", async () => {
    const { app, sidecar } = await extension();
    const text = `${"x".repeat(100_000)}the end`;
    const rule = { server: "demo", tool: "echo", scope: "session" } as const;
    await sidecar.command("mcp.tool.policy", { ...rule, level: "require-approval" });
    const { question, answer } = await pending("mcp__demo__echo", { text });
    assert.ok(question.largeArguments && !question.arguments && /because of their size/.test(question.detail));
    app.approvalPanel.open(question.id);
    const whole = () => {
      const now = sidecar.state.approval(question.id);
      return now?.arguments && now;
    };
    const shown = await eventually("its arguments", whole);
    assert.deepEqual(shown.arguments, { text });
    assert.ok(!shown.largeArguments && !/because of their size/.test(shown.detail), shown.detail);
    assert.match(approvalPage(shown, { place: 1, count: 1 }).text, /the end<\/pre>/);
    assert.match(approvalPage(shown, { place: 1, count: 1 }).text, /data-send="edit"/);
    // A new list leaves them out again.
    const other = asAgent("mcp__demo__take_note", { text: "beside the large one" });
    other.catch(() => {});
    await eventually("the second question", () => sidecar.state.approvals.length === 2 || undefined);
    assert.deepEqual(whole()?.arguments, { text });
    await app.approvalPanel.resolve(shown, "allow-once", { arguments: { text: "edited" } });
    assert.match(JSON.stringify((await answer).content), /edited/);
    for (const left of sidecar.state.approvals) {
      await vscode.commands.executeCommand("mcpSidecar.approval.deny", left);
    }
    await assert.rejects(other, { message: /denied/ });
    await sidecar.command("mcp.tool.policy", rule);
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

  it("a command that the sidecar does not offer for a server says so", async () => {
    const { sidecar } = await extension();
    const start = () => vscode.commands.executeCommand("mcpSidecar.server.start", { server: "demo" });
    const stop = () => vscode.commands.executeCommand("mcpSidecar.server.stop", { server: "demo" });
    assert.deepEqual(await messages(start), [["Cannot start `demo` now."]]);
    assert.deepEqual(await messages(stop), []);
    await eventually("it stops", () => sidecar.state.server("demo")?.status === "stopped");
    assert.deepEqual(await messages(stop), [["Cannot stop `demo` now."]]);
    await start();
    await eventually("it starts", () => sidecar.state.server("demo")?.status === "connected");
  });

  it("a code action shows a question on its page and a tool in its form, and answers or runs nothing", async () => {
    const { app, sidecar } = await extension();
    const perform = (command: string, given: object) =>
      vscode.commands.executeCommand("mcpSidecar.perform", { command, arguments: given });
    const { question, answer } = await pending("mcp__demo__take_note", { text: "reviewed" });
    await perform("mcp.approval.show", { id: question.id });
    assert.ok(await eventually("its page", () => app.approvalPanel.visible));
    assert.equal(sidecar.state.approvals[0]?.id, question.id);
    await vscode.commands.executeCommand("mcpSidecar.approval.deny", question);
    await assert.rejects(answer, { message: /denied/ });
    const before = (await sidecar.command("mcp.calls", {})).calls.length;
    const titles: unknown[] = [];
    const cancel = async (_: unknown, options: vscode.QuickPickOptions) => void titles.push(options.title);
    const { showQuickPick } = vscode.window;
    Object.assign(vscode.window, { showQuickPick: cancel });
    try {
      await perform("mcp.tool.open", { tool: "mcp__demo__roll_dice" });
    } finally {
      Object.assign(vscode.window, { showQuickPick });
    }
    assert.deepEqual(titles, ["`roll_dice` of `demo`"]);
    assert.equal((await sidecar.command("mcp.calls", {})).calls.length, before);
  });

  it("an error offers what the sidecar says can be done about it", async () => {
    const perform = (command: string, given: object) => () =>
      vscode.commands.executeCommand("mcpSidecar.perform", { command, arguments: given });
    const [[missing, ...remedies] = []] = await messages(perform("mcp.tool.call", { tool: "mcp__demo__nothing" }));
    assert.match(missing ?? "", /nothing/);
    assert.deepEqual(remedies, ["List the tools of `demo`"]);
    const [invalid] = await messages(perform("mcp.server.add", { server: "x", scope: "session", commandLine: '"a' }));
    assert.equal(invalid?.length, 1, "nothing can be done but typing it again");
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
