// Generated from src/protocol by `make generate`. Do not edit.

/** The level of a tool for one agent. */
export interface AgentLevel {
  agent: string;
  level: Level;
  source: string;
}

/** What a server claims about a tool. */
export interface Annotations {
  readOnly?: boolean;
  destructive?: boolean;
  idempotent?: boolean;
  openWorld?: boolean;
}

/** A question that waits for the user. */
export interface Approval {
  id: string;
  kind: ApprovalKind;
  server: ServerName;
  tool?: string;
  /** In full, as they will be sent. */
  arguments?: Record<string, unknown>;
  title: string;
  detail: string;
  annotations?: Annotations;
  requester: Requester;
  /** The possible answers: decisions, or `accept`, `decline` and `cancel`. */
  options: string[];
  /** What changed since the user last agreed. */
  diff?: string;
  /** What the call would change in a file of the workspace. */
  change?: FileChange;
  /** The form to fill in. */
  schema?: Schema;
  /** The page to open. */
  url?: string;
  createdAt: Timestamp;
  expiresAt: Timestamp;
}

/** What kind of answer a question takes. */
export type ApprovalKind = "tool" | "trust" | "elicitation" | "input";

export interface ApprovalList {
  /** Oldest first. */
  approvals: Approval[];
}

/** An entry of the call log. */
export interface Call {
  callId: CallId;
  time: Timestamp;
  server: ServerName;
  tool: string;
  requester: Requester;
  workflow?: string;
  /** The level or answer that allowed or refused the call. */
  decision: string;
  /** Where the decision came from: a rule, a grant, `user`, `timeout`, …. */
  decidedBy: string;
  success: boolean;
  error?: string;
  durationMs: number;
  /** Masked and cut. Absent in notifications. */
  arguments?: unknown;
  /** Masked and cut. Absent in notifications. */
  result?: RecordedResult;
}

/** Identifies a call in the log and in notifications. */
export type CallId = string;

export interface CallList {
  /** Newest first. */
  calls: Call[];
}

/** A check of `mcp.doctor`. */
export interface Check {
  name: string;
  ok: boolean;
  message: string;
  /** What to do about it. */
  fix?: string;
}

export interface CheckList {
  checks: Check[];
}

export interface Completion {
  values: unknown[];
  hasMore: boolean;
}

/** A config file. */
export interface ConfigFile {
  path: string;
  scope: Scope;
  exists: boolean;
  /** Whether it can be parsed. If not, the last good version stays in force. */
  valid: boolean;
  /** The names of the servers in it. */
  servers: string[];
}

export interface ConfigFiles {
  files: ConfigFile[];
}

/** A content block of MCP. Servers may send other fields, too. */
export interface Content {
  type: string;
  text?: string;
  /** Base64. */
  data?: string;
  mimeType?: string;
  uri?: string;
  name?: string;
  title?: string;
  description?: string;
  resource?: ResourceContents;
}

/** An answer to a question about a tool call. */
export type Decision = "allow-once" | "allow-session" | "allow-project" | "allow-always" | "deny" | "disable";

/** A program whose config files can be imported and exported. */
export type Dialect = "vscode" | "claude" | "claude-desktop" | "cursor" | "windsurf" | "zed" | "cline" | "codex" | "mcphub";

/** Nothing but success. */
export type Done = Record<string, unknown>;

export interface EditedFiles {
  /** Files that were changed in the editor and take effect when they are saved. */
  unsaved?: string[];
}

/** A server after its file was changed. */
export interface EditedServer {
  server: ServerStatus;
  /** Files that were changed in the editor and take effect when they are saved. */
  unsaved?: string[];
}

/** The tools that a new level applies to. */
export interface EditedTools {
  tools: ToolInfo[];
  /** Files that were changed in the editor and take effect when they are saved. */
  unsaved?: string[];
}

/** The `data` of an error response. */
export interface ErrorData {
  kind: ErrorKind;
  server?: string;
  tool?: string;
  /** What is wrong with the arguments of a call. */
  detail?: Violation[];
}

/** What kind of failure an error reports. */
export type ErrorKind = "invalid-params" | "invalid-arguments" | "not-found" | "conflict" | "disabled" | "denied" | "needs-trust" | "needs-auth" | "timeout" | "cancelled" | "connection-failed" | "process-failed" | "protocol-error" | "io";

