/** Commands for the agents that are connected: pause them, disconnect them, limit them to a set of tools. */

import { commands, window } from "vscode";
import { clock } from "../clock";
import type { AgentStatus } from "../protocol";
import { quoted } from "../text";
import { type App, confirm, register } from "./app";

export function agentCommands(app: App): void {
  const { sidecar } = app;
  const pause = (paused: boolean) => async (agent?: AgentStatus) => {
    const chosen = agent ?? (await pick(app, paused ? "Pause which agent?" : "Resume which agent?"));
    if (chosen) {
      await sidecar.command("mcp.agent.pause", { agent: chosen.id, paused });
      app.agents.refresh();
    }
  };
  register(app, "mcpSidecar.agents.refresh", () => app.agents.refresh());
  register(app, "mcpSidecar.agent.pause", pause(true));
  register(app, "mcpSidecar.agent.resume", pause(false));
  register(app, "mcpSidecar.agent.disconnect", async (agent?: AgentStatus) => {
    const chosen = agent ?? (await pick(app, "Disconnect which agent?"));
    const question = chosen && `Disconnect ${quoted(chosen.name)}?`;
    if (question && (await confirm(question, "Its calls are cancelled. It can connect again.", "Disconnect"))) {
      await sidecar.command("mcp.agent.disconnect", { agent: chosen.id });
      app.agents.refresh();
    }
  });
  register(app, "mcpSidecar.agents.away", () => showAway(app));
  register(app, "mcpSidecar.agent.set", (agent?: AgentStatus) => chooseSet(app, agent));
  // What waits for the user comes first.
  register(app, "mcpSidecar.agent.open", (agent?: AgentStatus) => {
    const waiting = agent?.calls.find(call => call.question !== undefined);
    return waiting
      ? commands.executeCommand("mcpSidecar.approval.open", { id: waiting.question })
      : agent && app.calls.view.visible
        ? undefined
        : commands.executeCommand("mcpSidecar.calls.focus");
  });
}

/** Limits an agent to a set of tools; without an agent, all agents of this workspace. */
async function chooseSet(app: App, agent?: AgentStatus): Promise<void> {
  const { sets } = await app.sidecar.command("mcp.agents", {});
  const none = { label: "$(circle-slash) No set", description: "all tools", set: undefined };
  const items = [none, ...sets.map(set => ({ label: set, description: "", set }))];
  const who = agent ? quoted(agent.name) : "all agents of this workspace";
  const placeHolder =
    sets.length > 0
      ? `Which tools may ${who} see?`
      : 'Define sets in config.toml: [sets.NAME] tools = ["server__tool"]';
  const chosen = await window.showQuickPick(items, { title: "Set of tools", placeHolder });
  if (chosen) {
    const { set } = chosen;
    await app.sidecar.command("mcp.agent.set", { ...(set && { set }), ...(agent && { agent: agent.id }) });
    app.agents.refresh();
  }
}

/** Reports what agents did while no editor was open, if something was refused. */
export async function greet(app: App): Promise<void> {
  const { refused, summary } = await app.sidecar.command("mcp.away", {});
  if (refused.length > 0 && (await window.showInformationMessage(summary ?? "", "Show")) === "Show") {
    await showAway(app);
  }
}

/** Lists the calls that were refused because there was no one to ask, and allows the chosen one for the next time. */
async function showAway(app: App): Promise<void> {
  const { refused, summary } = await app.sidecar.command("mcp.away", {});
  if (refused.length === 0) {
    window.showInformationMessage(summary ?? "Agents did nothing while no editor was open.");
    return;
  }
  const items = refused.map(call => ({
    label: `${call.server} › ${call.tool}`,
    description: `${call.requester.name} · ${clock(call.time)}`,
    detail: JSON.stringify(call.arguments ?? {}),
    call,
  }));
  const options = { title: summary ?? "", placeHolder: "Allow a call next time, with these arguments" };
  const chosen = await window.showQuickPick(items, options);
  if (chosen) {
    await app.sidecar.command("mcp.away.allow", { callId: chosen.call.callId });
    window.setStatusBarMessage(`$(check) ${quoted(chosen.call.tool)} is allowed next time`, 5_000);
  }
}

async function pick(app: App, title: string): Promise<AgentStatus | undefined> {
  const { agents } = await app.sidecar.command("mcp.agents", {});
  const items = agents.map(agent => ({ label: agent.name, description: agent.doing, detail: agent.folder, agent }));
  if (items.length === 0) {
    window.showInformationMessage("No agent is connected.");
  }
  return items.length > 0 ? (await window.showQuickPick(items, { title }))?.agent : undefined;
}
