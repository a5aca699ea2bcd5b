/** Commands about servers: start and stop, trust, sign in, logs, and the entry in the config file. */

import { commands, Position, Range, Uri, window } from "vscode";
import { showLog, showText } from "../documents";
import type { Scope, ServerStatus } from "../protocol";
import { plural, sentence } from "../say";
import { busy, confirm, type Kit, register, type ServerArgument, serverOf } from "./kit";

type Answer = { server: ServerStatus };

export function serverCommands(kit: Kit): void {
  const { sidecar } = kit;
  lifeCommands(kit);

  const set = (name: string, question: string, command: string, params: object) =>
    register(kit, `mcpSidecar.server.${name}`, async (given: ServerArgument) => {
      const server = await serverOf(kit, given, question);
      if (server) {
        await sidecar.command<Answer>(command, { server, ...params });
      }
    });
  set("show", "Show the tools of which server?", "mcp.server.toggle", { enabled: true });
  set("hide", "Hide the tools of which server?", "mcp.server.toggle", { enabled: false });
  set("enable", "Enable which server in its file?", "mcp.server.enable", { enabled: true });
  set("disable", "Disable which server in its file?", "mcp.server.enable", { enabled: false });
  set("distrust", "Withdraw trust in which server?", "mcp.server.trust", { trusted: false });
  set("signOut", "Sign out of which server?", "mcp.server.auth", { signOut: true });

  register(kit, "mcpSidecar.server.signIn", async (given: ServerArgument) => {
    const server = await serverOf(kit, given, "Sign in to which server?", one => one.status === "needs-auth");
    if (server) {
      await busy(`Signing in to ${server}: go on in the browser`, (_, token) =>
        sidecar.command("mcp.server.auth", { server }, token),
      );
    }
  });

  register(kit, "mcpSidecar.server.trust", async (given: ServerArgument & { trusted?: boolean }) => {
    const server = await serverOf(kit, given, "Trust which server?", one => one.needsTrust);
    if (!server) {
      return;
    }
    if (typeof given === "object" && given?.trusted === false) {
      await sidecar.command("mcp.server.trust", { server, trusted: false });
      return;
    }
    const question = kit.desk.trustQuestion(server);
    if (question) {
      kit.desk.open(question.id);
      return;
    }
    // Nobody asked, because it was refused before: trust is given in sight of what will run all the same.
    const status = sidecar.picture.server(server);
    const detail = [status?.trustDiff, JSON.stringify(status?.config, undefined, 2)].filter(Boolean).join("\n\n");
    if (await confirm(`Trust this definition of ${server}?`, detail, "Trust")) {
      await sidecar.command("mcp.server.trust", { server, trusted: true });
    }
  });

  register(kit, "mcpSidecar.server.logs", async (given: ServerArgument) => {
    const server = await serverOf(kit, given, "Show the log of which server?");
    if (server) {
      await showLog(server);
    }
  });

  register(kit, "mcpSidecar.server.test", async (given: ServerArgument) => {
    const server = await serverOf(kit, given, "Try out which server?");
    if (server) {
      await test(kit, server);
    }
  });

  register(kit, "mcpSidecar.server.reveal", async (given: ServerArgument) => {
    const server = typeof given === "string" ? given : given?.server;
    await commands.executeCommand("mcpSidecar.servers.focus");
    if (server) {
      await kit.servers.reveal(server);
    }
  });

  register(kit, "mcpSidecar.server.inspect", async (given: ServerArgument) => {
    const server = await serverOf(kit, given, "Inspect which server?");
    if (server) {
      const { servers } = await sidecar.command<{ servers: ServerStatus[] }>("mcp.servers", { server });
      await showText(`${server}.json`, JSON.stringify(servers[0], undefined, 2), { language: "json" });
    }
  });

  register(kit, "mcpSidecar.server.open", async (given: ServerArgument) => {
    const name = await serverOf(kit, given, "Open the definition of which server?", one => one.file !== undefined);
    const server = name ? sidecar.picture.server(name) : undefined;
    if (server?.file) {
      const at = new Position(server.line ?? 0, 0);
      await window.showTextDocument(Uri.file(server.file), { selection: new Range(at, at) });
    }
  });
}

/** Start, stop and restart, each for one and for all. */
function lifeCommands(kit: Kit): void {
  const can: Record<string, (server: ServerStatus) => boolean> = {
    start: server => server.status === "stopped" || server.status === "failed",
    stop: server => server.status !== "stopped" && server.status !== "disabled",
    restart: server => server.status !== "disabled",
  };
  for (const [verb, fits] of Object.entries(can)) {
    const run = (params: object) => kit.sidecar.command<{ servers: ServerStatus[] }>(`mcp.server.${verb}`, params);
    register(kit, `mcpSidecar.server.${verb}`, async (given: ServerArgument) => {
      const server = await serverOf(kit, given, `${sentence(verb)} which server?`, fits);
      const answer = server ? await run({ server }) : undefined;
      const failed = answer?.servers.find(one => one.status === "failed");
      if (failed && verb !== "stop") {
        throw Object.assign(new Error(`${failed.name}: ${failed.error ?? "failed"}`), {
          data: { kind: "process-failed", server: failed.name },
        });
      }
    });
    register(kit, `mcpSidecar.servers.${verb}All`, () => run({ all: true }));
  }
}

interface Report {
  success: boolean;
  message: string;
  tools: { name: string; description?: string }[];
  resources: { name?: string; uri?: string; description?: string }[];
  prompts: { name: string; description?: string }[];
  latencyMs: number;
}

async function test(kit: Kit, server: string): Promise<void> {
  const report = await busy(`Trying out ${server}`, (_, token) =>
    kit.sidecar.command<Report>("mcp.server.test", { server }, token),
  );
  const more = "Show All";
  const tell = report.success ? window.showInformationMessage : window.showErrorMessage;
  const took = report.success ? ` (${Math.round(report.latencyMs)} ms)` : "";
  const chosen = await tell(`${server}: ${report.message}${took}`, report.success ? more : "Show Log");
  if (chosen === more) {
    await showText(`${server}: test.md`, reportText(server, report), { language: "markdown" });
  } else if (chosen) {
    await showLog(server);
  }
}

export function reportText(server: string, report: Report): string {
  const list = (title: string, items: { name?: string; uri?: string; description?: string }[]) => {
    const lines = items.map(item => `- \`${item.name ?? item.uri}\` ${(item.description ?? "").replace(/\s+/g, " ")}`);
    return items.length > 0 ? `\n## ${title}\n\n${lines.join("\n")}\n` : "";
  };
  const counted = plural(report.tools.length, "tool");
  return `# ${server}\n\n${sentence(report.message)} (${counted})\n${list("Tools", report.tools)}${list("Resources", report.resources)}${list("Prompts", report.prompts)}`;
}

/** The scopes that have a file. */
export const FILE_SCOPES: readonly Scope[] = ["project", "local", "user"];