export interface Exported {
  /** A whole file with these servers. */
  text: string;
  /** The file that was written. */
  path?: string;
  /** Server → what could not be carried over. */
  notes: Record<string, string[]>;
}

/** What a call would change in a file. */
export interface FileChange {
  /** The absolute path. */
  file: string;
  /** The path as the call names it. */
  path: string;
  isNew: boolean;
  /** The text after the call. */
  after: string;
  diff: string;
}

/** Where a definition is written. */
export type FileScope = "user" | "project" | "local" | "session" | "managed";

/** An answer of the user that still applies. */
export interface Grant {
  id: string;
  server: ServerName;
  tool: string;
  level: Level;
  /** `session`, `project` or `always`. */
  scope: string;
  since: Timestamp;
}

export interface GrantList {
  grants: Grant[];
}

/** A definition that another one overrides. */
export interface HiddenDefinition {
  scope: Scope;
  file?: string;
}

/** A rule that did not decide. */
export interface HiddenRule {
  level: Level;
  source: string;
  /** Why it does not count. Absent if an earlier rule simply came first. */
  reason?: string;
}

export interface Imported {
  imported: string[];
  /** Server → why it was not imported. */
  skipped: Record<string, string>;
  /** Server → what to know about it. */
  notes: Record<string, string[]>;
  /** The file that was written, or would be. */
  path: string;
}

/** The name of the server that was inserted. */
export interface InsertedServer {
  server: string;
}

/** The name under which a secret is kept in the keyring. */
export interface KeptSecret {
  name: string;
}

/** How freely a tool may run, from the most to the least restrictive. */
export type Level = "disable" | "deny" | "require-approval" | "allow-once" | "allow-session" | "allow-project" | "allow-always";

export const LEVELS: readonly Level[] = ["disable", "deny", "require-approval", "allow-once", "allow-session", "allow-project", "allow-always"];

/** A line of a server's log. */
export interface LogLine {
  time: Timestamp;
  source: LogSource;
  level: string;
  text: string;
}

export interface LogLines {
  /** Oldest first. */
  lines: LogLine[];
}

/** Where a log line comes from. */
export type LogSource = "stderr" | "server" | "sidecar";

export interface MetricsList {
  servers: ServerMetrics[];
}

export interface OneServer {
  server: ServerStatus;
}

/** The level of a tool, where it comes from, and the rules that it overrides. */
export interface Policy {
  tool: string;
  level: Level;
  source: string;
  hides: HiddenRule[];
  /** Levels of agents, where they differ. */
  agents?: AgentLevel[];
}

export interface PolicyList {
  policies: Policy[];
}

export interface Prompt {
  description?: string;
  messages: PromptMessage[];
}

/** An argument of a prompt. */
export interface PromptArgument {
  name: string;
  description?: string;
  required?: boolean;
}

/** A prompt, as its server sent it. */
export interface PromptInfo {
  name: string;
  title?: string;
  description?: string;
  arguments?: PromptArgument[];
  server: ServerName;
}

export interface PromptList {
  prompts: PromptInfo[];
}

/** A message of a prompt. */
export interface PromptMessage {
  role: string;
  content: Content;
}

export interface ReadResource {
  contents: ResourceContents[];
}

/** The result of a call, as the log keeps it. */
export interface RecordedResult {
  content?: Content[];
  structuredContent?: unknown;
  isError?: boolean;
}

/** What a reload of the config files changed. */
export interface Reload {
  added: ServerName[];
  removed: ServerName[];
  /** Restarted, because their launch changed. */
  changed: ServerName[];
  /** Only their levels changed; they keep running. */
  policyOnly: ServerName[];
  unchanged: number;
  /** File → its errors. */
  errors: Record<string, string[]>;
}

/** Who asks for a call. */
export interface Requester {
  kind: "user" | "plugin" | "agent";
  name?: string;
}

/** The content of a resource. */
export interface ResourceContents {
  uri: string;
  mimeType?: string;
  text?: string;
  /** Base64. */
  blob?: string;
}

/** A resource or a resource template, as its server sent it. */
export interface ResourceInfo {
  /** A template has a `uriTemplate` instead. */
  uri?: string;
  uriTemplate?: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
  server: ServerName;
}

