/** The rows of the Servers view. Pure. */

import { fenced, plain } from "../markdown";
import type { Annotations, Level, PromptInfo, ResourceInfo, ServerStatus, ToolInfo } from "../protocol";
import { plural } from "../text";
import type { Row } from "./row";

const GREEN = "testing.iconPassed";
const RED = "testing.iconFailed";
const YELLOW = "list.warningForeground";
const MAGENTA = "charts.purple";
const GREY = "disabledForeground";

export function serverRow(server: ServerStatus): Row {
  const [icon, color] = serverIcon(server);
  return {
    id: `server:${server.name}`,
    label: server.name,
    description: statusText(server),
    tooltip: serverTooltip(server),
    icon,
    color,
    contextValue: serverContext(server),
    collapsible: "collapsed",
  };
}

function serverIcon(server: ServerStatus): [icon: string, color: string] {
  if (server.needsTrust && server.status === "pending") {
    return ["shield", YELLOW];
  }
  switch (server.status) {
    case "connected":
      return server.enabled ? ["pass-filled", GREEN] : ["eye-closed", GREY];
    case "failed":
      return ["error", RED];
    case "needs-auth":
      return ["key", MAGENTA];
    case "pending":
      return ["loading~spin", YELLOW];
    case "disabled":
      return ["circle-slash", GREY];
    case "stopped":
      return ["debug-stop", GREY];
  }
}

/** The text beside the name: what the server has, or why it has nothing. */
export function statusText(server: ServerStatus): string {
  if (server.status === "disabled") {
    return "disabled in its file";
  }
  if (server.needsTrust) {
    return server.trustDiff ? "changed since you trusted it" : "needs your trust";
  }
  switch (server.status) {
    case "connected":
      return server.enabled ? counts(server) : "tools hidden";
    case "failed":
      return server.error?.split("\n", 1)[0] ?? "failed";
    case "needs-auth":
      return "needs sign-in";
    case "pending":
      return server.reason ?? "starting";
    case "stopped":
      return "stopped";
  }
}

function counts(server: ServerStatus): string {
  const parts = [
    server.toolCount > 0 && plural(server.toolCount, "tool"),
    server.resourceCount > 0 && plural(server.resourceCount, "resource"),
    server.promptCount > 0 && plural(server.promptCount, "prompt"),
  ];
  return parts.filter(Boolean).join(" · ") || "connected";
}

/** `server`, then a flag for each action that is possible. */
export function serverContext(server: ServerStatus): string {
  const flags = ["server"];
  if (server.needsTrust) {
    flags.push("untrusted");
  } else if (server.status === "stopped" || server.status === "failed") {
    flags.push("startable");
  } else if (server.status !== "disabled") {
    flags.push("running");
  }
  flags.push(server.status === "disabled" ? "off" : "on");
  flags.push(server.enabled ? "shown" : "hidden");
  if (server.status === "needs-auth") {
    flags.push("signin");
  } else if (server.transport === "http" || server.transport === "sse" || server.scope === "claudeai") {
    flags.push("signout");
  }
  flags.push(server.file ? "file" : "memory");
  return flags.join(".");
}

function serverTooltip(server: ServerStatus): string {
  const about = server.serverInfo ? `${server.serverInfo.name} ${server.serverInfo.version}` : "";
  const lines = [`**${plain(server.name)}** ${plain(about)}`];
  const description = server.config.description;
  if (typeof description === "string") {
    lines.push(plain(description));
  }
  lines.push(
    `${server.status}${server.reason ? ` (${plain(server.reason)})` : ""} · ${server.transport} · ${server.scope}`,
  );
  if (server.latencyMs !== undefined) {
    lines.push(`responds in ${server.latencyMs.toFixed(1)} ms · restarted ${plural(server.restarts, "time")}`);
  }
  if (server.file) {
    lines.push(`from ${plain(server.file)}${server.line === undefined ? "" : `:${server.line + 1}`}`);
  }
  for (const hidden of server.hides) {
    lines.push(`overrides the server of scope ${hidden.scope}${hidden.file ? ` in ${plain(hidden.file)}` : ""}`);
  }
  if (server.trustDiff) {
    lines.push("changed since you trusted it:", fenced(server.trustDiff, "diff"));
  }
  if (server.error) {
    lines.push(fenced(server.error));
  }
  return [...lines, ...server.warnings.map(warning => `$(warning) ${plain(warning)}`)].join("\n\n");
}

