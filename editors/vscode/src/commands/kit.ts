/** What all commands share: how they are registered, and how they find out which server, tool or call is meant. */

import { commands, type ExtensionContext, ProgressLocation, window } from "vscode";
import type { Desk } from "../approvals/desk";
import type { Approval, Call, Grant, ServerStatus, ToolInfo } from "../protocol";
import type { Results } from "../results/panel";
import { complain } from "../say";
import type { Sidecar } from "../sidecar";
import type { ListView } from "../views/list";
import { serverRow } from "../views/serverRows";
import type { ServersView } from "../views/servers";

/** As `mcp.calls` takes it. */
export interface CallFilter {
  server?: string;
  failed?: boolean;
  since?: string;
}

export interface Kit {
  context: ExtensionContext;
  sidecar: Sidecar;
  desk: Desk;
  results: Results;
  servers: ServersView;
  approvals: ListView<Approval>;
  calls: ListView<Call>;
  /** Which calls are shown. */
  filter: CallFilter;
  grants: ListView<Grant>;
}

/** Registers a command that tells its failures to the user. */
export function register(kit: Kit, name: string, run: (...args: never[]) => unknown): void {
  const safely = async (...args: unknown[]) => {
    try {
      return await (run as (...args: unknown[]) => unknown)(...args);
    } catch (error) {
      return complain(error, kit.sidecar);
    }
  };
  kit.context.subscriptions.push(commands.registerCommand(name, safely));
}

/** What a menu, a lens or another extension may name a server by. */
export type ServerArgument = { server?: string; selected?: boolean } | string | undefined;

/** The server that is meant: named, selected in the view when a key was pressed, or picked from a list. */
export async function serverOf(
  kit: Kit,
  given: ServerArgument,
  question: string,
  fits: (server: ServerStatus) => boolean = () => true,
): Promise<string | undefined> {
  const selected = typeof given === "object" && given.selected ? kit.servers.selection?.server : undefined;
  const named = typeof given === "string" ? given : (given?.server ?? selected);
  if (named) {
    return named;
  }
  await kit.sidecar.start();
  const servers = kit.sidecar.picture.servers.filter(fits);
  if (servers.length === 0) {
    window.showInformationMessage("There is no such server.");
    return undefined;
  }
  const items = servers.map(server => {
    const row = serverRow(server);
    return { label: `$(${row.icon}) ${server.name}`, description: row.description ?? "", name: server.name };
  });
  return (await window.showQuickPick(items, { placeHolder: question, matchOnDescription: true }))?.name;
}

/** The tool that is meant, named or picked. */
export async function toolOf(kit: Kit, given: ToolArgument, question: string): Promise<ToolInfo | undefined> {
  if (typeof given === "object" && typeof given.tool === "object") {
    return given.tool;
  }
  const node = typeof given === "object" && given.selected ? kit.servers.selection : undefined;
  if (node?.kind === "tool") {
    return node.tool;
  }
  const name = typeof given === "string" ? given : given?.tool;
  const { tools } = await kit.sidecar.command<{ tools: ToolInfo[] }>("mcp.tools", { all: name !== undefined });
  if (name !== undefined) {
    const found = tools.find(tool => tool.name === name);
    if (!found) {
      throw new Error(`no tool named ${name}; is its server connected?`);
    }
    return found;
  }
  if (tools.length === 0) {
    window.showInformationMessage("There are no tools: no server is connected yet.");
    return undefined;
  }
  const items = tools.map(tool => ({
    label: `$(tools) ${tool.tool}`,
    description: `${tool.server} · ${tool.level}`,
    detail: tool.description.split("\n", 1)[0] ?? "",
    tool,
  }));
  const options = { placeHolder: question, matchOnDescription: true, matchOnDetail: true };
  return (await window.showQuickPick(items, options))?.tool;
}

/** A node of the tree, the name on the wire, or nothing. */
export type ToolArgument =
  | { tool?: ToolInfo | string; arguments?: Record<string, unknown>; selected?: boolean }
  | string
  | undefined;

/** Runs something that takes a while, with a way to take it back. */
export function busy<T>(title: string, work: Parameters<typeof window.withProgress<T>>[1]): Thenable<T> {
  return window.withProgress({ location: ProgressLocation.Notification, title, cancellable: true }, work);
}

export async function confirm(question: string, detail: string, verb: string): Promise<boolean> {
  return (await window.showWarningMessage(question, { modal: true, detail }, verb)) === verb;
}