export interface ResourceList {
  resources: ResourceInfo[];
  templates: ResourceInfo[];
}

export interface Revoked {
  /** How many grants were revoked. */
  revoked: number;
}

/** The part of JSON Schema that forms support. It comes from a server, so it may hold other keys, too. */
export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  enumNames?: string[];
  const?: unknown;
  oneOf?: Schema[];
  anyOf?: Schema[];
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  /** The value is a secret: do not show it. */
  password?: boolean;
}

/** Where a definition comes from. */
export type Scope = "managed" | "session" | "local" | "project" | "user" | "claudeai";

/** The name and version that a server reports. */
export interface ServerInfo {
  name: string;
  version: string;
}

export interface ServerList {
  servers: ServerStatus[];
}

/** Figures of a server. */
export interface ServerMetrics {
  server: ServerName;
  startMs?: number;
  discoverMs?: number;
  restarts: number;
  uptimeMs?: number;
  tools: ToolMetrics[];
}

/** The name of a server: letters, digits, `-` and `_`. */
export type ServerName = string;

/** A server: its definition, its state and what it offers. */
export interface ServerStatus {
  name: ServerName;
  status: Status;
  /** Why a pending server is not connected yet: `starting`, `awaiting-trust`, `awaiting-input`, `retrying in 4 s`. */
  reason?: string;
  enabled: boolean;
  transport: Transport;
  scope: Scope;
  /** The file that defines it. */
  file?: string;
  /** The zero-based line of its key in that file. */
  line?: number;
  /** Definitions of the same name that this one overrides. */
  hides: HiddenDefinition[];
  /** Why it failed, or what keeps it from starting. */
  error?: string;
  /** Whether the user has to trust the definition before it starts. */
  needsTrust: boolean;
  /** What changed since the user last trusted the definition. */
  trustDiff?: string;
  serverInfo?: ServerInfo;
  /** The version of MCP that it speaks. */
  protocolVersion?: string;
  instructions?: string;
  capabilities: string[];
  toolCount: number;
  resourceCount: number;
  promptCount: number;
  tools: ToolSummary[];
  pid?: number;
  startedAt?: Timestamp;
  /** How long the last ping or call took at the server. */
  latencyMs?: number;
  restarts: number;
  warnings: string[];
  /** The entry as written in its file. Nothing is expanded, and values of `env` and `headers` are shown as `•••` unless they are a plain `${…}`. */
  config: Record<string, unknown>;
}

/** What changed in the session scope. */
export interface SessionChange {
  added: string[];
  removed: string[];
  /** Server → why its definition cannot be used. */
  errors: Record<string, string>;
}

/** What a server is doing. */
export type Status = "pending" | "connected" | "failed" | "needs-auth" | "disabled" | "stopped";

/** A definition to start from. */
export interface Template {
  /** Also a good name for the server. */
  id: string;
  title: string;
  description: string;
  config: unknown;
  /** Entries for `inputs` that the definition needs. */
  inputs: unknown[];
}

export interface TemplateList {
  templates: Template[];
}

/** The outcome of a test. Nothing stays running. */
export interface TestReport {
  success: boolean;
  message: string;
  serverInfo?: ServerInfo;
  protocolVersion?: string;
  /** As the server sent them. */
  tools: unknown[];
  resources: unknown[];
  prompts: unknown[];
  latencyMs: number;
}

/** RFC 3339 in UTC. */
export type Timestamp = string;

/** A tool with the level that applies to it. */
export interface ToolInfo {
  /** The whole name: `mcp__server__tool`. */
  name: string;
  server: ServerName;
  tool: string;
  title?: string;
  description: string;
  inputSchema: Schema;
  outputSchema?: Schema;
  annotations: Annotations;
  level: Level;
  /** Where the level comes from. */
  source: string;
  /** The tool has changed since the user allowed it, so the next call asks again. */
  changed?: boolean;
}

export interface ToolList {
  tools: ToolInfo[];
}

/** Figures of a tool. */
export interface ToolMetrics {
  tool: string;
  calls: number;
  errors: number;
  p50Ms: number;
  p95Ms: number;
  p99Ms: number;
}

