/** The panel of the dashboard: draws the current state, and performs the actions of its buttons. */

import type { Disposable } from "vscode";
import { type App, register } from "../commands/app";
import { setLevel } from "../commands/policy";
import { showError } from "../errors";
import { LEVELS, type Level, type ToolInfo } from "../protocol";
import { type Message, Panel } from "../web/panel";
import { dashboardPage } from "./page";

/** Many servers change at once when they start; the page is redrawn once for all of them. */
const DRAW_MS = 300;

export function dashboard(app: App): Disposable[] {
  const { sidecar } = app;
  const panel = new Panel(app.context.extensionUri, "mcpSidecar.dashboard");
  let tools: ToolInfo[] = [];
  let timer: NodeJS.Timeout | undefined;

  const page = async () => {
    tools = (await sidecar.command("mcp.tools", { all: true })).tools;
    const { servers: metrics, views } = await sidecar.command("mcp.metrics", {});
    const { servers, approvals } = sidecar.state;
    const body = dashboardPage({ servers, tools, metrics, views, approvals: approvals.length });
    return { key: "dashboard", title: "MCP Sidecar", body };
  };
  const draw = () => {
    if (panel.open && !timer) {
      timer = setTimeout(async () => {
        timer = undefined;
        if (panel.open && sidecar.runStatus === "running") {
          await page().then(
            drawn => panel.update(drawn),
            error => showError(error, sidecar),
          );
        }
      }, DRAW_MS);
    }
  };
  const act = async ({ send, fields, ticked, changed }: Message) => {
    const { level, scope } = (fields ?? {}) as { level?: string; scope?: string };
    if (send === "levels") {
      for (const [name, chosen] of Object.entries((changed ?? {}) as Record<string, string>)) {
        await apply([name], chosen, scope);
      }
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
      const own = sidecar.state.server(server)?.scope;
      await setLevel(app, server, tool, level as Level, (scope === "file" && own) || "session");
    }
  };
  register(app, "mcpSidecar.dashboard", async () => panel.show(await page()));
  return [
    panel,
    panel.onMessage(message => act(message).catch(error => showError(error, sidecar))),
    sidecar.state.onServers(draw),
    sidecar.state.onApprovals(draw),
    sidecar.state.onCall(draw),
  ];
}