/** An error or warning below a server, because its own row has no room for it. */
export function noteRow(server: string, place: number, kind: "error" | "warning", text: string): Row {
  const color = kind === "error" ? RED : YELLOW;
  return {
    id: `note:${server}:${place}`,
    label: text.split("\n", 1)[0] ?? "",
    tooltip: fenced(text),
    icon: kind,
    color,
  };
}

export function groupRow(server: string, kind: "tools" | "resources" | "prompts", count: number): Row {
  const labels = { tools: "Tools", resources: "Resources", prompts: "Prompts" };
  const icons = { tools: "tools", resources: "files", prompts: "comment" };
  return {
    id: `group:${server}:${kind}`,
    label: labels[kind],
    description: String(count),
    icon: icons[kind],
    contextValue: `group.${kind}`,
    collapsible: kind === "tools" ? "expanded" : "collapsed",
  };
}

const LEVEL_ICONS: Record<Level, [icon: string, color: string]> = {
  disable: ["eye-closed", GREY],
  deny: ["circle-slash", RED],
  "require-approval": ["question", YELLOW],
  "allow-once": ["pass", YELLOW],
  "allow-session": ["pass", GREEN],
  "allow-project": ["pass", GREEN],
  "allow-always": ["pass-filled", GREEN],
};

export const LEVEL_WORDS: Record<Level, string> = {
  disable: "hidden from all agents",
  deny: "denied",
  "require-approval": "asks each time",
  "allow-once": "first call allowed, then asks",
  "allow-session": "allowed for this session",
  "allow-project": "allowed in this project",
  "allow-always": "always allowed",
};

export function toolRow(tool: ToolInfo): Row {
  const [icon, color] = tool.changed ? ["warning", YELLOW] : LEVEL_ICONS[tool.level];
  const words = tool.changed ? "changed since you allowed it" : annotationText(tool.annotations);
  return {
    id: `tool:${tool.name}`,
    label: tool.tool,
    description: words ? `${tool.level} · ${words}` : tool.level,
    tooltip: toolTooltip(tool),
    icon,
    color,
    contextValue: `tool.${tool.level === "disable" || tool.level === "deny" ? "closed" : "callable"}`,
    command: "mcpSidecar.tool.show",
  };
}

/** What a tool declares about itself, in a word or two. */
export function annotationText(annotations: Annotations): string {
  if (annotations.readOnly) {
    return "read-only";
  }
  return annotations.destructive ? "destructive" : "";
}

function toolTooltip(tool: ToolInfo): string {
  const fields = Object.entries(tool.inputSchema.properties ?? {}).map(([name, field]) => {
    const needed = tool.inputSchema.required?.includes(name) ? ", required" : "";
    const about = field.description ? `: ${plain(field.description)}` : "";
    return `- ${plain(name)} (${plain(String(field.type ?? "any"))}${needed})${about}`;
  });
  return [
    `**${plain(tool.title ?? tool.tool)}**`,
    plain(tool.description),
    fields.join("\n"),
    `${LEVEL_WORDS[tool.level]} (\`${tool.level}\`), decided by: ${plain(tool.source)}`,
  ]
    .filter(Boolean)
    .join("\n\n");
}

export function resourceRow(resource: ResourceInfo): Row {
  const address = resource.uri ?? resource.uriTemplate ?? "";
  const row: Row = {
    id: `resource:${resource.server}:${address}`,
    label: resource.title ?? resource.name,
    description: address,
    tooltip: [plain(address), resource.description && plain(resource.description), resource.mimeType]
      .filter(Boolean)
      .join("\n\n"),
    icon: resource.uri ? "file" : "symbol-parameter",
    contextValue: "resource",
    command: "mcpSidecar.resource.open",
  };
  return row;
}

export function promptRow(prompt: PromptInfo): Row {
  const takes = (prompt.arguments ?? []).map(argument => (argument.required ? argument.name : `${argument.name}?`));
  return {
    id: `prompt:${prompt.server}:${prompt.name}`,
    label: prompt.title ?? prompt.name,
    description: takes.join(", "),
    tooltip: plain(prompt.description ?? prompt.name),
    icon: "comment",
    contextValue: "prompt",
    command: "mcpSidecar.prompt.show",
  };
}
