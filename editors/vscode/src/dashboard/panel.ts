/** The dashboard's panel: draws what the sidecar says now, and carries out what is pressed on it. */

import type { Disposable } from "vscode";
import { type Kit, register } from "../commands/kit";
import { setLevel } from "../commands/policy";
import { LEVELS, type Level, type Scope, type ToolInfo } from "../protocol";
import { complain } from "../say";
import { type Message, Panel } from "../web/panel";
import { dashboardPage, type Metrics } from "./page";

/** Many servers change at once when they start; the page is drawn once for all. */
const DRAW_MS = 300;

export function dashboard(kit: Kit): Disposable[] {
  const { sidecar } = kit;
  const panel = new Panel(kit.context.extensionUri, "mcpSidecar.dashboard");
  let tools: ToolInfo[] = [];
  let timer: NodeJS.Timeout | undefined;

  const page = async () => {
    tools = (await sidecar.command<{ tools: ToolInfo[] }>("mcp.tools", { all: true })).tools;
    const metrics = (await sidecar.command<{ servers: Metrics[] }>("mcp.metrics")).servers;
    const { servers, approvals } = sidecar.picture;
    return dashboardPage({ servers, tools, metrics, approvals: approvals.length });
  };
  const draw = () => {
    if (panel.open && !timer) {
      timer = setTimeout(async () => {
        timer = undefined;
        if (panel.open && sidecar.life === "running") {
          await page().then(
            body => panel.update("MCP Sidecar", body),
            error => complain(error, sidecar),
          );
        }
      }, DRAW_MS);
    }
  };
  const act = async ({ send, tool, value, fields, ticked }: Message) => {
    const { level, scope } = (fields ?? {}) as { level?: string; scope?: string };
    if (send === "level") {
      await apply([String(tool)], String(value), scope);
    } else if (send === "bulk") {
      await apply((ticked ?? []) as string[], String(level), scope);
    }
    draw();
  };
  const apply = async (names: string[], level: string, scope = "session") => {
    if (!LEVELS.includes(level as Level)) {
      return;
    }
    for (const { server, tool } of tools.filter(one => names.includes(one.name))) {
      const own = sidecar.picture.server(server)?.scope ?? "session";
      await setLevel(kit, server, tool, level as Level, scope === "file" ? own : ("session" satisfies Scope));
    }
  };
  register(kit, "mcpSidecar.dashboard", async () => panel.show("MCP Sidecar", await page()));
  return [
    panel,
    panel.onMessage(message => act(message).catch(error => complain(error, sidecar))),
    sidecar.picture.onServers(draw),
    sidecar.picture.onApprovals(draw),
    sidecar.picture.onCall(draw),
  ];
}
