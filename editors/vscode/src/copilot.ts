/**
 * The workspace's servers for Copilot and other chats of VS Code, as one MCP server: `mcp-sidecar connect`. What VS Code
 * starts by itself, because it reads the same file, does not come a second time; and VS Code asks before each call that is
 * more than a look, so the sidecar does not ask again.
 */

import { commands, type Disposable, EventEmitter, lm, McpStdioServerDefinition, window, workspace } from "vscode";
import { type App, register } from "./commands/app";
import { isSharedFile } from "./files";
import type { ServerStatus } from "./protocol";

export type Share = "off" | "others" | "all";

const PROVIDER = "mcpSidecar";
/** VS Code names tools by it and cuts it at 13 characters, so it is short. */
const LABEL = "mcp-sidecar";
/** What approvals and the call log call it. */
const NAME = "VS Code";

/** How often, and how long after one another, VS Code is asked to start the endpoint. */
const TRIES = 10;
const TRY_MS = 1_500;

export interface Sharing {
  /** What VS Code gets through us. */
  offered: string[];
  /** What it has already. */
  without: string[];
}

/** Which servers VS Code should get through us. Pure. */
export function sharing(share: Share, servers: readonly ServerStatus[]): Sharing {
  const known = (server: ServerStatus) => share === "others" && isSharedFile(server.file ?? "");
  const usable = servers.filter(server => share !== "off" && server.status === "connected" && server.enabled);
  return {
    offered: usable.filter(server => !known(server)).map(server => server.name),
    without: servers.filter(known).map(server => server.name),
  };
}

/** The command line of the endpoint. It names the folder: not every VS Code starts a server where it is told to. */
export function connectArguments(folder: string, without: readonly string[]): string[] {
  const left = without.flatMap(server => ["--without", server]);
  return ["connect", "--workspace", folder, "--name", NAME, ...left];
}

export function copilot(app: App): Disposable[] {
  const { sidecar } = app;
  const changed = new EventEmitter<void>();
  const now = () => {
    const share = workspace.getConfiguration("mcpSidecar").get<Share>("copilot.servers") ?? "others";
    return sharing(share, sidecar.state.servers);
  };
  /** VS Code asks for the tools again when the version is another one. */
  const version = ({ offered, without }: Sharing) => `${offered.join()} without ${without.join()}`;
  let told = version({ offered: [], without: [] });
  const tell = () => {
    const newest = version(now());
    if (newest !== told) {
      told = newest;
      changed.fire();
    }
  };
  register(app, "mcpSidecar.copilot.start", start);
  return [
    changed,
    sidecar.state.onServers(tell),
    workspace.onDidChangeConfiguration(event => event.affectsConfiguration("mcpSidecar.copilot") && tell()),
    lm.registerMcpServerDefinitionProvider(PROVIDER, {
      onDidChangeMcpServerDefinitions: changed.event,
      provideMcpServerDefinitions: () => {
        const what = now();
        const folder = workspace.workspaceFolders?.[0];
        if (what.offered.length === 0 || !sidecar.binary || !folder) {
          return [];
        }
        const args = connectArguments(folder.uri.fsPath, what.without);
        // The sidecar believes that VS Code asks only where VS Code can show that it is VS Code.
        const env = sidecar.ticket ? { MCP_SIDECAR_TICKET: sidecar.ticket } : {};
        const definition = new McpStdioServerDefinition(LABEL, sidecar.binary.path, args, env, version(what));
        definition.cwd = folder.uri;
        return [definition];
      },
    }),
  ];
}

/** VS Code starts a server with the first message of a chat; this does it at once. */
async function start(): Promise<void> {
  const command = "workbench.mcp.startServer";
  if (!(await commands.getCommands(true)).includes(command)) {
    window.showInformationMessage("It starts with the first message of a chat.");
    return;
  }
  const there = () => lm.tools.some(tool => tool.name.startsWith(`mcp_${LABEL}_`));
  // VS Code passes over what it does not know yet, without a word, and takes its time to ask what there is.
  for (let time = 0; time < TRIES && !there(); time++) {
    await commands.executeCommand(command, `mcp-sidecar.mcp-sidecar/${LABEL}`);
    await new Promise(resolve => setTimeout(resolve, TRY_MS));
  }
}
