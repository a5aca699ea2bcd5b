/** The rows of the Calls and Grants views. Pure. */

import { basename } from "node:path";
import { clock, when } from "../clock";
import { plain } from "../markdown";
import type { Call, Grant } from "../protocol";
import { duration } from "../results/page";
import { tokens } from "../text";
import type { Row } from "./row";
import { LEVEL_WORDS } from "./serverRows";

export function callRow(call: Call): Row {
  const who = call.requester.kind === "user" ? "you" : call.requester.name || call.requester.kind;
  const refused = !call.success && /^(deny|disable|denied|disabled)$/.test(call.decision);
  const [icon, color, outcome] = call.success
    ? ["pass", "testing.iconPassed", "ok"]
    : refused
      ? ["circle-slash", "list.warningForeground", "denied"]
      : ["error", "testing.iconFailed", "failed"];
  // A call in another worktree of the repository.
  const where = call.folder ? ` in ${basename(call.folder)}` : "";
  const lines = [
    `**${plain(call.server)} › ${plain(call.tool)}**`,
    ...(call.folder ? [plain(call.folder)] : []),
    `${plain(when(call.time))} · ${duration(call.durationMs)}`,
    `asked by ${plain(who)} · ${plain(call.decision)}, decided by ${plain(call.decidedBy)}`,
  ];
  if (call.resultBytes !== undefined && call.resultTokens !== undefined) {
    lines.push(`result: ${call.resultBytes} bytes, ${tokens(call.resultTokens)} tokens`);
  }
  if (call.error) {
    lines.push(plain(call.error));
  }
  return {
    id: `call:${call.callId}`,
    label: call.tool,
    description: `${call.server} · ${who}${where} · ${clock(call.time)} · ${duration(call.durationMs)}`,
    tooltip: lines.join("\n\n"),
    icon,
    color,
    spoken: `${call.tool} of ${call.server}, ${outcome}, asked by ${who}${where} at ${clock(call.time)}, took ${duration(call.durationMs)}`,
    contextValue: call.kind === "hook" ? "call.own" : "call",
    command: "mcpSidecar.call.open",
  };
}

export function grantRow(grant: Grant): Row {
  const words = LEVEL_WORDS[grant.level] ?? grant.level;
  return {
    id: `grant:${grant.id}`,
    label: grant.tool,
    description: `${grant.server} · ${words}`,
    tooltip: `**${plain(grant.server)} › ${plain(grant.tool)}**\n\n${words}, since ${plain(when(grant.since))}`,
    ...(grant.level === "disable" ? { icon: "circle-slash" } : { icon: "unlock", color: "testing.iconPassed" }),
    contextValue: "grant",
  };
}
