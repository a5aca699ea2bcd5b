/** The one owner of the language client: starts it, ends it, sends commands. What is known is in `picture`. */

import * as path from "node:path";
import { type CancellationToken, type Disposable, EventEmitter, type LogOutputChannel, workspace } from "vscode";
import { LanguageClient, RevealOutputChannelOn, State, WorkDoneProgress } from "vscode-languageclient/node";
import { type Binary, find } from "./binary";
import { middleware } from "./middleware";
import type { Approval, ServerStatus } from "./protocol";
import { forwarded } from "./settings";
import { WorkspaceState } from "./state";

export type RunStatus = "off" | "starting" | "running" | "failed";

/** What a part of the extension adds to the conversation: what it can do, and what it answers to. */
export interface Part {
  /** Goes into `capabilities.experimental.mcpSidecar`. */
  abilities?(): Record<string, unknown>;
  /** Called for each new client, before it starts. */
  attach?(client: LanguageClient): void;
  /** Called each time the sidecar has become ready. */
  ready?(): void;
}

/** Longer than the sidecar needs to say goodbye. */
const STOP_MS = 2_000;

export class Sidecar implements Disposable {
  readonly state = new WorkspaceState();
  private readonly runStatusEmitter = new EventEmitter<RunStatus>();
  readonly onRunStatus = this.runStatusEmitter.event;
  runStatus: RunStatus = "off";
  /** Why the last start failed. */
  problem: string | undefined;
  binary: Binary | undefined;

  private client: LanguageClient | undefined;
  private readonly parts: Part[] = [];
  /** Starts and stops happen one after another. */
  private turn: Promise<void> = Promise.resolve();
  private tokens = 0;

  constructor(
    private readonly folder: string,
    private readonly version: string,
    readonly log: LogOutputChannel,
  ) {}

  add(part: Part): void {
    this.parts.push(part);
  }

  /** Starts the sidecar unless it runs; settles when it is ready, and tells why when it cannot be. */
  start(): Promise<void> {
    return this.next(async () => {
      // One that crashed too often is still there, and does not run.
      if (!this.client || this.client.needsStart()) {
        await this.end();
        await this.begin();
      }
    });
  }

  stop(): Promise<void> {
    return this.next(() => this.end());
  }

  restart(): Promise<void> {
    return this.next(async () => {
      await this.end();
      await this.begin();
    });
  }

  /** Runs a command of the sidecar, which is started if it does not run. */
  async command<T>(name: string, params: object = {}, token?: CancellationToken, onProgress?: Progress): Promise<T> {
    await this.start();
    const client = this.client;
    if (!client) {
      throw new Error(this.problem ?? "the sidecar does not run");
    }
    const workDoneToken = onProgress ? `mcp-sidecar-${++this.tokens}` : undefined;
    const listening = workDoneToken && client.onProgress(WorkDoneProgress.type, workDoneToken, onProgress as Progress);
    try {
      const request = { command: name, arguments: [params], ...(workDoneToken && { workDoneToken }) };
      // A token that is undefined would be sent as a second parameter.
      return await (token
        ? client.sendRequest<T>("workspace/executeCommand", request, token)
        : client.sendRequest<T>("workspace/executeCommand", request));
    } finally {
      if (listening) {
        listening.dispose();
      }
    }
  }

  async notify(method: string, params: object): Promise<void> {
    await this.client?.sendNotification(method, params);
  }

  /** What an agent that VS Code runs shows to the sidecar, so that nobody is asked twice. */
  get ticket(): string | undefined {
    return this.client?.initializeResult?.capabilities.experimental?.mcpSidecar?.ticket;
  }

  /** Tells the sidecar the settings as they are now. */
  async sendSettings(): Promise<void> {
    await this.notify("workspace/didChangeConfiguration", { settings: { mcpSidecar: settings() } });
  }

  dispose(): void {
    void this.stop();
  }

  private next(work: () => Promise<void>): Promise<void> {
    const turn = this.turn.then(work);
    this.turn = turn.catch(() => {});
    return turn;
  }

