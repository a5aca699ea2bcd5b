/** Where the extension begins: puts the parts together. Each part says in its first line what it is for. */

import { commands, type ExtensionContext, window, workspace } from "vscode";
import { isConfigFile } from "./files";
import { registerHosted } from "./hosted";
import { registerSampling } from "./sampling";
import { complain } from "./say";
import { Sidecar } from "./sidecar";
import { statusBar } from "./status";
import { ServersView } from "./views/servers";

export async function activate(context: ExtensionContext): Promise<Api> {
  const began = performance.now();
  const log = window.createOutputChannel("MCP Sidecar", { log: true });
  const sidecar = new Sidecar(context.extensionPath, String(context.extension.packageJSON.version), log);
  registerHosted(context, sidecar);
  registerSampling(sidecar);
  const servers = new ServersView(sidecar);
  context.subscriptions.push(log, sidecar, servers, ...statusBar(sidecar));
  const command = (name: string, run: (...args: never[]) => unknown) =>
    context.subscriptions.push(commands.registerCommand(name, run as (...args: unknown[]) => unknown));
  command("mcpSidecar.restart", () => sidecar.restart().catch(error => complain(error, sidecar)));
  command("mcpSidecar.stop", () => sidecar.stop());
  command("mcpSidecar.showLogs", () => log.show());
  context.subscriptions.push(
    workspace.onDidGrantWorkspaceTrust(() => sidecar.notify("mcp/workspaceTrust", { trusted: true })),
    workspace.onDidChangeConfiguration(event => {
      if (event.affectsConfiguration("mcpSidecar.server.path")) {
        sidecar.restart().catch(error => complain(error, sidecar));
      } else if (event.affectsConfiguration("mcpSidecar")) {
        void sidecar.sendSettings();
      }
    }),
    workspace.onDidOpenTextDocument(document => {
      if (isConfigFile(document.uri.path) && sidecar.life === "off") {
        sidecar.start().catch(error => complain(error, sidecar));
      }
    }),
  );
  // Not awaited: VS Code would count the sidecar's start as ours.
  const ready = sidecar.start().catch(error => complain(error, sidecar));
  const activationMs = performance.now() - began;
  log.info(`activated in ${activationMs.toFixed(1)} ms`);
  return { sidecar, servers, ready, activationMs };
}

/** For tests, and for extensions that want to call a tool. */
export interface Api {
  sidecar: Sidecar;
  servers: ServersView;
  ready: Promise<unknown>;
  activationMs: number;
}
