/** The rows of the Calls and Grants views. Pure. */

import { clock } from "../approvals/page";
import { plain } from "../markdown";
import type { Call, Grant } from "../protocol";
import { duration } from "../results/page";
import type { Row } from "./row";
import { LEVEL_WORDS } from "./serverRows";

export function callRow(call: Call): Row {
  const who = call.requester.kind === "user" ? "you" : call.requester.name || call.requester.kind;
  const refused = !call.success && /^(deny|disable|denied|disabled)$/.test(call.decision);
  const [icon, color] = call.success
    ? ["pass", "testing.iconPassed"]
    : refused
      ? ["circle-slash", "list.warningForeground"]
      : ["error", "testing.iconFailed"];
  const lines = [
    `**${plain(call.server)} › ${plain(call.tool)}**`,
    `${plain(call.time)} · ${duration(call.durationMs)}`,
    `asked by ${plain(who)} · ${plain(call.decision)}, decided by ${plain(call.decidedBy)}`,
  ];
  if (call.error) {
    lines.push(plain(call.error));
  }
  return {
    id: `call:${call.callId}`,
    label: call.tool,
    description: `${call.server} · ${who} · ${duration(call.durationMs)} · ${clock(call.time)}`,
    tooltip: lines.join("\n\n"),
    icon,
    color,
    contextValue: "call",
    command: "mcpSidecar.call.open",
  };
}

export function grantRow(grant: Grant): Row {
  const words = LEVEL_WORDS[grant.level] ?? grant.level;
  return {
    id: `grant:${grant.id}`,
    label: grant.tool,
    description: `${grant.server} · ${words}`,
    tooltip: `**${plain(grant.server)} › ${plain(grant.tool)}**\n\n${words}, since ${plain(grant.since)}`,
    ...(grant.level === "disable" ? { icon: "circle-slash" } : { icon: "unlock", color: "testing.iconPassed" }),
    contextValue: "grant",
  };
}
