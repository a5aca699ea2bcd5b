/** Commands for questions that are waiting, for the call log and for grants. */

import { commands, window } from "vscode";
import type { Approval, Call, Grant } from "../protocol";
import { runAgain } from "../results/panel";
import { fullName, plural, quoted } from "../text";
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

/** How many calls are searched for names of agents. */
const MOST_RECENT = 1_000;

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
    const options = { title: approval.title, prompt: "Why not? The agent sees this.", ignoreFocusOut: true };
    const note = await window.showInputBox(options);
    if (note !== undefined) {
      await approvalPanel.resolve(approval, "deny", { note });
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
  register(
    app,
    "mcpSidecar.call.open",
    async (call?: Call) => call && app.results.call(await withWholeResult(app, call)),
  );
  register(app, "mcpSidecar.call.again", async (call?: Call) => {
    if (call) {
      await runAgain(fullName(call), call.arguments);
    }
  });
  register(app, "mcpSidecar.calls.refresh", () => app.calls.refresh());
  register(app, "mcpSidecar.calls.filter", () => filterCalls(app));
}

/** Of a large result, the log has only the beginning. The whole is kept for a while if an agent got it in parts. */
async function withWholeResult({ sidecar }: App, call: Call): Promise<Call> {
  if (!call.result || call.result.content) {
    return call;
  }
  try {
    const { content, isError } = await sidecar.command("mcp.call.result", { callId: call.callId });
    return { ...call, result: { content, isError } };
  } catch {
    return call;
  }
}

async function filterCalls({ sidecar, calls, filter }: App): Promise<void> {
  const today = new Date();
  today.setHours(0, 0, 0, 0);
  const recent = (await sidecar.command("mcp.calls", { limit: MOST_RECENT })).calls;
  const agents = new Set(recent.flatMap(({ requester: { kind, name } }) => (kind === "user" || !name ? [] : [name])));
  const items: { label: string; filter?: CallFilter }[] = [
    { label: "$(list-flat) all calls", filter: {} },
    { label: "$(search) calls with a text…" },
    { label: "$(error) failed calls", filter: { failed: true } },
    { label: "$(circle-slash) denied calls", filter: { denied: true } },
    { label: "$(calendar) today's calls", filter: { since: today.toISOString() } },
    ...[...agents].sort().map(agent => ({ label: `$(hubot) calls by ${quoted(agent)}`, filter: { agent } })),
    ...sidecar.state.servers.map(({ name }) => ({
      label: `$(server) calls of ${quoted(name)}`,
      filter: { server: name },
    })),
  ];
  const chosen = await window.showQuickPick(items, { placeHolder: "Show which calls?" });
  const wanted = chosen && (chosen.filter ?? (await askText(filter.text ?? "")));
  if (wanted) {
    const { server, failed, since, denied, agent, text } = wanted;
    Object.assign(filter, { server, failed, since, denied, agent, text });
    const label = text ? `with “${text}”` : chosen.label.replace(/^\$\(.*?\) /, "");
    calls.view.description = Object.keys(wanted).length === 0 ? "" : label;
    calls.refresh();
  }
}

/** A text to look for in names, arguments, results and errors. */
async function askText(value: string): Promise<CallFilter | undefined> {
  const prompt = "A part of a name, of the arguments, the result or the error";
  const text = await window.showInputBox({ title: "Filter calls", prompt, value });
  return text === undefined ? undefined : text ? { text } : {};
}

function grantCommands(app: App): void {
  register(app, "mcpSidecar.grants.refresh", () => app.grants.refresh());
  register(app, "mcpSidecar.grant.revoke", async (grant?: Grant) => {
    if (grant) {
      await app.sidecar.command("mcp.grant.revoke", { id: grant.id });
      const what = `${quoted(grant.tool)} of ${quoted(grant.server)}`;
      window.setStatusBarMessage(`$(check) Revoked the grant for ${what}`, 5_000);
      app.grants.refresh();
    } else {
      await commands.executeCommand("mcpSidecar.grants.focus");
    }
  });
  register(app, "mcpSidecar.grants.revokeAll", async () => {
    const count = app.grants.items.length;
    const question = count > 0 ? `Revoke ${plural(count, "grant")}?` : "Revoke all grants?";
    if (await confirm(question, "You are asked again before each of these tools runs.", "Revoke")) {
      await app.sidecar.command("mcp.grant.revoke", { all: true });
      app.grants.refresh();
    }
  });
}
