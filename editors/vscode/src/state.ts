/** The state of the workspace as the sidecar last sent it. Nothing is computed here. */

import { EventEmitter } from "vscode";
import type {
  Approval,
  ApprovalGroup,
  ApprovalList,
  Call,
  ClosedApproval,
  Notifications,
  ServerStatus,
} from "./protocol";

/** A question, or several that can be answered together. */
export type Question = Approval | ApprovalGroup;

/** How many ended questions are kept. */
const CLOSED = 100;

type Params<N extends keyof Notifications> = Notifications[N]["params"];

export class WorkspaceState {
  private readonly known = new Map<string, ServerStatus>();
  private waiting: readonly Approval[] = [];
  private groups: readonly ApprovalGroup[] = [];
  /** Questions whose arguments are too large for the list, as they were fetched. */
  private fetched: ReadonlyMap<string, Approval> = new Map();
  /** Questions that have ended, newest first. */
  closed: readonly ClosedApproval[] = [];

  private readonly serversEmitter = new EventEmitter<string | undefined>();
  private readonly approvalsEmitter = new EventEmitter<readonly Approval[]>();
  private readonly callEmitter = new EventEmitter<Call>();
  private readonly agentsEmitter = new EventEmitter<void>();
  private readonly resourceEmitter = new EventEmitter<Params<"mcp/resourceUpdated">>();
  private readonly logEmitter = new EventEmitter<Params<"mcp/log">>();

  /** A server or its tools have changed; without a name, all servers. */
  readonly onServers = this.serversEmitter.event;
  /** The list of questions has changed. Carries the previous list. */
  readonly onApprovals = this.approvalsEmitter.event;
  readonly onCall = this.callEmitter.event;
  /** Agents have connected or disconnected, or do something else. */
  readonly onAgents = this.agentsEmitter.event;
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

  /** Oldest first. A group is one question. */
  get questions(): Question[] {
    return [...new Set(this.waiting.map(approval => this.groupOf(approval.id) ?? approval))];
  }

  /** A question or a group, if it still waits. */
  question(id: string): Question | undefined {
    return this.approval(id) ?? this.groups.find(group => group.id === id);
  }

  groupOf(id: string): ApprovalGroup | undefined {
    return this.groups.find(group => group.ids.includes(id));
  }

  /** How each notification changes the state. A sign-in shows no page here: its notification leads to the browser. */
  readonly handlers: {
    [N in Exclude<keyof Notifications, "mcp/workspaceTrust" | "mcp/signInPage">]: (params: Params<N>) => void;
  } = {
    "mcp/serverChanged": ({ server }) => {
      this.known.set(server.name, server);
      this.serversEmitter.fire(server.name);
    },
    "mcp/serverRemoved": ({ name }) => {
      this.known.delete(name);
      this.serversEmitter.fire(undefined);
    },
    "mcp/toolsChanged": ({ server }) => this.serversEmitter.fire(server),
    "mcp/approvalsChanged": ({ closed, ...waiting }) => {
      this.closed = [...closed, ...this.closed].slice(0, CLOSED);
      this.setApprovals(waiting);
    },
    "mcp/callFinished": call => this.callEmitter.fire(call),
    "mcp/agentsChanged": () => this.agentsEmitter.fire(),
    // Levels may have changed even if no server has.
    "mcp/configReloaded": () => this.serversEmitter.fire(undefined),
    "mcp/resourceUpdated": changed => this.resourceEmitter.fire(changed),
    "mcp/log": line => this.logEmitter.fire(line),
  };

  private setApprovals({ approvals, groups }: ApprovalList): void {
    const before = this.waiting;
    const ids = new Set(approvals.map(one => one.id));
    this.fetched = new Map([...this.fetched].filter(([id]) => ids.has(id)));
    this.waiting = approvals.map(one => this.withArguments(one));
    this.groups = groups;
    this.approvalsEmitter.fire(before);
  }

  /** Adds what the list leaves out of a question. */
  addFetched(whole: Approval): void {
    this.fetched = new Map([...this.fetched, [whole.id, whole]]);
    this.setApprovals({ approvals: [...this.waiting], groups: [...this.groups] });
  }

  private withArguments(listed: Approval): Approval {
    const whole = this.fetched.get(listed.id);
    const { largeArguments, ...rest } = listed;
    return whole && largeArguments
      ? {
          ...rest,
          detail: whole.detail,
          ...(whole.arguments && { arguments: whole.arguments }),
          ...(whole.change && { change: whole.change }),
        }
      : listed;
  }

  /** Without a sidecar there is no state. */
  clear(): void {
    this.known.clear();
    this.serversEmitter.fire(undefined);
    this.setApprovals({ approvals: [], groups: [] });
  }

  /** Reports a change that the sidecar sends no notification for, such as a level. */
  touch(server?: string): void {
    this.serversEmitter.fire(server);
  }
}