/** The outcome of a tool call. */
export interface ToolResult {
  callId: CallId;
  /** As the server sent it. */
  content: Content[];
  structuredContent?: unknown;
  /** The tool itself reported an error. */
  isError: boolean;
  durationMs: number;
  /** The level or answer that allowed the call. */
  decision: string;
  server: ServerName;
  tool: string;
}

/** A tool in the status of its server. */
export interface ToolSummary {
  name: string;
  description: string;
  annotations: Annotations;
}

/** How a server is reached. */
export type Transport = "stdio" | "tcp" | "http" | "sse" | "sdk" | "claudeai-proxy";

/** A place in the arguments of a call that does not match the schema. */
export interface Violation {
  /** A JSON pointer. */
  path: string;
  message: string;
}

/** Every command with its params and its answer. */
export interface Commands {
  /** Lists all servers, or one. */
  "mcp.servers": { params: { server?: ServerName }; answer: ServerList };
  /** Adds a server to the file of a scope. */
  "mcp.server.add": { params: { server: ServerName; config: unknown; scope: FileScope; inputs?: unknown[] }; answer: EditedServer };
  /** Replaces a definition. */
  "mcp.server.update": { params: { server: ServerName; config: unknown; scope: FileScope }; answer: EditedServer };
  /** Removes a server from the file of a scope. */
  "mcp.server.remove": { params: { server: ServerName; scope: FileScope }; answer: EditedFiles };
  /** Moves a server from one scope to another. */
  "mcp.server.move": { params: { server: ServerName; from: FileScope; to: FileScope }; answer: EditedServer };
  /** Enables or disables a server in its file. */
  "mcp.server.enable": { params: { server: ServerName; enabled: boolean; scope?: FileScope }; answer: EditedServer };
  /** Starts a server, or a definition, lists what it offers, and stops it again. */
  "mcp.server.test": { params: { server?: ServerName; config?: unknown }; answer: TestReport };
  /** Starts one server or all of them. */
  "mcp.server.start": { params: { server?: ServerName; all?: boolean }; answer: ServerList };
  /** Stops one server or all of them. */
  "mcp.server.stop": { params: { server?: ServerName; all?: boolean }; answer: ServerList };
  /** Restarts one server or all of them. */
  "mcp.server.restart": { params: { server?: ServerName; all?: boolean }; answer: ServerList };
  /** Hides or shows the tools of a server. The connection stays. */
  "mcp.server.toggle": { params: { server: ServerName; enabled: boolean }; answer: OneServer };
  /** Trusts a definition, or withdraws that trust. */
  "mcp.server.trust": { params: { server: ServerName; trusted: boolean }; answer: OneServer };
  /** Signs in to a server, or out. */
  "mcp.server.auth": { params: { server: ServerName; signOut?: boolean }; answer: OneServer };
  /** Reads the newest lines of the log of a server. */
  "mcp.server.logs": { params: { server: ServerName; limit?: number }; answer: LogLines };
  /** Replaces all servers of the session scope. */
  "mcp.servers.set": { params: { servers: Record<string, unknown> }; answer: SessionChange };
  /** Lists the tools of all servers, or of one. */
  "mcp.tools": { params: { server?: ServerName; all?: boolean }; answer: ToolList };
  /** Calls a tool. */
  "mcp.tool.call": { params: { tool: string; arguments?: Record<string, unknown>; decision?: Decision; requester?: Requester; workflow?: string; timeoutMs?: number }; answer: ToolResult };
  /** Sets the level of a tool, or of all that match a glob. */
  "mcp.tool.policy": { params: { server: ServerName; tool: string; level?: Level; scope: FileScope }; answer: EditedTools };
  /** Explains the levels of tools. Nothing is called. */
  "mcp.policies": { params: { server?: ServerName; tool?: string; arguments?: Record<string, unknown> }; answer: PolicyList };
  /** Lists resources and resource templates. */
  "mcp.resources": { params: { server?: ServerName }; answer: ResourceList };
  /** Reads a resource. */
  "mcp.resource.read": { params: { server: ServerName; uri: string; subscribe?: boolean }; answer: ReadResource };
  /** Lists prompts. */
  "mcp.prompts": { params: { server?: ServerName }; answer: PromptList };
  /** Gets a prompt with its arguments filled in. */
  "mcp.prompt.get": { params: { server: ServerName; name: string; arguments?: Record<string, unknown> }; answer: Prompt };
  /** Completes an argument, as MCP's `completion/complete` does. */
  "mcp.complete": { params: { server: ServerName; ref: unknown; argument: unknown; context?: unknown }; answer: Completion };
  /** Lists the questions that wait for the user. */
  "mcp.approvals": { params: Record<string, unknown>; answer: ApprovalList };
  /** Answers a question. The first answer counts. */
  "mcp.approval.resolve": { params: { id: string; decision: string; note?: string; content?: unknown }; answer: Done };
  /** Lists the answers of the user that still apply. */
  "mcp.grants": { params: Record<string, unknown>; answer: GrantList };
  /** Revokes one grant or all of them. */
  "mcp.grant.revoke": { params: { id?: string; all?: boolean }; answer: Revoked };
  /** Lists the config files. */
  "mcp.config": { params: Record<string, unknown>; answer: ConfigFiles };
  /** Reads all config files again. */
  "mcp.config.reload": { params: Record<string, unknown>; answer: Reload };
  /** Imports servers from the files of another program. */
  "mcp.config.import": { params: { from: Dialect; path?: string; scope: FileScope; dryRun?: boolean }; answer: Imported };
  /** Writes servers in the format of another program. */
  "mcp.config.export": { params: { to: Dialect; servers?: ServerName[]; path?: string }; answer: Exported };
  /** Lists definitions to start from. */
  "mcp.templates": { params: Record<string, unknown>; answer: TemplateList };
  /** Lists calls, newest first. */
  "mcp.calls": { params: { server?: ServerName; tool?: string; workflow?: string; since?: Timestamp; failed?: boolean; limit?: number }; answer: CallList };
  /** Reports figures of servers and tools. */
  "mcp.metrics": { params: { server?: ServerName }; answer: MetricsList };
  /** Checks this machine and the configuration. */
  "mcp.doctor": { params: Record<string, unknown>; answer: CheckList };
  /** Runs an entry of `actions`. Without `action`, the user is asked which tool gets the selection. */
  "mcp.action.run": { params: { action?: string; uri: string; range: unknown }; answer: ToolResult };
  /** Applies edits that a code action or a lens offered. */
  "mcp.edit.apply": { params: { uri: string; version?: number; edits: unknown; label?: string }; answer: Done };
  /** Moves a secret from an open config file to the keyring. */
  "mcp.secret.keep": { params: { uri: string; range: unknown }; answer: KeptSecret };
  /** Inserts a template into an open config file. Without `template`, the user is asked which. */
  "mcp.template.insert": { params: { uri: string; template?: string }; answer: InsertedServer };
}

