/** Commands for servers: start and stop, trust, sign in, logs, and the entry in the config file. */

import { commands, Position, Range, Uri, window, workspace } from "vscode";
import { showLog, showText } from "../documents";
import type { Commands, FileScope, ResourceInfo, ServerStatus, TestReport } from "../protocol";
import { plural, quoted, sentence } from "../text";
import { type App, busy, register, type ServerArgument, serverOf } from "./app";

export function serverCommands(app: App): void {
  const { sidecar } = app;
  runCommands(app);

  const set = <N extends keyof Commands>(
    name: string,
    question: string,
    command: N,
    params: Omit<Commands[N]["params"], "server">,
  ) =>
    register(app, `mcpSidecar.server.${name}`, async (given: ServerArgument) => {
      const server = await serverOf(app, given, question);
      if (server) {
        await sidecar.command(command, { server, ...params } as Commands[N]["params"]);
      }
    });
  set("show", "Show the tools of which server?", "mcp.server.toggle", { enabled: true });
  set("hide", "Hide the tools of which server?", "mcp.server.toggle", { enabled: false });
  set("enable", "Enable which server in its file?", "mcp.server.enable", { enabled: true });
  set("disable", "Disable which server in its file?", "mcp.server.enable", { enabled: false });
  set("distrust", "Withdraw trust in which server?", "mcp.server.trust", { trusted: false });
  set("signOut", "Sign out of which server?", "mcp.server.auth", { signOut: true });

  register(app, "mcpSidecar.server.signIn", async (given: ServerArgument) => {
    const server = await serverOf(app, given, "Sign in to which server?", one => one.status === "needs-auth");
    if (server) {
      await busy(`Signing in to ${quoted(server)}: continue in the browser`, (_, token) =>
        sidecar.command("mcp.server.auth", { server }, token),
      );
    }
  });

  register(app, "mcpSidecar.server.trust", async (given: ServerArgument & { trusted?: boolean }) => {
    const server = await serverOf(app, given, "Trust which server?", one => one.needsTrust);
    if (!server) {
      return;
    }
    if (typeof given === "object" && given?.trusted === false) {
      await sidecar.command("mcp.server.trust", { server, trusted: false });
      return;
    }
    const status = sidecar.state.server(server);
    if (!status?.needsTrust) {
      window.showInformationMessage(`The server ${quoted(server)} needs no trust.`);
    } else if (workspace.isTrusted) {
      app.approvalPanel.openTrust(status);
    } else {
      await explainRestricted(server);
    }
  });

  register(app, "mcpSidecar.server.logs", async (given: ServerArgument) => {
    const server = await serverOf(app, given, "Show the log of which server?");
    if (server) {
      await showLog(server);
    }
  });

  register(app, "mcpSidecar.server.test", async (given: ServerArgument) => {
    const server = await serverOf(app, given, "Test which server?");
    if (server) {
      await test(app, server);
    }
  });

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
      await showText(`${server}.json`, JSON.stringify(servers[0], undefined, 2), { language: "json" });
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

/** Start, stop and restart, each for one server and for all. */
function runCommands(app: App): void {
  const can: ["start" | "stop" | "restart", (server: ServerStatus) => boolean][] = [
    ["start", server => server.status === "stopped" || server.status === "failed"],
    ["stop", server => server.status !== "stopped" && server.status !== "disabled"],
    ["restart", server => server.status !== "disabled"],
  ];
  for (const [verb, fits] of can) {
    register(app, `mcpSidecar.server.${verb}`, async (given: ServerArgument) => {
      const server = await serverOf(app, given, `${sentence(verb)} which server?`, fits);
      const answer = server ? await app.sidecar.command(`mcp.server.${verb}`, { server }) : undefined;
      const failed = answer?.servers.find(one => one.status === "failed");
      if (failed && verb !== "stop") {
        throw Object.assign(new Error(`${quoted(failed.name)}: ${failed.error ?? "failed"}`), {
          data: { kind: "process-failed", server: failed.name },
        });
      }
    });
    register(app, `mcpSidecar.servers.${verb}All`, () => app.sidecar.command(`mcp.server.${verb}`, { all: true }));
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
    await showText(`${server}: test.md`, reportText(server, report), { language: "markdown" });
  } else if (chosen) {
    await showLog(server);
  }
}

export function reportText(server: string, report: TestReport): string {
  const list = (title: string, items: unknown[]) => {
    const lines = (items as Partial<ResourceInfo>[]).map(
      item => `- \`${item.name ?? item.uri}\` ${(item.description ?? "").replace(/\s+/g, " ")}`,
    );
    return items.length > 0 ? `\n## ${title}\n\n${lines.join("\n")}\n` : "";
  };
  const counted = plural(report.tools.length, "tool");
  return `# ${server}\n\n${sentence(report.message)} (${counted})\n${list("Tools", report.tools)}${list("Resources", report.resources)}${list("Prompts", report.prompts)}`;
}

/** The scopes that have a file. */
export const FILE_SCOPES: readonly FileScope[] = ["project", "local", "user"];
