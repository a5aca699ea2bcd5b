/** Commands for levels: set the level of one tool or of all tools of a server, and explain why a tool has its level. */

import { window } from "vscode";
import {
  type FileScope,
  LEVELS,
  type Level,
  type Policy,
  type Scope,
  type ServerStatus,
  type ToolInfo,
} from "../protocol";
import { quoted, sentence } from "../text";
import { LEVEL_WORDS } from "../views/serverRows";
import { type App, register, type ServerArgument, serverOf, type ToolArgument, toolOf } from "./app";
import { scope, unsaved } from "./files";

export function policyCommands(app: App): void {
  register(app, "mcpSidecar.tool.setLevel", async (given: ToolArgument & { level?: Level; scope?: Scope }) => {
    const tool = await toolOf(app, given, "Set the level of which tool?");
    if (tool) {
      const known = typeof given === "object" ? given : {};
      await set(app, tool.server, tool.tool, { now: tool.level, level: known.level, scope: known.scope });
    }
  });

  register(app, "mcpSidecar.server.setLevels", async (given: ServerArgument) => {
    const server = await serverOf(app, given, "Set the levels of all tools of which server?");
    if (server) {
      await set(app, server, "*", {});
    }
  });

  register(app, "mcpSidecar.tool.explain", async (given: ToolArgument) => {
    const tool = await toolOf(app, given, "Explain the level of which tool?");
    if (tool) {
      const params = { server: tool.server, tool: tool.tool };
      const { policies } = await app.sidecar.command("mcp.policies", params);
      await explain(app, tool, policies[0]);
    }
  });
}

async function explain(app: App, tool: ToolInfo, policy: Policy | undefined): Promise<void> {
  const hidden = (policy?.hides ?? []).map(({ level, source }) => `overrides ${level} from ${source}`);
  const agents = (policy?.agents ?? []).map(({ agent, level, source }) => `for ${quoted(agent)}: ${level} (${source})`);
  const detail = [
    `${sentence(LEVEL_WORDS[tool.level])} (decided by: ${policy?.source ?? tool.source})`,
    ...hidden,
    ...agents,
  ].join("\n");
  const change = "Set Level…";
  const chosen = await window.showInformationMessage(
    `${quoted(tool.tool)} of ${quoted(tool.server)}: ${tool.level}`,
    { modal: true, detail },
    change,
  );
  if (chosen === change) {
    await set(app, tool.server, tool.tool, { now: tool.level });
  }
}

/** What is already known; the rest is asked for. */
interface LevelChange {
  now?: Level;
  level?: Level | undefined;
  scope?: Scope | undefined;
}

async function set(app: App, server: string, tool: string, change: LevelChange): Promise<void> {
  const level = change.level ?? (await pickLevel(tool, change.now));
  const into = level !== undefined && (change.scope ?? (await pickScope(app.sidecar.state.server(server))));
  if (into) {
    await setLevel(app, server, tool, level, into);
  }
}

/** `null` removes the entry, so that the other rules apply again. */
export async function setLevel(
  app: App,
  server: string,
  tool: string,
  level: Level | null,
  into: Scope,
): Promise<void> {
  unsaved(await app.sidecar.command("mcp.tool.policy", { server, tool, scope: into, level }));
  app.sidecar.state.touch(server);
}

async function pickLevel(tool: string, now: Level | undefined): Promise<Level | null | undefined> {
  const items = LEVELS.map(level => ({
    label: level as string,
    description: `${LEVEL_WORDS[level]}${level === now ? " · current" : ""}`,
    level: level as Level | null,
  }));
  items.push({ label: "$(discard) remove the entry", description: "the other rules apply", level: null });
  return (
    await window.showQuickPick(items, {
      placeHolder: tool === "*" ? "Set the level of all tools" : `Set the level of ${quoted(tool)}`,
    })
  )?.level;
}

/** A file can set the levels of the servers that it defines; the session those of any server. */
async function pickScope(server: ServerStatus | undefined): Promise<FileScope | undefined> {
  const own = server?.scope;
  return scope("Where to save it?", one => one === "session" || one === own, ["session"]);
}
