/**
 * The workspace's servers for Copilot and other chats of VS Code, as one MCP server: `mcp-sidecar connect`. What VS Code
 * starts by itself, because it reads the same file, does not come a second time.
 */

import { commands, type Disposable, EventEmitter, lm, McpStdioServerDefinition, window, workspace } from "vscode";
import { type Kit, register } from "./commands/kit";
import { isSharedFile } from "./files";
import type { ServerStatus } from "./protocol";

export type Share = "off" | "others" | "all";

const PROVIDER = "mcpSidecar";
/** VS Code names tools by it and cuts it at 13 characters, so it is short. */
const LABEL = "mcp-sidecar";

/** The servers that VS Code should get through us. Pure. */
export function shared(share: Share, servers: readonly ServerStatus[]): string[] {
  const wanted = (server: ServerStatus) => share === "all" || (share === "others" && !isSharedFile(server.file ?? ""));
  return servers
    .filter(server => server.status === "connected" && server.enabled && wanted(server))
    .map(one => one.name);
}

export function copilot(kit: Kit): Disposable[] {
  const { sidecar } = kit;
  const changed = new EventEmitter<void>();
  let told = "";
  const offered = () => {
    const share = workspace.getConfiguration("mcpSidecar").get<Share>("copilot.servers") ?? "others";
    return shared(share, sidecar.picture.servers);
  };
  const tell = () => {
    const now = offered().join();
    if (now !== told) {
      told = now;
      changed.fire();
    }
  };
  register(kit, "mcpSidecar.copilot.start", start);
  return [
    changed,
    sidecar.picture.onServers(tell),
    workspace.onDidChangeConfiguration(event => event.affectsConfiguration("mcpSidecar.copilot") && tell()),
    lm.registerMcpServerDefinitionProvider(PROVIDER, {
      onDidChangeMcpServerDefinitions: changed.event,
      provideMcpServerDefinitions: () => {
        const names = offered();
        const folder = workspace.workspaceFolders?.[0];
        if (names.length === 0 || !sidecar.binary || !folder) {
          return [];
        }
        const args = ["connect", "--name", "VS Code"];
        const definition = new McpStdioServerDefinition(LABEL, sidecar.binary.path, args, {}, names.join());
        definition.cwd = folder.uri;
        return [definition];
      },
    }),
  ];
}

/** VS Code starts a server with the first message of a chat; this does it at once. */
async function start(): Promise<void> {
  const command = "workbench.mcp.startServer";
  if ((await commands.getCommands(true)).includes(command)) {
    await commands.executeCommand(command, `mcp-sidecar.mcp-sidecar/${LABEL}`);
  } else {
    window.showInformationMessage("It starts with the first message of a chat.");
  }
}
