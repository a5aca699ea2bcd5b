/** Commands about questions that wait, calls that were made and what was allowed for longer. */

import { commands, window } from "vscode";
import { answer, approvalRow } from "../approvals/words";
import type { Approval, Call, Grant } from "../protocol";
import { plural } from "../say";
import { type CallFilter, confirm, type Kit, register } from "./kit";

/** Answers that have a command of their own, for menus and keys. */
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

export function questionCommands(kit: Kit): void {
  const { sidecar, desk } = kit;
  const chosen = (item: Approval | undefined, others: Approval[] | undefined) => {
    const found = kit.approvals.chosen(item, others);
    return found.length > 0 ? found : sidecar.picture.approvals.slice(0, 1);
  };
  for (const [name, decision] of Object.entries(DECISIONS)) {
    register(kit, `mcpSidecar.approval.${name}`, async (item?: Approval, others?: Approval[]) => {
      for (const approval of chosen(item, others)) {
        if (approval.options.includes(decision)) {
          await desk.resolve(approval, decision);
        }
      }
    });
  }
  register(kit, "mcpSidecar.approval.denyWithNote", async (item?: Approval, others?: Approval[]) => {
    const asked = chosen(item, others);
    const note = asked.length > 0 ? await window.showInputBox({ prompt: "Why not? The agent reads it." }) : undefined;
    if (note !== undefined) {
      for (const approval of asked) {
        await desk.resolve(approval, "deny", note);
      }
    }
  });
  register(kit, "mcpSidecar.approval.open", (item?: Approval) => desk.open(item?.id));
  register(kit, "mcpSidecar.approvals.review", async () => {
    await commands.executeCommand("mcpSidecar.approvals.focus");
    desk.open();
  });
  register(kit, "mcpSidecar.approvals.answer", () => answerByKeys(kit));
  callCommands(kit);
  grantCommands(kit);
}

/** Picks a question, then one of its answers: all by the keyboard. */
async function answerByKeys({ sidecar, desk }: Kit): Promise<void> {
  const items = sidecar.picture.approvals.map(approval => {
    const { label, description = "", icon } = approvalRow(approval);
    return { label: `$(${icon}) ${label}`, description, approval };
  });
  if (items.length === 0) {
    window.showInformationMessage("Nothing waits for an answer.");
    return;
  }
  const question =
    items.length === 1 ? items[0] : await window.showQuickPick(items, { placeHolder: "Answer which question?" });
  if (!question) {
    return;
  }
  const { approval } = question;
  const inFull = { label: "$(eye) Show it in full", decision: "" };
  const answers = approval.options.map(decision => ({ label: answer(approval, decision), decision }));
  const given = JSON.stringify(approval.arguments ?? {});
  const options = { title: approval.title, placeHolder: given === "{}" ? approval.detail : given };
  const chosen = await window.showQuickPick([inFull, ...answers], options);
  if (chosen === inFull) {
    desk.open(approval.id);
  } else if (chosen) {
    await desk.resolve(approval, chosen.decision);
  }
}

function callCommands(kit: Kit): void {
  register(kit, "mcpSidecar.call.open", async (item?: Call) => {
    const [call] = kit.calls.chosen(item, undefined);
    if (call) {
      await kit.results.call(call);
    }
  });
  register(kit, "mcpSidecar.call.again", async (item?: Call) => {
    const [call] = kit.calls.chosen(item, undefined);
    if (call) {
      const tool = `mcp__${call.server}__${call.tool}`;
      await commands.executeCommand("mcpSidecar.tool.call", { tool, arguments: call.arguments });
    }
  });
  register(kit, "mcpSidecar.calls.refresh", () => kit.calls.refresh());
  register(kit, "mcpSidecar.calls.filter", () => filterCalls(kit));
}

async function filterCalls({ sidecar, calls, filter }: Kit): Promise<void> {
  const today = new Date();
  today.setHours(0, 0, 0, 0);
  const items: { label: string; filter: CallFilter }[] = [
    { label: "$(list-flat) all calls", filter: {} },
    { label: "$(error) failed calls", filter: { failed: true } },
    { label: "$(calendar) calls of today", filter: { since: today.toISOString() } },
    ...sidecar.picture.servers.map(({ name }) => ({ label: `$(server) calls of ${name}`, filter: { server: name } })),
  ];
  const chosen = await window.showQuickPick(items, { placeHolder: "Show which calls?" });
  if (chosen) {
    const { server, failed, since } = chosen.filter;
    Object.assign(filter, { server, failed, since });
    const everything = Object.keys(chosen.filter).length === 0;
    calls.view.description = everything ? "" : chosen.label.replace(/^\$\(.*?\) /, "");
    calls.refresh();
  }
}

function grantCommands(kit: Kit): void {
  register(kit, "mcpSidecar.grants.refresh", () => kit.grants.refresh());
  register(kit, "mcpSidecar.grant.revoke", async (item?: Grant, others?: Grant[]) => {
    for (const { id } of kit.grants.chosen(item, others)) {
      await kit.sidecar.command("mcp.grant.revoke", { id });
    }
    kit.grants.refresh();
  });
  register(kit, "mcpSidecar.grants.revokeAll", async () => {
    const count = kit.grants.items.length;
    const question = count > 0 ? `Take back ${plural(count, "grant")}?` : "Take back all grants?";
    if (await confirm(question, "Each of these tools asks again before it runs.", "Take back")) {
      await kit.sidecar.command("mcp.grant.revoke", { all: true });
      kit.grants.refresh();
    }
  });
}
