/**
 * The servers of the workspace for Copilot and other chats in VS Code, as one MCP server: `mcp-sidecar connect`. Servers
 * that VS Code starts itself, because it reads the same file, are left out. VS Code asks before each call that is not
 * read-only, so the sidecar does not ask again.
 */

import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { commands, type Disposable, EventEmitter, lm, McpStdioServerDefinition, window, workspace } from "vscode";
import { type App, register } from "./commands/app";
import { isSharedFile } from "./files";
import type { ServerStatus } from "./protocol";
import { setting } from "./settings";

export type Share = "off" | "others" | "all";

const PROVIDER = "mcpSidecar";
/** Part of the names of tools; VS Code truncates it to 13 characters. */
const LABEL = "mcp-sidecar";
/** The name in approvals and in the call log. */
const NAME = "VS Code";

/** How often, and at which interval, VS Code is asked to start the endpoint. */
const TRIES = 10;
const TRY_MS = 1_500;

export interface Sharing {
  /** Servers that VS Code gets through the sidecar. */
  offered: string[];
  /** Servers that it has already. */
  without: string[];
}

/** Which servers VS Code should get through the sidecar. Pure. */
export function sharing(share: Share, servers: readonly ServerStatus[]): Sharing {
  const known = (server: ServerStatus) => share === "others" && isSharedFile(server.file ?? "");
  const usable = servers.filter(server => share !== "off" && server.summary.tone === "good");
  return {
    offered: usable.filter(server => !known(server)).map(server => server.name),
    without: servers.filter(known).map(server => server.name),
  };
}

/** The arguments of the endpoint. They name the folder, because not every version of VS Code applies `cwd`. */
export function connectArguments(folder: string, without: readonly string[]): string[] {
  const left = without.flatMap(server => ["--without", server]);
  return ["connect", "--workspace", folder, "--name", NAME, ...left];
}

export function copilot(app: App): Disposable[] {
  const { sidecar } = app;
  const changed = new EventEmitter<void>();
  const now = () => {
    return sharing(setting<Share>("copilot.servers") ?? "others", sidecar.state.servers);
  };
  /** VS Code lists the tools again when the version changes. */
  const version = ({ offered, without }: Sharing) => `${offered.join()} without ${without.join()}`;
  let announced = version({ offered: [], without: [] });
  const announce = () => {
    const newest = version(now());
    if (newest !== announced) {
      announced = newest;
      changed.fire();
    }
  };
  register(app, "mcpSidecar.copilot.start", start);
  return [
    changed,
    sidecar.state.onServers(announce),
    workspace.onDidChangeConfiguration(event => event.affectsConfiguration("mcpSidecar.copilot") && announce()),
    lm.registerMcpServerDefinitionProvider(PROVIDER, {
      onDidChangeMcpServerDefinitions: changed.event,
      provideMcpServerDefinitions: () => {
        const what = now();
        const folder = workspace.workspaceFolders?.[0];
        if (what.offered.length === 0 || !sidecar.binary || !folder) {
          return [];
        }
        const args = connectArguments(folder.uri.fsPath, what.without);
        const definition = new McpStdioServerDefinition(LABEL, sidecar.binary.path, args, {}, version(what));
        definition.cwd = folder.uri;
        return [definition];
      },
      // Called before each start.
      resolveMcpServerDefinition: async definition => {
        if (sidecar.ticket && definition instanceof McpStdioServerDefinition) {
          definition.env = { MCP_SIDECAR_TICKET_FILE: await writeTicket(app, sidecar.ticket) };
        }
        return definition;
      },
    }),
  ];
}

/**
 * Writes the ticket, which proves to the sidecar that VS Code asks about the calls of this agent, to a file that only the
 * user can read. The sidecar removes it. Every process of the user can read the variables of a process.
 */
async function writeTicket(app: App, ticket: string): Promise<string> {
  const folder = app.context.globalStorageUri.fsPath;
  const file = join(folder, `ticket-${process.pid}`);
  await mkdir(folder, { recursive: true });
  await rm(file, { force: true });
  await writeFile(file, ticket, { mode: 0o600, flag: "wx" });
  return file;
}

/** VS Code starts a server with the first message of a chat; this starts it now. */
async function start(): Promise<void> {
  const command = "workbench.mcp.startServer";
  if (!(await commands.getCommands(true)).includes(command)) {
    window.showInformationMessage("The endpoint starts with the first chat message.");
    return;
  }
  const there = () => lm.tools.some(tool => tool.name.startsWith(`mcp_${LABEL}_`));
  // VS Code silently ignores a server that it has not discovered yet, so try again.
  for (let time = 0; time < TRIES && !there(); time++) {
    await commands.executeCommand(command, `mcp-sidecar.mcp-sidecar/${LABEL}`);
    await new Promise(resolve => setTimeout(resolve, TRY_MS));
  }
}
