/** Commands about levels: of one tool, of all tools of a server, and why a tool has the one it has. */

import { window } from "vscode";
import { LEVELS, type Level, type Scope, type ServerStatus, type ToolInfo } from "../protocol";
import { LEVEL_WORDS } from "../views/serverRows";
import { scope, unsaved } from "./files";
import { type Kit, register, type ServerArgument, serverOf, type ToolArgument, toolOf } from "./kit";

interface Policy {
  tool: string;
  level: Level;
  source: string;
  hides: { level?: Level; source?: string }[];
  /** For whom it is another, and why. */
  agents?: { agent: string; level: Level; source: string }[];
}

export function policyCommands(kit: Kit): void {
  register(kit, "mcpSidecar.tool.setLevel", async (given: ToolArgument & { level?: Level; scope?: Scope }) => {
    const tool = await toolOf(kit, given, "Set the level of which tool?");
    if (tool) {
      const wished = typeof given === "object" ? given : {};
      await set(kit, tool.server, tool.tool, { now: tool.level, level: wished.level, scope: wished.scope });
    }
  });

  register(kit, "mcpSidecar.server.setLevels", async (given: ServerArgument) => {
    const server = await serverOf(kit, given, "Set the levels of all tools of which server?");
    if (server) {
      await set(kit, server, "*", {});
    }
  });

  register(kit, "mcpSidecar.tool.explain", async (given: ToolArgument) => {
    const tool = await toolOf(kit, given, "Explain the level of which tool?");
    if (tool) {
      const params = { server: tool.server, tool: tool.tool };
      const { policies } = await kit.sidecar.command<{ policies: Policy[] }>("mcp.policies", params);
      await explain(kit, tool, policies[0]);
    }
  });
}

async function explain(kit: Kit, tool: ToolInfo, policy: Policy | undefined): Promise<void> {
  const hidden = (policy?.hides ?? []).map(one => `hides ${one.level ?? ""} by ${one.source ?? "another rule"}`);
  const agents = (policy?.agents ?? []).map(({ agent, level, source }) => `for ${agent}: ${level}, says ${source}`);
  const detail = [`${LEVEL_WORDS[tool.level]}, says ${policy?.source ?? tool.source}`, ...hidden, ...agents].join("\n");
  const change = "Set Level…";
  const chosen = await window.showInformationMessage(`${tool.tool}: ${tool.level}`, { modal: true, detail }, change);
  if (chosen === change) {
    await set(kit, tool.server, tool.tool, { now: tool.level });
  }
}

interface Wish {
  now?: Level;
  level?: Level | undefined;
  scope?: Scope | undefined;
}

async function set(kit: Kit, server: string, tool: string, wish: Wish): Promise<void> {
  const level = wish.level ?? (await pickLevel(tool, wish.now));
  const into = level !== undefined && (wish.scope ?? (await pickScope(kit.sidecar.picture.server(server))));
  if (into) {
    await setLevel(kit, server, tool, level, into);
  }
}

/** `null` takes the entry away, so that the other rules count again. */
export async function setLevel(
  kit: Kit,
  server: string,
  tool: string,
  level: Level | null,
  into: Scope,
): Promise<void> {
  unsaved(await kit.sidecar.command("mcp.tool.policy", { server, tool, level, scope: into }));
  kit.sidecar.picture.touch(server);
}

async function pickLevel(tool: string, now: Level | undefined): Promise<Level | null | undefined> {
  const items = LEVELS.map(level => ({
    label: level as string,
    description: `${LEVEL_WORDS[level]}${level === now ? " · now" : ""}`,
    level: level as Level | null,
  }));
  items.push({ label: "$(discard) no entry", description: "what the other rules say", level: null });
  return (await window.showQuickPick(items, { placeHolder: `The level of ${tool}` }))?.level;
}

/** A file can hold the levels of the servers that it defines; memory those of any. */
async function pickScope(server: ServerStatus | undefined): Promise<Scope | undefined> {
  const own = server?.scope;
  return scope("For how long?", one => one === "session" || one === own, ["session"]);
}
