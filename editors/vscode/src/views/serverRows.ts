/** The rows of the Servers view. Pure. */

import { fenced, plain } from "../markdown";
import type {
  ActionKind,
  Annotations,
  Field,
  Level,
  PromptInfo,
  ResourceInfo,
  ServerStatus,
  Tone,
  ToolInfo,
} from "../protocol";
import { plural, tokens } from "../text";
import type { Row } from "./row";

const GREEN = "testing.iconPassed";
const RED = "testing.iconFailed";
const YELLOW = "list.warningForeground";
const GREY = "disabledForeground";

const TONES: Record<Tone, [icon: string, color: string]> = {
  good: ["pass-filled", GREEN],
  busy: ["loading~spin", YELLOW],
  attention: ["bell-dot", YELLOW],
  bad: ["error", RED],
  muted: ["circle-slash", GREY],
};

/** The icons of what the user is asked to do first. */
const ASKED: Partial<Record<ActionKind, string>> = { trust: "shield", "sign-in": "key" };

export function serverRow(server: ServerStatus): Row {
  const { name, summary, actions } = server;
  return {
    id: `server:${name}`,
    label: name,
    description: summary.text,
    spoken: `server ${name}, ${summary.text}`,
    tooltip: serverTooltip(server),
    icon: serverIcon(server),
    color: TONES[summary.tone][1],
    contextValue: ["server", ...actions.map(action => action.kind), ...(server.file ? ["file"] : [])].join("."),
    collapsible: "Collapsed",
  };
}

export function serverIcon({ summary: { tone }, actions }: ServerStatus): string {
  const asked = tone === "attention" && actions[0] && ASKED[actions[0].kind];
  return asked || TONES[tone][0];
}

/** How many servers are connected, how many should be, and how many failed. */
export function countServers(servers: readonly ServerStatus[]) {
  const count = (tone: Tone) => servers.filter(server => server.summary.tone === tone).length;
  return { connected: count("good"), wanted: servers.length - count("muted"), failed: count("bad") };
}

function serverTooltip(server: ServerStatus): string {
  const about = server.serverInfo ? `${server.serverInfo.name} ${server.serverInfo.version}` : "";
  const lines = [`**${plain(server.name)}** ${plain(about)}`];
  const description = server.config.description;
  if (typeof description === "string") {
    lines.push(plain(description));
  }
  lines.push(`${plain(server.summary.text)} · ${server.transport} · ${server.scope}`);
  if (server.tokens > 0) {
    const count = plural(server.toolCount, "tool");
    lines.push(`the definitions of ${count} use ${tokens(server.tokens)} tokens of a model's context`);
  }
  if (server.latencyMs !== undefined) {
    lines.push(`responds in ${server.latencyMs.toFixed(1)} ms · restarted ${plural(server.restarts, "time")}`);
  }
  if (server.file) {
    lines.push(`from ${plain(server.file)}${server.line === undefined ? "" : `:${server.line + 1}`}`);
  }
  for (const hidden of server.hides) {
    lines.push(`overrides the server of scope ${hidden.scope}${hidden.file ? ` in ${plain(hidden.file)}` : ""}`);
  }
  for (const { effect, file, line, scope } of server.restrictions) {
    const where = file ? ` ${plain(file)}${line === undefined ? "" : `:${line + 1}`}` : "";
    lines.push(`${effect}:${where} (${scope})`);
  }
  if (server.trustDiff) {
    lines.push("What changed:", fenced(server.trustDiff, "diff"));
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
    spoken: `${kind}: ${text}`,
    tooltip: fenced(text),
    icon: kind,
    color,
  };
}

export function groupRow(server: string, kind: "tools" | "resources" | "prompts", count: number, cost = 0): Row {
  const labels = { tools: "Tools", resources: "Resources", prompts: "Prompts" };
  const icons = { tools: "tools", resources: "files", prompts: "comment" };
  return {
    id: `group:${server}:${kind}`,
    label: labels[kind],
    description: cost > 0 ? `${count} · ${tokens(cost)} tokens` : String(count),
    spoken: plural(count, kind.slice(0, -1)) + (cost > 0 ? `, ${tokens(cost)} tokens` : ""),
    icon: icons[kind],
    contextValue: `group.${kind}`,
    collapsible: kind === "tools" ? "Expanded" : "Collapsed",
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
    spoken: [`tool ${tool.tool}`, LEVEL_WORDS[tool.level], words].filter(Boolean).join(", "),
    icon,
    color,
    contextValue: `tool.${tool.callable ? "callable" : "closed"}`,
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

/** Markdown. `fields` are the arguments, once they are known. */
export function toolTooltip(tool: ToolInfo, fields: readonly Field[] = []): string {
  const lines = fields.map(({ title, rule, required, help }) => {
    const about = help ? `: ${plain(help)}` : "";
    return `- ${plain(title)} (${plain(rule)}${required ? ", required" : ""})${about}`;
  });
  return [
    `**${plain(tool.title ?? tool.tool)}**`,
    plain(tool.description),
    lines.join("\n"),
    `${LEVEL_WORDS[tool.level]} (\`${tool.level}\`), decided by: ${plain(tool.source)}`,
    `its definition uses ${tokens(tool.tokens)} tokens of a model's context`,
  ]
    .filter(Boolean)
    .join("\n\n");
}

export function resourceRow(resource: ResourceInfo): Row {
  const address = resource.uri ?? resource.uriTemplate ?? "";
  return {
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
