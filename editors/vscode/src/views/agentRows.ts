/** The rows of the Agents view. Pure. */

import { basename } from "node:path";
import { clock, when } from "../clock";
import { plain } from "../markdown";
import type { AgentStatus } from "../protocol";
import { plural, tokens } from "../text";
import type { Row } from "./row";

/** `folders` are those of this window. An agent that works elsewhere shows where. */
export function agentRow(agent: AgentStatus, folders: readonly string[] = [agent.folder]): Row {
  const name = agent.name || "(no name yet)";
  const waits = agent.calls.some(call => call.question !== undefined);
  const [icon, color] = agent.paused
    ? ["debug-pause", "list.warningForeground"]
    : waits || agent.problem
      ? ["bell-dot", "list.warningForeground"]
      : agent.calls.length > 0
        ? ["loading~spin", "testing.iconPassed"]
        : ["robot", "disabledForeground"];
  const { calls, denied, tokens: read } = agent.today;
  const place = folders.includes(agent.folder) ? "" : `${basename(agent.folder)} · `;
  const set = agent.set ? ` · set ${agent.set}` : "";
  const lines = [
    `**${plain(name)}**`,
    plain(agent.folder),
    `connected since ${plain(when(agent.since))}${plain(set)}`,
    `in the last 24 hours: ${plural(calls, "call")}, ${denied} denied, ${tokens(read)} tokens of results`,
    ...agent.calls.map(call => `- ${plain(call.server)} › ${plain(call.tool)}, since ${plain(clock(call.since))}`),
  ];
  return {
    id: `agent:${agent.id}`,
    label: name,
    description: `${place}${agent.problem ?? agent.doing}${set} · ${plural(calls, "call")}`,
    spoken: `agent ${name}, ${place}${agent.problem ?? agent.doing}${set}`,
    tooltip: lines.join("\n\n"),
    icon,
    color,
    contextValue: `agent.${agent.paused ? "paused" : "running"}`,
    command: "mcpSidecar.agent.open",
  };
}
