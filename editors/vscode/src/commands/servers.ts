/**
 * Commands for servers. The sidecar decides what can be done with a server: each command performs the action of its kind.
 */

import { commands, Position, Range, Uri, window, workspace } from "vscode";
import { showLog, showText } from "../documents";
import { offer } from "../errors";
import type {
  Action,
  ActionKind,
  Commands,
  EditedFiles,
  Remedy,
  SentResource,
  ServerList,
  TestReport,
} from "../protocol";
import { plural, quoted, sentence } from "../text";
import { type App, busy, confirm, register, type ServerArgument, serverOf } from "./app";
import { reloadText, unsaved, written } from "./files";
import { signIn } from "./signIn";

/** The command for each kind of action, and what it does. */
const KINDS: Record<ActionKind, [command: string, verb: string]> = {
  trust: ["trust", "trust"],
  "sign-in": ["signIn", "sign in to"],
  start: ["start", "start"],
  stop: ["stop", "stop"],
  restart: ["restart", "restart"],
  refresh: ["refresh", "refresh"],
  enable: ["enable", "enable"],
  "show-tools": ["show", "show the tools of"],
  test: ["test", "test"],
  "show-log": ["logs", "show the log of"],
  "hide-tools": ["hide", "hide the tools of"],
  "sign-out": ["signOut", "sign out of"],
  "revoke-trust": ["distrust", "revoke trust in"],
  disable: ["disable", "disable"],
  move: ["move", "move"],
  remove: ["remove", "remove"],
};

export function serverCommands(app: App): void {
  const { sidecar } = app;
  register(app, "mcpSidecar.perform", (action: Performed) => perform(app, action));
  for (const [kind, [name, verb]] of Object.entries(KINDS)) {
    register(app, `mcpSidecar.server.${name}`, async (given: ServerArgument) => {
      const actions = (one: { actions: Action[] } | undefined) =>
        one?.actions.filter(action => action.kind === kind) ?? [];
      const server = await serverOf(app, given, `${sentence(verb)} which server?`, one => actions(one).length > 0);
      if (server) {
        const offered = actions(sidecar.state.server(server));
        const chosen = offered.length > 1 ? await pickAction(offered) : offered[0];
        if (chosen) {
          await perform(app, chosen);
        } else if (offered.length === 0) {
          refuse(verb, server);
        }
      }
    });
  }
  for (const verb of ["start", "stop", "restart"] as const) {
    register(app, `mcpSidecar.servers.${verb}All`, () => sidecar.command(`mcp.server.${verb}`, { all: true }));
  }

  register(app, "mcpSidecar.server.reveal", async (given: ServerArgument) => {
    const server = typeof given === "string" ? given : given?.server;
    await commands.executeCommand("mcpSidecar.servers.focus");
    if (server) {
      await app.servers.reveal(server);
    }
  });

  register(app, "mcpSidecar.server.inspect", async (given: ServerArgument) => {
    const server = await serverOf(app, given, "Inspect which server?");
    if (server) {
      const { servers } = await sidecar.command("mcp.servers", { server });
      await showText(`${server}.json`, JSON.stringify(servers[0], undefined, 2), "json");
    }
  });

  register(app, "mcpSidecar.server.open", async (given: ServerArgument) => {
    const name = await serverOf(app, given, "Open the definition of which server?", one => one.file !== undefined);
    const server = name ? sidecar.state.server(name) : undefined;
    if (server?.file) {
      const at = new Position(server.line ?? 0, 0);
      await window.showTextDocument(Uri.file(server.file), { selection: new Range(at, at) });
    }
  });
}

function refuse(verb: string, server: string): void {
  window.showInformationMessage(`Cannot ${verb} ${quoted(server)} now.`);
}

async function pickAction(actions: readonly Action[]): Promise<Action | undefined> {
  const items = actions.map(action => ({ label: action.title, action }));
  return (await window.showQuickPick(items))?.action;
}

/** An action of a server, a remedy, or the command of a lens. */
type Performed = Partial<Pick<Action, "title" | "destructive">> & Pick<Remedy, "command" | "arguments">;

