/** What all commands share: the parts of the extension, how a command is registered, and how it finds its server or tool. */

import { commands, type ExtensionContext, ProgressLocation, type QuickPickItem, window } from "vscode";
import type { Attention } from "../approvals/attention";
import type { ApprovalPanel } from "../approvals/panel";
import { showError } from "../errors";
import { pageSettled } from "../focus";
import type { AgentStatus, Approval, Call, Commands, Grant, ServerStatus, ToolInfo } from "../protocol";
import type { Results } from "../results/panel";
import type { Sidecar } from "../sidecar";
import { quoted } from "../text";
import type { ListView } from "../views/list";
import { serverRow } from "../views/serverRows";
import type { ServersView } from "../views/servers";

export type CallFilter = Commands["mcp.calls"]["params"];

export interface App {
  context: ExtensionContext;
  sidecar: Sidecar;
  approvalPanel: ApprovalPanel;
  attention: Attention;
  results: Results;
  servers: ServersView;
  approvals: ListView<Approval>;
  calls: ListView<Call>;
  /** Which calls are shown. */
  filter: CallFilter;
  agents: ListView<AgentStatus>;
  grants: ListView<Grant>;
}

/** Registers a command whose errors are shown to the user. */
export function register(app: App, name: string, run: (...args: never[]) => unknown): void {
  const safely = async (...args: unknown[]) => {
    try {
      return await (run as (...args: unknown[]) => unknown)(...args);
    } catch (error) {
      return showError(error, app.sidecar);
    }
  };
  app.context.subscriptions.push(commands.registerCommand(name, safely));
}

/** How a menu, a lens or another extension names a server. */
export type ServerArgument = { server?: string } | string | undefined;

/** The server that was named, or else one that the user picks. Never the selection of a view, see `ListView`. */
export async function serverOf(
  app: App,
  given: ServerArgument,
  question: string,
  fits: (server: ServerStatus) => boolean = () => true,
): Promise<string | undefined> {
  const named = typeof given === "string" ? given : given?.server;
  if (named) {
    return named;
  }
  await app.sidecar.start();
  const items = app.sidecar.state.servers.filter(fits).map(server => {
    const row = serverRow(server);
    return { label: `$(${row.icon}) ${server.name}`, description: row.description ?? "", value: server.name };
  });
  return pick(items, question, "There is no server to choose from.");
}

/** The value of the item that the user picks. Says so if there is none. */
export async function pick<T>(items: (QuickPickItem & { value: T })[], question: string, none: string) {
  if (items.length === 0) {
    window.showInformationMessage(none);
    return undefined;
  }
  const options = { placeHolder: question, matchOnDescription: true, matchOnDetail: true, ignoreFocusOut: true };
  await pageSettled();
  return (await window.showQuickPick(items, options))?.value;
}

/** The tool that was named, or else one that the user picks. */
export async function toolOf(app: App, given: ToolArgument, question: string): Promise<ToolInfo | undefined> {
  const named = typeof given === "object" ? given.tool : given;
  if (typeof named === "object") {
    return named;
  }
  const { tools } = await app.sidecar.command("mcp.tools", { all: named !== undefined });
  if (named !== undefined) {
    const found = tools.find(tool => tool.name === named);
    if (!found) {
      throw new Error(`no tool named ${quoted(named)}; is its server connected?`);
    }
    return found;
  }
  const items = tools.map(tool => ({
    label: `$(tools) ${tool.tool}`,
    description: `${tool.server} · ${tool.level}`,
    detail: tool.description.split("\n", 1)[0] ?? "",
    value: tool,
  }));
  return pick(items, question, "There are no tools: no server is connected yet.");
}

/** A node of the tree, the name on the wire, or nothing. */
export type ToolArgument = { tool?: ToolInfo | string; arguments?: Record<string, unknown> } | string | undefined;

/** Runs something that takes a while, with progress and a way to cancel it. */
export function busy<T>(title: string, work: Parameters<typeof window.withProgress<T>>[1]): Thenable<T> {
  return window.withProgress({ location: ProgressLocation.Notification, title, cancellable: true }, work);
}

export async function confirm(question: string, detail: string, verb: string): Promise<boolean> {
  return (await window.showWarningMessage(question, { modal: true, detail }, verb)) === verb;
}
