/** The entry point: puts the parts together. The first line of each part says what it is for. */

import { ConfigurationTarget, commands, type ExtensionContext, window, workspace } from "vscode";
import { registerActions } from "./actions";
import { Attention } from "./approvals/attention";
import { approvalRow } from "./approvals/labels";
import { ApprovalPanel } from "./approvals/panel";
import { agentCommands, greet } from "./commands/agents";
import type { App, CallFilter } from "./commands/app";
import { fileCommands } from "./commands/files";
import { policyCommands } from "./commands/policy";
import { questionCommands } from "./commands/questions";
import { serverCommands } from "./commands/servers";
import { signInCommands } from "./commands/signIn";
import { toolCommands } from "./commands/tools";
import { copilot } from "./copilot";
import { dashboard } from "./dashboard/panel";
import { registerDocuments } from "./documents";
import { showError } from "./errors";
import { hasConfig, isConfigFile } from "./files";
import { registerFormDocuments } from "./form/document";
import { registerHosted } from "./hosted";
import { registerResources } from "./resources";
import { Results } from "./results/panel";
import { registerSampling } from "./sampling";
import { setting } from "./settings";
import { Sidecar } from "./sidecar";
import { statusBar } from "./status";
import { plural } from "./text";
import { registerUnsaved } from "./unsaved";
import { agentRow } from "./views/agentRows";
import { callRow, grantRow } from "./views/callRows";
import { ListView } from "./views/list";
import { ServersView } from "./views/servers";

/** How many calls of the log are shown. */
const CALLS = 200;
/** Calls come in bursts; their list is redrawn at most this often. */
const DRAW_MS = 250;

/** For tests, and for extensions that call tools. */
export interface Api {
  sidecar: Sidecar;
  servers: ServersView;
  app: App;
  /** Settles after the first start, whether it succeeded or not. */
  ready: Promise<unknown>;
  activationMs: number;
}

export function activate(context: ExtensionContext): Api {
  try {
    return start(context);
  } catch (error) {
    // VS Code itself shows nothing when an extension fails to activate.
    window.showErrorMessage(`MCP Sidecar could not be activated: ${error instanceof Error ? error.message : error}`);
    throw error;
  }
}

/** VS Code waits a moment for this, so that the sidecar can shut down. */
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
  registerUnsaved(sidecar);
  const app = makeApp(context, sidecar);
  context.subscriptions.push(
    log,
    sidecar,
    app.approvalPanel,
    app.attention,
    app.results,
    app.servers,
    app.approvals,
    app.calls,
    app.grants,
  );
  context.subscriptions.push(
    ...statusBar(sidecar),
    ...registerDocuments(sidecar),
    registerFormDocuments(),
    ...registerResources(sidecar),
  );
  for (const add of [
    serverCommands,
    signInCommands,
    fileCommands,
    toolCommands,
    policyCommands,
    questionCommands,
    agentCommands,
  ]) {
    add(app);
  }
  context.subscriptions.push(
    ...registerActions(app),
    ...dashboard(app),
    ...copilot(app),
    ...ownCommands(sidecar),
    ...following(sidecar, app),
  );
  // Not awaited: activation does not wait for the sidecar.
  const ready = startIfConfigured(sidecar).catch(error => showError(error, sidecar));
  const activationMs = performance.now() - began;
  log.info(`activated in ${activationMs.toFixed(1)} ms`);
  return { sidecar, servers: app.servers, app, ready, activationMs };
}

function folderPaths(): string[] {
  return (workspace.workspaceFolders ?? []).map(folder => folder.uri.fsPath);
}

/** A folder without config files costs no more than this check. */
async function startIfConfigured(sidecar: Sidecar): Promise<void> {
  if (hasConfig(folderPaths(), process.env)) {
    await sidecar.start();
  }
}

function makeApp(context: ExtensionContext, sidecar: Sidecar): App {
  const isRunning = () => sidecar.runStatus === "running";
  const filter: CallFilter = {};
  const calls = async () =>
    isRunning() ? (await sidecar.command("mcp.calls", { limit: CALLS, ...filter })).calls : [];
  const approvalPanel = new ApprovalPanel(sidecar, context.extensionUri);
  const agents = async () => (isRunning() ? (await sidecar.command("mcp.agents", {})).agents : []);
  const grants = async () => (isRunning() ? (await sidecar.command("mcp.grants", {})).grants : []);
  return {
    context,
    sidecar,
    approvalPanel,
    attention: new Attention(sidecar, approvalPanel),
    results: new Results(context.extensionUri),
    servers: new ServersView(sidecar),
    approvals: new ListView("mcpSidecar.approvals", () => sidecar.state.approvals, approvalRow),
    calls: new ListView("mcpSidecar.calls", calls, callRow),
    filter,
    agents: new ListView("mcpSidecar.agents", agents, agent => agentRow(agent, folderPaths())),
    grants: new ListView("mcpSidecar.grants", grants, grantRow),
  };
}