/** Every notification with its params. */
export interface Notifications {
  /** A server has changed, or is new. */
  "mcp/serverChanged": { params: { server: ServerStatus } };
  /** A server is gone. */
  "mcp/serverRemoved": { params: { name: ServerName } };
  /** The tools of a server, or their levels, have changed. */
  "mcp/toolsChanged": { params: { server: ServerName; tools: number } };
  /** All questions that wait for the user now. */
  "mcp/approvalsChanged": { params: { approvals: Approval[] } };
  /** Config files were read again. */
  "mcp/configReloaded": { params: Reload };
  /** A call has ended. Without `arguments` and `result`. */
  "mcp/callFinished": { params: Call };
  /** A line of a server's log. */
  "mcp/log": { params: { server: ServerName; level: string; text: string; time: Timestamp } };
  /** A resource has changed that the editor reads with `subscribe`. */
  "mcp/resourceUpdated": { params: { server: ServerName; uri: string } };
  /** From the editor: whether it trusts the workspace. */
  "mcp/workspaceTrust": { params: { trusted: boolean } };
}

/** Every request of our own with its params and its answer. */
export interface Requests {
  /** In both directions: a message from or to a server inside the editor. */
  "mcp/sdk/message": { params: { server: string; message: unknown }; answer: Done };
  /** From the editor: a server inside it has ended. */
  "mcp/sdk/close": { params: { server: string }; answer: Done };
  /** To the editor: a server wants to use its model. The answer is the `CreateMessageResult` of MCP. */
  "mcp/sample": { params: { server: ServerName; params: unknown }; answer: unknown };
}
