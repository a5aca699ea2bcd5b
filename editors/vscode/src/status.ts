/** The status bar item: how many servers are connected, and how many questions are waiting. */

import { type Disposable, MarkdownString, StatusBarAlignment, type StatusBarItem, ThemeColor, window } from "vscode";
import { plain } from "./markdown";
import type { Sidecar } from "./sidecar";
import { plural, sentence } from "./text";
import { countServers, serverIcon } from "./views/serverRows";

interface Shown {
  text: string;
  /** What a screen reader says. */
  spoken: string;
  tooltip: string;
  background?: "warning" | "error";
  command: string;
}

const LINKS =
  "[Dashboard](command:mcpSidecar.dashboard) · [Logs](command:mcpSidecar.showLogs) · [Restart](command:mcpSidecar.restart)";

/** The content of the item. */
function shown({ runStatus, problem, state: { servers, approvals } }: Sidecar): Shown {
  if (runStatus === "failed") {
    const tooltip = `**MCP Sidecar** could not start\n\n${plain(sentence(problem ?? ""))}\n\n${LINKS}`;
    const spoken = `MCP Sidecar could not start: ${problem ?? ""}`;
    return { text: "$(error) MCP", spoken, tooltip, background: "error", command: "mcpSidecar.showLogs" };
  }
  if (runStatus === "starting") {
    const spoken = "MCP Sidecar is starting";
    return { text: "$(loading~spin) MCP", spoken, tooltip: spoken, command: "mcpSidecar.showLogs" };
  }
  if (runStatus === "off") {
    const spoken = "MCP Sidecar is not running";
    return { text: "$(circle-slash) MCP", spoken, tooltip: spoken, command: "mcpSidecar.restart" };
  }
  const { connected, wanted, failed } = countServers(servers);
  const lines = servers.map(server => `$(${serverIcon(server)}) ${plain(server.name)}: ${plain(server.summary.text)}`);
  const body = lines.length > 0 ? lines.join("\n\n") : "No servers yet";
  if (approvals.length > 0) {
    const waits = approvals.map(approval => `$(question) ${plain(approval.title)}`).join("\n\n");
    return {
      text: `$(bell-dot) MCP ${approvals.length} waiting`,
      spoken: `MCP Sidecar: ${plural(approvals.length, "question")} waiting for your answer`,
      tooltip: `**${plural(approvals.length, "question")} waiting for your answer**\n\n${waits}\n\n---\n\n${body}\n\n${LINKS}`,
      background: "warning",
      command: "mcpSidecar.approvals.review",
    };
  }
  const text = wanted === 0 ? "$(plug) MCP" : `$(plug) MCP ${connected}/${wanted}`;
  const state = `${connected} of ${plural(wanted, "server")} connected`;
  return {
    spoken: `MCP Sidecar: ${state}${failed > 0 ? `, ${failed} failed` : ""}`,
    text: failed > 0 ? `${text} $(error)` : text,
    tooltip: `**MCP Sidecar**: ${state}\n\n${body}\n\n${LINKS}`,
    command: "mcpSidecar.servers.focus",
  };
}

export function statusBar(sidecar: Sidecar): Disposable[] {
  const item = window.createStatusBarItem("mcpSidecar.status", StatusBarAlignment.Right, 90);
  item.name = "MCP Sidecar";
  const draw = () => paint(item, sidecar);
  return [item, sidecar.onRunStatus(draw), sidecar.state.onServers(draw), sidecar.state.onApprovals(draw)];
}

function paint(item: StatusBarItem, sidecar: Sidecar): void {
  const { text, spoken, tooltip, background, command } = shown(sidecar);
  item.text = text;
  item.accessibilityInformation = { label: spoken, role: "button" };
  const markdown = new MarkdownString(tooltip, true);
  // Titles come from servers and agents, so only these links may run a command.
  markdown.isTrusted = { enabledCommands: ["mcpSidecar.dashboard", "mcpSidecar.showLogs", "mcpSidecar.restart"] };
  item.tooltip = markdown;
  item.backgroundColor = background ? new ThemeColor(`statusBarItem.${background}Background`) : undefined;
  item.command = command;
  item.show();
}