function ownCommands(sidecar: Sidecar) {
  const again = () => sidecar.restart().catch(error => showError(error, sidecar));
  return [
    commands.registerCommand("mcpSidecar.restart", again),
    commands.registerCommand("mcpSidecar.stop", () => sidecar.stop()),
    commands.registerCommand("mcpSidecar.showLogs", () => sidecar.log.show()),
    commands.registerCommand("mcpSidecar.program.choose", chooseProgram),
    commands.registerCommand("mcpSidecar.walkthrough", () =>
      commands.executeCommand("workbench.action.openWalkthrough", "mcp-sidecar.mcp-sidecar#start", false),
    ),
  ];
}

/** The new setting starts the sidecar again. */
async function chooseProgram(): Promise<void> {
  const [chosen] =
    (await window.showOpenDialog({ title: "Choose the program mcp-sidecar", openLabel: "Choose" })) ?? [];
  if (chosen) {
    await workspace.getConfiguration("mcpSidecar").update("server.path", chosen.fsPath, ConfigurationTarget.Global);
  }
}

/** Keeps the views and the sidecar up to date. */
function following(sidecar: Sidecar, app: App) {
  const { agents, approvals, calls, grants } = app;
  const lists = () => {
    calls.refresh();
    agents.refresh();
    grants.refresh();
  };
  const begin = (path: string) => {
    if (isConfigFile(path) && sidecar.runStatus === "off") {
      sidecar.start().catch(error => showError(error, sidecar));
    }
  };
  // An event also reports settings of a workspace that do not apply.
  const startSettings = () =>
    JSON.stringify(
      ["server.path", "sampling", "editorServer", "files.project", "files.local"].map(name => setting(name)),
    );
  let started = startSettings();
  const first = workspace.createFileSystemWatcher("**/{mcp,.mcp,mcp.local}.json", false, true, true);
  return [
    first,
    first.onDidCreate(uri => begin(uri.path)),
    // VS Code opens its own files, such as `mcp.json` of its profile.
    workspace.onDidOpenTextDocument(({ uri }) => uri.scheme === "file" && begin(uri.path)),
    sidecar.onRunStatus(runStatus => {
      void commands.executeCommand("setContext", "mcpSidecar.runStatus", runStatus);
      void commands.executeCommand("setContext", "mcpSidecar.noProgram", runStatus === "failed" && sidecar.noProgram);
      lists();
      if (runStatus === "running") {
        greet(app).catch(error => sidecar.log.warn(`cannot get what agents did: ${error}`));
      }
    }),
    sidecar.state.onServers(() => {
      const hasTools = sidecar.state.servers.some(({ toolCount }) => toolCount > 0);
      void commands.executeCommand("setContext", "mcpSidecar.hasTools", hasTools);
    }),
    sidecar.state.onApprovals(() => {
      const { length } = sidecar.state.approvals;
      approvals.refresh();
      void commands.executeCommand("setContext", "mcpSidecar.waiting", length);
      approvals.view.badge =
        length > 0 ? { value: length, tooltip: `${plural(length, "question")} waiting for your answer` } : undefined;
      grants.refresh(DRAW_MS);
      agents.refresh(DRAW_MS);
    }),
    sidecar.state.onCall(() => {
      calls.refresh(DRAW_MS);
      agents.refresh(DRAW_MS);
    }),
    sidecar.state.onAgents(() => agents.refresh(DRAW_MS)),
    workspace.onDidGrantWorkspaceTrust(async () => {
      await sidecar.notify("mcp/workspaceTrust", { trusted: true });
      await sidecar.sendSettings();
    }),
    workspace.onDidChangeConfiguration(event => {
      const startedWith = startSettings();
      if (startedWith !== started) {
        started = startedWith;
        sidecar.restart().catch(error => showError(error, sidecar));
      } else if (event.affectsConfiguration("mcpSidecar")) {
        void sidecar.sendSettings();
      }
    }),
  ];
}
