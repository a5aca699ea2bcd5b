/** The state of the workspace as the sidecar last sent it. Nothing is computed here. */

import { EventEmitter } from "vscode";
import type { Approval, Call, Notifications, Reload, ServerStatus } from "./protocol";

type Params<N extends keyof Notifications> = Notifications[N]["params"];

export class WorkspaceState {
  private readonly known = new Map<string, ServerStatus>();
  private waiting: readonly Approval[] = [];

  private readonly serversEmitter = new EventEmitter<string | undefined>();
  private readonly approvalsEmitter = new EventEmitter<readonly Approval[]>();
  private readonly callEmitter = new EventEmitter<Call>();
  private readonly reloadEmitter = new EventEmitter<Reload>();
  private readonly resourceEmitter = new EventEmitter<Params<"mcp/resourceUpdated">>();
  private readonly logEmitter = new EventEmitter<Params<"mcp/log">>();

  /** A server or its tools have changed; without a name, all servers. */
  readonly onServers = this.serversEmitter.event;
  /** The list of questions has changed. Carries the previous list. */
  readonly onApprovals = this.approvalsEmitter.event;
  readonly onCall = this.callEmitter.event;
  readonly onReload = this.reloadEmitter.event;
  readonly onResource = this.resourceEmitter.event;
  readonly onLog = this.logEmitter.event;

  /** Sorted by name. */
  get servers(): ServerStatus[] {
    return [...this.known.values()].sort((one, other) => one.name.localeCompare(other.name));
  }

  /** Oldest first. */
  get approvals(): readonly Approval[] {
    return this.waiting;
  }

  server(name: string): ServerStatus | undefined {
    return this.known.get(name);
  }

  approval(id: string): Approval | undefined {
    return this.waiting.find(approval => approval.id === id);
  }

  /** How each notification changes the state. */
  readonly handlers: { [N in Exclude<keyof Notifications, "mcp/workspaceTrust">]: (params: Params<N>) => void } = {
    "mcp/serverChanged": ({ server }) => {
      this.known.set(server.name, server);
      this.serversEmitter.fire(server.name);
    },
    "mcp/serverRemoved": ({ name }) => {
      this.known.delete(name);
      this.serversEmitter.fire(undefined);
    },
    "mcp/toolsChanged": ({ server }) => this.serversEmitter.fire(server),
    "mcp/approvalsChanged": ({ approvals }) => this.setApprovals(approvals),
    "mcp/callFinished": call => this.callEmitter.fire(call),
    "mcp/configReloaded": reload => {
      this.reloadEmitter.fire(reload);
      // Levels may have changed even if no server has.
      this.serversEmitter.fire(undefined);
    },
    "mcp/resourceUpdated": changed => this.resourceEmitter.fire(changed),
    "mcp/log": line => this.logEmitter.fire(line),
  };

  setServers(servers: readonly ServerStatus[]): void {
    this.known.clear();
    for (const server of servers) {
      this.known.set(server.name, server);
    }
    this.serversEmitter.fire(undefined);
  }

  setApprovals(approvals: readonly Approval[]): void {
    const before = this.waiting;
    this.waiting = approvals;
    this.approvalsEmitter.fire(before);
  }

  /** Without a sidecar there is no state. */
  clear(): void {
    this.setServers([]);
    this.setApprovals([]);
  }

  /** Reports a change that the sidecar sends no notification for, such as a level. */
  touch(server?: string): void {
    this.serversEmitter.fire(server);
  }
}
