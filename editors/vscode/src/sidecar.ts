/** The only owner of the language client: starts it, stops it, sends commands. `state` holds what the sidecar sent. */

import * as path from "node:path";
import { type CancellationToken, type Disposable, EventEmitter, type LogOutputChannel, workspace } from "vscode";
import { LanguageClient, RevealOutputChannelOn, State, WorkDoneProgress } from "vscode-languageclient/node";
import { type Binary, find, NoProgram } from "./binary";
import { answerChoices } from "./choices";
import { configPatterns } from "./files";
import { middleware } from "./middleware";
import type { Commands, Notifications, Requests } from "./protocol";
import { configNames, forwarded, setting } from "./settings";
import { WorkspaceState } from "./state";

export type RunStatus = "off" | "starting" | "running" | "failed";

/** The requests of the contract, as the client sends and answers them. */
export interface Client {
  sendRequest<N extends keyof Requests>(method: N, params: Requests[N]["params"]): Promise<Requests[N]["answer"]>;
  onRequest<N extends keyof Requests>(
    method: N,
    handle: (params: Requests[N]["params"], token: CancellationToken) => Requests[N]["answer"],
  ): Disposable;
}

/** What a part of the extension adds to the client: capabilities, and requests that it answers. */
export interface Part {
  /** Goes into `capabilities.experimental.mcpSidecar`. */
  abilities?(): Record<string, unknown>;
  /** Called for each new client, before it starts. */
  attach?(client: Client): void;
  /** Called each time the sidecar is ready. */
  ready?(): void;
}

/** Longer than the sidecar needs to shut down. */
const STOP_MS = 2_000;

export class Sidecar implements Disposable {
  readonly state = new WorkspaceState();
  private readonly runStatusEmitter = new EventEmitter<RunStatus>();
  readonly onRunStatus = this.runStatusEmitter.event;
  runStatus: RunStatus = "off";
  /** Why the last start failed. */
  problem: string | undefined;
  /** The last start failed because the program was not found. */
  noProgram = false;
  binary: Binary | undefined;

  private client: LanguageClient | undefined;
  private readonly parts: Part[] = [];
  /** Starts and stops run one after another. */
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

  /** Starts the sidecar unless it runs. Resolves when it is ready, rejects with the reason if it cannot start. */
  start(): Promise<void> {
    return this.next(async () => {
      // A client that crashed too often still exists, but does not run.
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

  /** Runs a command of the sidecar, and starts the sidecar if needed. */
  async command<N extends keyof Commands>(
    name: N,
    params: Commands[N]["params"],
    token?: CancellationToken,
    onProgress?: Progress,
  ): Promise<Commands[N]["answer"]> {
    await this.start();
    const client = this.client;
    if (!client) {
      throw new Error(this.problem ?? "the sidecar is not running");
    }
    const workDoneToken = onProgress ? `mcp-sidecar-${++this.tokens}` : undefined;
    const listening = workDoneToken && client.onProgress(WorkDoneProgress.type, workDoneToken, onProgress as Progress);
    try {
      const request = { command: name, arguments: [params], ...(workDoneToken && { workDoneToken }) };
      // An undefined token would be sent as a second parameter.
      return await (token
        ? client.sendRequest("workspace/executeCommand", request, token)
        : client.sendRequest("workspace/executeCommand", request));
    } finally {
      if (listening) {
        listening.dispose();
      }
    }
  }

  async notify<N extends keyof Notifications>(method: N, params: Notifications[N]["params"]): Promise<void> {
    await this.client?.sendNotification(method, params);
  }

  /** Proves to the sidecar that VS Code runs this agent and asks about its calls, so that the user is not asked twice. */
  get ticket(): string | undefined {
    return this.client?.initializeResult?.capabilities.experimental?.mcpSidecar?.ticket;
  }

  /** Sends the current settings to the sidecar. */
  async sendSettings(): Promise<void> {
    const params = { settings: { mcpSidecar: forwarded() } };
    await this.client?.sendNotification("workspace/didChangeConfiguration", params);
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
        setting: setting<string>("server.path"),
        extension: this.folder,
        environment: process.env,
      });
      const { path: program, version, from } = this.binary;
      this.log.info(`mcp-sidecar ${version} from ${program} (${from})`);
      const client = this.makeClient(program);
      await client.start();
      this.client = client;
      this.problem = undefined;
      this.log.info(`ready after ${Math.round(performance.now() - began)} ms`);
      this.setReady();
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      this.noProgram = error instanceof NoProgram;
      this.log.error(this.problem);
      await this.end();
      this.setRunStatus("failed");
      throw error;
    }
  }

  private makeClient(command: string): LanguageClient {
    const client = new LanguageClient(
      "mcpSidecar",
      "MCP Sidecar",
      { command, args: ["lsp"], options: { env: environment(command) } },
      {
        documentSelector: configPatterns(configNames()).map(pattern => ({ scheme: "file", pattern })),
        outputChannel: this.log,
        revealOutputChannelOn: RevealOutputChannelOn.Never,
        initializationOptions: forwarded(),
        middleware: middleware(),
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
      client.onNotification(method, handle);
    }
    answerChoices(client);
    for (const part of this.parts) {
      part.attach?.(client);
    }
    client.onDidChangeState(({ newState }) => this.follow(client, newState));
    return client;
  }

  /** After a crash the client restarts the sidecar by itself, and gives up if it keeps crashing. */
  private follow(client: LanguageClient, state: State): void {
    if (client !== this.client) {
      return;
    }
    if (state === State.Running) {
      this.setReady();
    } else if (state === State.Starting) {
      this.setRunStatus("starting");
    } else {
      this.state.clear();
      this.setRunStatus(state === State.StartFailed ? "failed" : "off");
    }
  }

  /** The sidecar sends its state by itself. */
  private setReady(): void {
    this.setRunStatus("running");
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
      this.log.warn(`the sidecar did not shut down cleanly: ${error}`);
    }
    this.state.clear();
    this.setRunStatus("off");
  }

  private setRunStatus(runStatus: RunStatus): void {
    this.runStatus = runStatus;
    this.runStatusEmitter.fire(runStatus);
  }
}

/** Adds the folder of the sidecar to the end of `PATH`, so that a config file can name the bundled `mcp-sidecar`. */
function environment(command: string): NodeJS.ProcessEnv {
  const folders = [process.env.PATH, path.dirname(command)].filter(Boolean);
  return { ...process.env, PATH: folders.join(path.delimiter) };
}

export type Progress = (value: { kind: string; title?: string; message?: string; percentage?: number }) => void;
