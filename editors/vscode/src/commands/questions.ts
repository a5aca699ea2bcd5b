/** Commands for questions that are waiting, for the call log and for grants. */

import { commands, window } from "vscode";
import type { Approval, Call, Grant } from "../protocol";
import { plural, quoted } from "../text";
import { type App, type CallFilter, confirm, register } from "./app";

/**
 * Answers that have a command. Menus offer only those that refuse: a row does not show all that is asked for, and another
 * row may slide under the mouse.
 */
const DECISIONS: Record<string, string> = {
  allowOnce: "allow-once",
  allowSession: "allow-session",
  allowProject: "allow-project",
  allowAlways: "allow-always",
  deny: "deny",
  disable: "disable",
  accept: "accept",
  decline: "decline",
};

export function questionCommands(app: App): void {
  const { approvalPanel } = app;
  // A menu passes the row itself, another extension a question. A key passes nothing: then the page shows what would be
  // answered, and the answer is given there.
  const answerCommand = (name: string, answer: (approval: Approval) => unknown) =>
    register(app, `mcpSidecar.approval.${name}`, (approval?: Approval) =>
      approval?.id ? answer(approval) : approvalPanel.open(),
    );
  for (const [name, decision] of Object.entries(DECISIONS)) {
    answerCommand(name, approval => approvalPanel.resolve(approval, decision));
  }
  answerCommand("denyWithNote", async approval => {
    const note = await window.showInputBox({ title: approval.title, prompt: "Why not? The agent reads it." });
    if (note !== undefined) {
      await approvalPanel.resolve(approval, "deny", note);
    }
  });
  answerCommand("open", approval => approvalPanel.open(approval.id));
  register(app, "mcpSidecar.approvals.review", async () => {
    await commands.executeCommand("mcpSidecar.approvals.focus");
    approvalPanel.open();
  });
  register(app, "mcpSidecar.approvals.answer", () => approvalPanel.open());
  callCommands(app);
  grantCommands(app);
}

function callCommands(app: App): void {
  register(app, "mcpSidecar.call.open", async (call?: Call) => {
    if (call) {
      await app.results.call(call);
    }
  });
  register(app, "mcpSidecar.call.again", async (call?: Call) => {
    if (call) {
      const tool = `mcp__${call.server}__${call.tool}`;
      await commands.executeCommand("mcpSidecar.tool.call", { tool, arguments: call.arguments });
    }
  });
  register(app, "mcpSidecar.calls.refresh", () => app.calls.refresh());
  register(app, "mcpSidecar.calls.filter", () => filterCalls(app));
}

async function filterCalls({ sidecar, calls, filter }: App): Promise<void> {
  const today = new Date();
  today.setHours(0, 0, 0, 0);
  const items: { label: string; filter: CallFilter }[] = [
    { label: "$(list-flat) all calls", filter: {} },
    { label: "$(error) failed calls", filter: { failed: true } },
    { label: "$(calendar) today's calls", filter: { since: today.toISOString() } },
    ...sidecar.state.servers.map(({ name }) => ({
      label: `$(server) calls of ${quoted(name)}`,
      filter: { server: name },
    })),
  ];
  const chosen = await window.showQuickPick(items, { placeHolder: "Show which calls?" });
  if (chosen) {
    const { server, failed, since } = chosen.filter;
    Object.assign(filter, { server, failed, since });
    const all = Object.keys(chosen.filter).length === 0;
    calls.view.description = all ? "" : chosen.label.replace(/^\$\(.*?\) /, "");
    calls.refresh();
  }
}

function grantCommands(app: App): void {
  register(app, "mcpSidecar.grants.refresh", () => app.grants.refresh());
  register(app, "mcpSidecar.grant.revoke", async (grant?: Grant) => {
    if (grant) {
      await app.sidecar.command("mcp.grant.revoke", { id: grant.id });
      const what = `${quoted(grant.tool)} of ${quoted(grant.server)}`;
      window.setStatusBarMessage(`$(check) Took back the grant for ${what}`, 5_000);
      app.grants.refresh();
    } else {
      await commands.executeCommand("mcpSidecar.grants.focus");
    }
  });
  register(app, "mcpSidecar.grants.revokeAll", async () => {
    const count = app.grants.items.length;
    const question = count > 0 ? `Take back ${plural(count, "grant")}?` : "Take back all grants?";
    if (await confirm(question, "You are asked again before each of these tools runs.", "Take Back")) {
      await app.sidecar.command("mcp.grant.revoke", { all: true });
      app.grants.refresh();
    }
  });
}