/** Commands whose answer has a window in VS Code. */
const WINDOWS: { [N in keyof Commands]?: (app: App, params: Commands[N]["params"]) => unknown } = {
  "mcp.server.logs": (_, { server }) => showLog(server),
  "mcp.server.test": (app, { server }) => server && test(app, server),
  "mcp.server.trust": (app, params) =>
    params.trusted === false ? app.sidecar.command("mcp.server.trust", params) : review(app, params.server),
  "mcp.server.auth": (app, params) =>
    params.signOut ? app.sidecar.command("mcp.server.auth", params) : signIn(app, params),
  "mcp.servers": (_, params) => commands.executeCommand("mcpSidecar.server.reveal", params),
  "mcp.tools": (_, params) => commands.executeCommand("mcpSidecar.server.reveal", params),
  "mcp.tool.open": (_, { tool }) => commands.executeCommand("mcpSidecar.tool.call", { tool }),
  "mcp.approval.show": (app, { id }) => app.approvalPanel.open(id),
  "mcp.grants": () => commands.executeCommand("mcpSidecar.grants.focus"),
  // The lens that says what saving will do.
  "mcp.config": () => commands.executeCommand("workbench.action.files.save"),
  "mcp.template.insert": () => commands.executeCommand("mcpSidecar.server.add"),
  "mcp.server.move": async (app, params) => {
    const answer = await app.sidecar.command("mcp.server.move", params);
    void written(answer.server.file, `${quoted(answer.server.name)} is now in`, answer);
    return answer;
  },
  "mcp.config.reload": async app => {
    const reload = await app.sidecar.command("mcp.config.reload", {});
    window.setStatusBarMessage(`$(check) ${reloadText(reload)}`, 5_000);
  },
};

/** Sends a command that the sidecar offered, as it is. */
async function perform(app: App, { command, arguments: params, title, destructive }: Performed): Promise<unknown> {
  const question = `${quoted(String(params.server))}: ${title}?`;
  if (destructive && title && !(await confirm(question, "You cannot undo this.", title))) {
    return undefined;
  }
  const show = WINDOWS[command as keyof Commands] as ((app: App, params: object) => unknown) | undefined;
  if (show) {
    return show(app, params);
  }
  const answer = await app.sidecar.command(command as keyof Commands, params as never);
  unsaved(answer as EditedFiles);
  for (const { name, summary, actions } of (answer as Partial<ServerList>).servers ?? []) {
    if (summary.tone === "bad") {
      const log = actions.find(action => action.kind === "show-log");
      void offer(window.showErrorMessage, `${quoted(name)}: ${summary.text}`, log);
    }
  }
  return answer;
}

/** Shows what would be trusted. */
async function review(app: App, server: string): Promise<void> {
  const status = app.sidecar.state.server(server);
  if (!status?.actions.some(action => action.kind === "trust")) {
    refuse("trust", server);
  } else if (workspace.isTrusted) {
    await app.approvalPanel.openTrust(server);
  } else {
    await explainRestricted(server);
  }
}

/** In Restricted Mode the sidecar starts nothing that the workspace defines, even if the server itself is trusted. */
async function explainRestricted(server: string): Promise<void> {
  const manage = "Manage Workspace Trust";
  const detail =
    `VS Code does not trust this workspace, so no server that it defines can start. Trust the workspace first. ` +
    `You are then asked about ${quoted(server)}, with its exact definition.`;
  const chosen = await window.showWarningMessage(
    "This workspace is in Restricted Mode",
    { modal: true, detail },
    manage,
  );
  if (chosen === manage) {
    await commands.executeCommand("workbench.trust.manage");
  }
}

async function test(app: App, server: string): Promise<void> {
  const report = await busy(`Testing ${quoted(server)}`, (_, token) =>
    app.sidecar.command("mcp.server.test", { server }, token),
  );
  const more = "Show All";
  const show = report.success ? window.showInformationMessage : window.showErrorMessage;
  const took = report.success ? ` (${Math.round(report.latencyMs)} ms)` : "";
  const chosen = await show(`${quoted(server)}: ${report.message}${took}`, report.success ? more : "Show Log");
  if (chosen === more) {
    await showText(`${server}: test.md`, reportText(server, report), "markdown");
  } else if (chosen) {
    await showLog(server);
  }
}

export function reportText(server: string, report: TestReport): string {
  const list = (title: string, items: Partial<SentResource>[]) => {
    const lines = items.map(item => `- \`${item.name ?? item.uri}\` ${(item.description ?? "").replace(/\s+/g, " ")}`);
    return items.length > 0 ? `\n## ${title}\n\n${lines.join("\n")}\n` : "";
  };
  const counted = plural(report.tools.length, "tool");
  return `# ${server}\n\n${sentence(report.message)} (${counted})\n${list("Tools", report.tools)}${list("Resources", report.resources)}${list("Prompts", report.prompts)}`;
}