  private async begin(): Promise<void> {
    this.setRunStatus("starting");
    try {
      const began = performance.now();
      this.binary = await find({
        setting: workspace.getConfiguration("mcpSidecar").get<string | null>("server.path"),
        extension: this.folder,
        environment: process.env,
      });
      const { path: program, version, from } = this.binary;
      this.log.info(`mcp-sidecar ${version} from ${program} (${from})`);
      const client = this.makeClient(program);
      await client.start();
      this.client = client;
      this.problem = undefined;
      this.setRunStatus("running");
      this.log.info(`ready after ${Math.round(performance.now() - began)} ms`);
      await this.fetch();
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      this.log.error(this.problem);
      await this.end();
      this.setRunStatus("failed");
      throw new Error(this.problem);
    }
  }

  private makeClient(command: string): LanguageClient {
    const client = new LanguageClient(
      "mcpSidecar",
      "MCP Sidecar",
      { command, args: ["lsp"], options: { env: environment(command) } },
      {
        // All files: the sidecar offers code actions in any. `middleware` keeps the other requests to config files.
        documentSelector: [{ scheme: "file" }],
        outputChannel: this.log,
        revealOutputChannelOn: RevealOutputChannelOn.Never,
        initializationOptions: settings(),
        middleware: middleware(this),
        textSynchronization: { delayOpenNotifications: true },
      },
    );
    const abilities = () => Object.assign({}, ...this.parts.map(part => part.abilities?.() ?? {}));
    client.registerFeature({
      fillClientCapabilities: capabilities => {
        capabilities.experimental = {
          ...capabilities.experimental,
          mcpSidecar: {
            version: this.version,
            approvals: true,
            elicitation: true,
            workspaceTrusted: workspace.isTrusted,
            ...abilities(),
          },
        };
      },
      initialize: () => {},
      getState: () => ({ kind: "static" }),
      clear: () => {},
    });
    for (const [method, handle] of Object.entries(this.state.handlers)) {
      client.onNotification(method, handle as (params: unknown) => void);
    }
    for (const part of this.parts) {
      part.attach?.(client);
    }
    client.onDidChangeState(({ newState }) => this.follow(client, newState));
    return client;
  }

  /** After a crash the client starts the sidecar again by itself, and gives up when that does not help. */
  private follow(client: LanguageClient, state: State): void {
    if (client !== this.client) {
      return;
    }
    if (state === State.Running) {
      this.setRunStatus("running");
      void this.fetch();
    } else if (state === State.Starting) {
      this.setRunStatus("starting");
    } else {
      this.state.clear();
      this.setRunStatus(state === State.StartFailed ? "failed" : "off");
    }
  }

  private async fetch(): Promise<void> {
    const ask = <T>(command: string) =>
      this.client?.sendRequest<T>("workspace/executeCommand", { command, arguments: [{}] });
    const servers = await ask<{ servers: ServerStatus[] }>("mcp.servers");
    this.state.setServers(servers?.servers ?? []);
    const approvals = await ask<{ approvals: Approval[] }>("mcp.approvals");
    this.state.setApprovals(approvals?.approvals ?? []);
    for (const part of this.parts) {
      part.ready?.();
    }
  }

  private async end(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    try {
      await client?.dispose(STOP_MS);
    } catch (error) {
      this.log.warn(`the sidecar did not end in good order: ${error}`);
    }
    this.state.clear();
    this.setRunStatus("off");
  }

  private setRunStatus(runStatus: RunStatus): void {
    this.runStatus = runStatus;
    this.runStatusEmitter.fire(runStatus);
  }
}

/** With the sidecar's own folder last in the PATH, so that a config file may name `mcp-sidecar`, which is only in here. */
function environment(command: string): NodeJS.ProcessEnv {
  const folders = [process.env.PATH, path.dirname(command)].filter(Boolean);
  return { ...process.env, PATH: folders.join(path.delimiter) };
}

export type Progress = (value: { kind: string; title?: string; message?: string; percentage?: number }) => void;

/** Only what somebody set: a default here would hide what `config.toml` says. */
function settings(): Record<string, unknown> {
  const configuration = workspace.getConfiguration("mcpSidecar");
  return forwarded(name => {
    const found = configuration.inspect(name);
    return found?.workspaceFolderValue ?? found?.workspaceValue ?? found?.globalValue;
  });
}
