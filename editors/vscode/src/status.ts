/** The status bar item: how many servers are connected, and how many questions are waiting. */

import { type Disposable, MarkdownString, StatusBarAlignment, type StatusBarItem, ThemeColor, window } from "vscode";
import { plain } from "./markdown";
import type { Approval, ServerStatus } from "./protocol";
import type { RunStatus, Sidecar } from "./sidecar";
import { plural, sentence } from "./text";

export interface Shown {
  text: string;
  tooltip: string;
  background?: "warning" | "error";
  command: string;
}

const LINKS =
  "[Dashboard](command:mcpSidecar.dashboard) · [Logs](command:mcpSidecar.showLogs) · [Restart](command:mcpSidecar.restart)";

/** The content of the item. Pure. */
export function shown(
  runStatus: RunStatus,
  problem: string | undefined,
  servers: readonly ServerStatus[],
  approvals: readonly Approval[],
): Shown {
  if (runStatus === "failed") {
    const tooltip = `**MCP Sidecar** could not start\n\n${plain(sentence(problem ?? ""))}\n\n${LINKS}`;
    return { text: "$(error) MCP", tooltip, background: "error", command: "mcpSidecar.showLogs" };
  }
  if (runStatus === "starting") {
    return { text: "$(loading~spin) MCP", tooltip: "MCP Sidecar is starting", command: "mcpSidecar.showLogs" };
  }
  if (runStatus === "off") {
    return { text: "$(circle-slash) MCP", tooltip: "MCP Sidecar is not running", command: "mcpSidecar.restart" };
  }
  const connected = servers.filter(server => server.status === "connected").length;
  const counted = servers.filter(server => server.status !== "disabled").length;
  const failed = servers.filter(server => server.status === "failed");
  const lines = servers.map(
    server => `${bullet(server)} ${plain(server.name)}: ${plain(server.reason ?? server.status)}`,
  );
  const body = lines.length > 0 ? lines.join("\n\n") : "No servers yet";
  if (approvals.length > 0) {
    const waits = approvals.map(approval => `$(question) ${plain(approval.title)}`).join("\n\n");
    return {
      text: `$(bell-dot) MCP ${approvals.length} waiting`,
      tooltip: `**${plural(approvals.length, "question")} waiting for your answer**\n\n${waits}\n\n---\n\n${body}\n\n${LINKS}`,
      background: "warning",
      command: "mcpSidecar.approvals.review",
    };
  }
  const text = counted === 0 ? "$(plug) MCP" : `$(plug) MCP ${connected}/${counted}`;
  return {
    text: failed.length > 0 ? `${text} $(error)` : text,
    tooltip: `**MCP Sidecar**: ${connected} of ${plural(counted, "server")} connected\n\n${body}\n\n${LINKS}`,
    command: "mcpSidecar.servers.focus",
  };
}

function bullet(server: ServerStatus): string {
  switch (server.status) {
    case "connected":
      return "$(pass-filled)";
    case "failed":
      return "$(error)";
    case "needs-auth":
      return "$(key)";
    case "pending":
      return server.needsTrust ? "$(shield)" : "$(loading~spin)";
    default:
      return "$(circle-outline)";
  }
}

export function statusBar(sidecar: Sidecar): Disposable[] {
  const item = window.createStatusBarItem("mcpSidecar.status", StatusBarAlignment.Right, 90);
  item.name = "MCP Sidecar";
  const draw = () => paint(item, sidecar);
  return [item, sidecar.onRunStatus(draw), sidecar.state.onServers(draw), sidecar.state.onApprovals(draw)];
}

function paint(item: StatusBarItem, { runStatus, problem, state }: Sidecar): void {
  const { text, tooltip, background, command } = shown(runStatus, problem, state.servers, state.approvals);
  item.text = text;
  const markdown = new MarkdownString(tooltip, true);
  // Titles come from servers and agents, so only these links may run a command.
  markdown.isTrusted = { enabledCommands: ["mcpSidecar.dashboard", "mcpSidecar.showLogs", "mcpSidecar.restart"] };
  item.tooltip = markdown;
  item.backgroundColor = background ? new ThemeColor(`statusBarItem.${background}Background`) : undefined;
  item.command = command;
  item.show();
}
