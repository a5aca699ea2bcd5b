/** Where the extension begins: puts the parts together. Each part says in its first line what it is for. */

import { commands, type ExtensionContext, window, workspace } from "vscode";
import { Desk } from "./approvals/desk";
import { approvalRow } from "./approvals/words";
import { fileCommands } from "./commands/files";
import type { CallFilter, Kit } from "./commands/kit";
import { policyCommands } from "./commands/policy";
import { questionCommands } from "./commands/questions";
import { serverCommands } from "./commands/servers";
import { toolCommands } from "./commands/tools";
import { copilot } from "./copilot";
import { dashboard } from "./dashboard/panel";
import { registerDocuments } from "./documents";
import { hasConfig, isConfigFile } from "./files";
import { registerHosted } from "./hosted";
import type { Call, Grant } from "./protocol";
import { registerResources } from "./resources";
import { Results } from "./results/panel";
import { registerSampling } from "./sampling";
import { complain } from "./say";
import { Sidecar } from "./sidecar";
import { statusBar } from "./status";
import { callRow, grantRow } from "./views/callRows";
import { ListView } from "./views/list";
import { ServersView } from "./views/servers";

/** So many calls of the log are shown. */
const CALLS = 200;
/** Calls come in bursts; their list is drawn this often. */
const DRAW_MS = 250;

/** For tests, and for extensions that want to call a tool. */
export interface Api {
  sidecar: Sidecar;
  servers: ServersView;
  kit: Kit;
  /** Settles when the first start has, well or not. */
  ready: Promise<unknown>;
  activationMs: number;
}

export function activate(context: ExtensionContext): Api {
  try {
    return start(context);
  } catch (error) {
    // VS Code itself says nothing when an extension does not come up.
    window.showErrorMessage(`MCP Sidecar could not be activated: ${error instanceof Error ? error.message : error}`);
    throw error;
  }
}

/** VS Code waits a moment for this, so that the sidecar can say goodbye. */
export function deactivate(): Promise<void> | undefined {
  return running?.stop();
}

let running: Sidecar | undefined;

function start(context: ExtensionContext): Api {
  const began = performance.now();
  const log = window.createOutputChannel("MCP Sidecar", { log: true });
  const sidecar = new Sidecar(context.extensionPath, String(context.extension.packageJSON.version), log);
  running = sidecar;
  registerHosted(context, sidecar);
  registerSampling(sidecar);
  const kit = makeKit(context, sidecar);
  context.subscriptions.push(log, sidecar, kit.desk, kit.results, kit.servers, kit.approvals, kit.calls, kit.grants);
  context.subscriptions.push(...statusBar(sidecar), ...registerDocuments(sidecar), ...registerResources(sidecar));
  for (const add of [serverCommands, fileCommands, toolCommands, policyCommands, questionCommands]) {
    add(kit);
  }
  context.subscriptions.push(...dashboard(kit), ...copilot(kit), ...ownCommands(sidecar), ...following(sidecar, kit));
  // Not awaited: how long the sidecar takes to start is not how long we take to activate.
  const ready = startIfWanted(sidecar).catch(error => complain(error, sidecar));
  const activationMs = performance.now() - began;
  log.info(`activated in ${activationMs.toFixed(1)} ms`);
  return { sidecar, servers: kit.servers, kit, ready, activationMs };
}

/** A folder without servers costs nothing but this look. */
async function startIfWanted(sidecar: Sidecar): Promise<void> {
  const folders = (workspace.workspaceFolders ?? []).map(folder => folder.uri.fsPath);
  if (await hasConfig(folders, process.env)) {
    await sidecar.start();
  }
}

function makeKit(context: ExtensionContext, sidecar: Sidecar): Kit {
  const list =
    <T>(command: string, params: object, key: string) =>
    async () =>
      sidecar.life === "running" ? ((await sidecar.command<Record<string, T[]>>(command, params))[key] ?? []) : [];
  const many = { canSelectMany: true };
  const filter: CallFilter = {};
  const calls = () => list<Call>("mcp.calls", { limit: CALLS, ...filter }, "calls")();
  return {
    context,
    sidecar,
    desk: new Desk(sidecar, context.extensionUri),
    results: new Results(context.extensionUri),
    servers: new ServersView(sidecar),
    approvals: new ListView("mcpSidecar.approvals", () => sidecar.picture.approvals, approvalRow, many),
    calls: new ListView("mcpSidecar.calls", calls, callRow),
    filter,
    grants: new ListView("mcpSidecar.grants", list<Grant>("mcp.grants", {}, "grants"), grantRow, many),
  };
}

function ownCommands(sidecar: Sidecar) {
  const again = () => sidecar.restart().catch(error => complain(error, sidecar));
  return [
    commands.registerCommand("mcpSidecar.restart", again),
    commands.registerCommand("mcpSidecar.stop", () => sidecar.stop()),
    commands.registerCommand("mcpSidecar.showLogs", () => sidecar.log.show()),
  ];
}

/** Keeps views and sidecar in step with what happens. */
function following(sidecar: Sidecar, { approvals, calls, grants }: Kit) {
  const lists = () => {
    calls.refresh();
    grants.refresh();
  };
  const begin = (path: string) => {
    if (isConfigFile(path) && sidecar.life === "off") {
      sidecar.start().catch(error => complain(error, sidecar));
    }
  };
  const first = workspace.createFileSystemWatcher("**/{mcp,.mcp,mcp.local}.json", false, true, true);
  return [
    first,
    first.onDidCreate(uri => begin(uri.path)),
    workspace.onDidOpenTextDocument(document => begin(document.uri.path)),
    sidecar.onLife(life => {
      void commands.executeCommand("setContext", "mcpSidecar.life", life);
      lists();
    }),
    sidecar.picture.onApprovals(() => {
      const { length } = sidecar.picture.approvals;
      approvals.refresh();
      void commands.executeCommand("setContext", "mcpSidecar.waiting", length);
      approvals.view.badge = length > 0 ? { value: length, tooltip: `${length} waiting for your answer` } : undefined;
      grants.refresh(DRAW_MS);
    }),
    sidecar.picture.onCall(() => calls.refresh(DRAW_MS)),
    workspace.onDidGrantWorkspaceTrust(() => sidecar.notify("mcp/workspaceTrust", { trusted: true })),
    workspace.onDidChangeConfiguration(event => {
      if (["server.path", "sampling", "editorServer"].some(name => event.affectsConfiguration(`mcpSidecar.${name}`))) {
        sidecar.restart().catch(error => complain(error, sidecar));
      } else if (event.affectsConfiguration("mcpSidecar")) {
        void sidecar.sendSettings();
      }
    }),
  ];
}
