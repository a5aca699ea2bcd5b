// Generated from src/protocol by `make generate`. Do not edit.

/** Something that can be done with a server now. */
export interface Action {
  kind: ActionKind;
  title: string;
  /** The command to send. */
  command: string;
  arguments: Record<string, unknown>;
  /** It loses something that no other action restores: ask first. */
  destructive: boolean;
}

/** An entry of the menu for a file. */
export interface ActionEntry {
  title: string;
  /** The id for `mcp.action.run`. Without it, the user is asked which tool gets the selection. */
  action?: string;
  /** Whether the editor may announce it, for example with a light bulb. Otherwise it is offered only on request. */
  automatic: boolean;
}

/** What an action does, for icons and keys. */
export type ActionKind = "trust" | "sign-in" | "start" | "stop" | "restart" | "refresh" | "enable" | "show-tools" | "test" | "show-log" | "hide-tools" | "sign-out" | "revoke-trust" | "disable" | "move" | "remove";

export interface ActionList {
  actions: ActionEntry[];
}

/** A call of an agent that has not ended. */
export interface AgentCall {
  callId: CallId;
  server: ServerName;
  tool: string;
  since: Timestamp;
  /** The id of the question that it waits for. */
  question?: string;
}

/** What agents of one name did. */
export interface AgentFigures {
  calls: number;
  /** Calls that a rule or the user refused. */
  denied: number;
  /** The estimated tokens of all results. */
  tokens: number;
}

/** The level of a tool for one agent. */
export interface AgentLevel {
  agent: string;
  level: Level;
  source: string;
}

/** The agents that are connected. */
export interface AgentList {
  /** In the order in which they connected. */
  agents: AgentStatus[];
  /** The sets of tools in `config.toml`. */
  sets: string[];
}

/** An agent that is connected. */
export interface AgentStatus {
  /** Names this connection in commands. */
  id: string;
  /** The name that it reports, or that its user chose. Empty until it is known. */
  name: string;
  /** The workspace or worktree that it works in. */
  folder: string;
  since: Timestamp;
  /** The set of tools that it is limited to. */
  set?: string;
  /** Why it has no tools, if its set is unknown. */
  problem?: string;
  /** Its calls wait until the user resumes it. */
  paused: boolean;
  /** The state in a few words: `idle`, `runs git/log`, `waits for you: git/push`, `paused`. */
  doing: string;
  /** Its calls that have not ended, oldest first. */
  calls: AgentCall[];
  /** What agents of this name did in this workspace in the last 24 hours. */
  today: AgentFigures;
}

/** What a server claims about a tool. */
export interface Annotations {
  readOnly?: boolean;
  destructive?: boolean;
  idempotent?: boolean;
  openWorld?: boolean;
}

/** What the user answered a question in. */
export type AnswerPlace = "editor" | "shell" | "agent";

/** Where the user answered a question. */
export interface AnsweredIn {
  place: AnswerPlace;
  /** The name of the editor or agent. */
  name?: string;
  /** The process of the editor or shell. */
  pid?: number;
}

/** A question that is waiting for the user. */
export interface Approval {
  id: string;
  kind: ApprovalKind;
  /** Set if the question is not about this workspace but about another folder of the repository, such as a worktree. `title` and `detail` say so, too. */
  folder?: string;
  server: ServerName;
  tool?: string;
  /** Instead of `tool`: the resource to read or to watch. */
  resource?: ResourceQuestion;
  /** Instead of `tool`: the name of a prompt. */
  prompt?: string;
  /** Instead of `tool`: an agent's own tool, such as its shell. `server` is the name of the agent. */
  agentTool?: string;
  /** In full, as they will be sent. */
  arguments?: Record<string, unknown>;
  /** Instead of `arguments` that are too large for a list. `mcp.approvals` with the `id` of the question returns them. */
  largeArguments?: LargeArguments;
  title: string;
  /** What it is about in one line, for a list: a server with its command or URL, a tool with its arguments. It may be truncated, so show the rest before the user decides. */
  summary: string;
  detail: string;
  annotations?: Annotations;
  requester: Requester;
  /** The decisions of `answers`. */
  options: string[];
  /** The possible answers, in the order to show them. */
  answers: ApprovalAnswer[];
  /** What changed since the user last agreed. */
  diff?: string;
  /** What the call would change in a file of the workspace. */
  change?: FileChange;
  /** What to fill in before accepting. */
  form?: Form;
  /** The schema of the form. */
  schema?: Schema;
  /** The page to open. */
  url?: string;
  createdAt: Timestamp;
  expiresAt: Timestamp;
}

/** One way to answer a question. */
export interface ApprovalAnswer {
  /** A decision, or `accept`, `decline` or `cancel`. */
  decision: string;
  label: string;
  /** The label if the user selects some questions of a group. */
  selectedLabel?: string;
  /** It lets something happen. */
  grants: boolean;
  /** It applies to later questions, too. Let the user confirm it, or make it harder to choose. */
  lasts: boolean;
  /** What has changed afterwards, as a sentence. */
  effect?: string;
  /** The same without what the question has just said, for one line. */
  shortEffect?: string;
  /** How to undo it. */
  undo?: Remedy;
}

/** Questions that can be answered together: trust in the servers of one file, or the calls of one agent. */
export interface ApprovalGroup {
  /** Stays the same while questions are added and removed. */
  id: string;
  /** `tool` or `trust`. */
  kind: ApprovalKind;
  title: string;
  /** The ids of its questions, two or more, in the order to show them. Answer them with `ids` of `mcp.approval.resolve`: all of them, or those that the user selects. */
  ids: string[];
  /** The answers for all of them, in the order to show them. The first one grants nothing. */
  answers: ApprovalAnswer[];
}

/** What kind of answer a question takes. */
export type ApprovalKind = "trust" | "elicitation" | "input" | "tool";

export interface ApprovalList {
  /** Oldest first. */
  approvals: Approval[];
  groups: ApprovalGroup[];
}

/** How a question ended. */
export type ApprovalOutcome = "answered" | "dismissed" | "expired" | "withdrawn" | "unasked";

/** What agents did while no editor was open. */
export interface AwayReport {
  /** When the last editor closed. Absent if none was open before. */
  since?: Timestamp;
  /** When the next one connected. Absent if there is still none. */
  until?: Timestamp;
  /** All of it in a sentence. Absent if agents did nothing. */
  summary?: string;
  /** The name of the agent → what it did. */
  agents: Record<string, AgentFigures>;
  /** Calls that were refused because there was no one to ask, newest first. `mcp.away.allow` allows one for next time. */
  refused: Call[];
}

/** An open file. */
export interface BufferText {
  /** Its text, if it has unsaved changes. */
  text?: string;
}

/** A bundle that the user has seen. */
export interface BundleFile {
  path: string;
  /** Another file at this path is not unpacked. */
  sha256: string;
}

/** An entry of the call log. */
export interface Call {
  callId: CallId;
  /** The workspace in which the call was made, if it is another worktree of the repository. */
  folder?: string;
  time: Timestamp;
  kind: CallKind;
  server: ServerName;
  /** The tool, or `resource:URI` or `prompt:NAME`, as rules name it. */
  tool: string;
  requester: Requester;
  workflow?: string;
  /** The level or answer that allowed or refused the call; `invalid` if it could not be made as requested. */
  decision: string;
  /** Who decided: a rule, a grant, or the user and the editor, shell or agent in which they answered. */
  decidedBy: string;
  success: boolean;
  error?: string;
  /** Without the time that the call waited for the user. */
  durationMs: number;
  /** How long the call waited for the user. */
  waitedMs: number;
  /** The size of the whole result. */
  resultBytes?: number;
  /** The estimated tokens of the whole result. */
  resultTokens?: number;
  /** Masked and truncated. Absent in notifications. */
  arguments?: unknown;
  /** The arguments that were requested, if the user changed them. Masked and truncated. Absent in notifications. */
  requestedArguments?: unknown;
  /** Masked and truncated. Absent in notifications. */
  result?: RecordedResult;
}

/** Identifies a call in the log and in notifications. */
export type CallId = string;

/** What a call requests from a server. Only denied completions are recorded. */
export type CallKind = "tool" | "resource" | "subscription" | "prompt" | "completion" | "hook";

export interface CallList {
  /** Newest first. */
  calls: Call[];
}

/** Whether the call log is as mcp-sidecar wrote it. */
export interface CallLogCheck {
  whole: boolean;
  /** The outcome as sentences: which record breaks the chain, if one does. */
  message: string;
  /** How many records were compared with the chain. */
  checked: number;
  /** How many records were written before the chain began. */
  unchecked: number;
  /** The newest link of the chain. It changes if any record is changed, so a copy elsewhere proves that none was. */
  head?: string;
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

/** What was entered in a form. */
export interface CheckedForm {
  /** As they would be sent. */
  arguments: Record<string, unknown>;
  /** What keeps them from being sent. */
  problems: Violation[];
  /** What the user should know before they are sent. */
  warnings?: Violation[];
  /** For a new server: what it runs or connects to, one `word value` per line. */
  preview?: string[];
}

/** A value to choose. */
export interface Choice {
  value: unknown;
  title: string;
}

/** A question that has ended. */
export interface ClosedApproval {
  id: string;
  title: string;
  outcome: ApprovalOutcome;
  /** The answer. */
  decision?: string;
  /** Where it was answered. */
  by?: AnsweredIn;
  /** How it ended, to show: `“Deny”, by the user in Neovim (process 4242)`. */
  message: string;
}

export interface Completion {
  values: string[];
  hasMore: boolean;
}

/** An error in a config file. */
export interface ConfigError {
  /** Zero-based. */
  line: number;
  message: string;
}

/** A config file. */
export interface ConfigFile {
  path: string;
  scope: Scope;
  exists: boolean;
  /** Whether it can be parsed. If not, the last valid version stays in effect. */
  valid: boolean;
  /** The names of the servers in it. */
  servers: string[];
  /** What is wrong with it: only errors, in the order of the file. */
  errors: ConfigError[];
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

/** The stable name of a kind of diagnostic. */
export type DiagnosticCode = "syntax" | "outside-workspace" | "settings" | "too-deep" | "unreadable" | "wrong-type" | "missing-key" | "unknown-key" | "duplicate-key" | "same-key" | "conflicting-keys" | "type-mismatch" | "unknown-type" | "unused-key" | "ignored-key" | "bad-name" | "name-clash" | "hidden" | "unknown-server" | "only-restricts" | "too-many-servers" | "bad-port" | "bad-duration" | "milliseconds" | "bad-url" | "bad-header" | "bad-variable" | "bad-level" | "bad-condition" | "bad-regex" | "bad-glob" | "bad-tool" | "unknown-result" | "nul" | "invisible-text" | "blocked-address" | "arguments-too-long" | "command-not-found" | "relative-path" | "shell" | "risky-variable" | "unset-variable" | "unknown-expansion" | "unknown-input" | "raw-secret" | "secret-not-referenced" | "plain-http" | "deprecated-sse" | "tcp-host" | "ourselves" | "needs-trust" | "deprecated-spelling" | "secret-to-host" | "other-spelling" | "setting" | "no-file" | "more" | "connection-failed" | "port-closed" | "needs-sign-in" | "awaiting-trust" | "not-trusted" | "awaiting-input" | "sandbox-not-enforced" | "unknown-tool" | "unused-tools";

/** A program whose config files can be imported and exported. */
export type Dialect = "vscode" | "claude" | "claude-desktop" | "cursor" | "windsurf" | "zed" | "cline" | "codex" | "gemini" | "qwen" | "opencode" | "copilot" | "continue" | "goose" | "mcphub";

export const DIALECTS: readonly Dialect[] = ["vscode", "claude", "claude-desktop", "cursor", "windsurf", "zed", "cline", "codex", "gemini", "qwen", "opencode", "copilot", "continue", "goose", "mcphub"];

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
  /** Where the level was set. */
  scope: Scope;
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
  /** The call was not allowed: it requires approval, and there was no one to ask. */
  unasked?: boolean;
  /** What the user can do about it. */
  remedy?: Remedy;
}

/** What kind of failure an error reports. */
export type ErrorKind = "invalid-params" | "invalid-arguments" | "not-found" | "conflict" | "disabled" | "denied" | "needs-trust" | "needs-auth" | "timeout" | "cancelled" | "connection-failed" | "process-failed" | "protocol-error" | "io";

export interface Exported {
  /** A whole file with these servers. */
  text: string;
  /** The language of the file. */
  syntax: FileSyntax;
  /** The file that was written. */
  path?: string;
  /** Server → what could not be exported. */
  notes: Record<string, string[]>;
}

/** A field of a form. */
export interface Field {
  /** The key of its value. */
  name: string;
  title: string;
  help?: string;
  required: boolean;
  kind: FieldKind;
  /** What can be entered, as text: `a whole number, at least 1`. */
  rule: string;
  default?: unknown;
  /** The values to choose from. A field of kind `choices` takes several of them. */
  choices?: Choice[];
  /** The fields of an object. */
  fields?: Field[];
  /** An item of a list. The user can add as many as the rule allows. */
  item?: Field;
}

/** How a value is entered. */
export type FieldKind = "text" | "integer" | "number" | "boolean" | "choice" | "choices" | "object" | "list" | "multiline" | "secret" | "json";

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
  /** The file has unsaved changes in an editor, and `diff` is against these. */
  unsaved: boolean;
}

/** Where a definition is written. */
export type FileScope = "user" | "project" | "local" | "session" | "managed";

/** A language for config files. */
export type FileSyntax = "json" | "toml" | "yaml";

/** A form with its first values. */
export interface FilledForm {
  title: string;
  /** What the last step does. */
  verb: string;
  fields: Field[];
  values: Record<string, unknown>;
  /** The command that takes the `arguments` of the checked form. */
  command: string;
}

/** The fields of a form, required ones first. */
export interface Form {
  fields: Field[];
}

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

/** Arguments that are not part of a list because of their size. */
export interface LargeArguments {
  /** The length of their JSON text. */
  bytes: number;
  /** SHA-256 of that text. */
  digest: string;
}

/** How freely a tool may run, from the most to the least restrictive. */
export type Level = "disable" | "deny" | "require-approval" | "allow-once" | "allow-session" | "allow-project" | "allow-always";

export const LEVELS: readonly Level[] = ["disable", "deny", "require-approval", "allow-once", "allow-session", "allow-project", "allow-always"];

/** Where a level can be set. */
export interface LevelScope {
  scope: Scope;
  /** A choice for the user: `in the project config`. */
  title: string;
}

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
  /** What agents get in their list of tools, by the sections of `config.toml`. The last one is for all other agents. */
  views: ViewCost[];
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

/** A server of the registry. Its publisher wrote the texts. */
export interface RegistryEntry {
  name: string;
  title?: string;
  description: string;
  version: string;
  /** How it can be used: `npm`, `pypi`, `oci`, `nuget`, `mcpb`, `http` or `sse`. */
  packages: string[];
  /** Such as that it is deprecated, or that its name looks like another one. */
  warning?: string;
}

/** What the registry has found. */
export interface RegistryList {
  servers: RegistryEntry[];
  /** What the user should know: an old answer, a long list, or entries that were left out. */
  notes?: string[];
}

/** A server of the registry. */
export interface RegistryServer {
  /** Its name there: `io.github.user/weather`. */
  name: string;
  /** Without it, the newest version. */
  version?: string;
  /** One of its `packages`, if it has several. */
  package?: string;
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

/** What to do about an error or a state. */
export interface Remedy {
  title: string;
  /** The command to send. */
  command: string;
  arguments: Record<string, unknown>;
}

/** Who made a call. */
export interface Requester {
  kind: "user" | "plugin" | "agent";
  name?: string;
}

/** The effect of an answer. */
export interface Resolved {
  /** The ids of the questions that this answered. */
  resolved: string[];
  /** The ids of those that had ended before, for example because they were answered elsewhere. */
  gone: string[];
  /** What has changed for later questions, as a sentence. */
  effect?: string;
  /** The same without what the question has just said, for one line. */
  shortEffect?: string;
  /** How to undo it. */
  undo?: Remedy;
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

/** A resource that a question is about. */
export interface ResourceQuestion {
  /** As the server gets it. Hidden characters are visible. */
  uri: string;
  /** The template that it is an instance of. */
  template?: string;
}

export interface Revoked {
  /** How many grants were revoked. */
  revoked: number;
  /** What to say if this could not be saved. */
  warning?: string;
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

/** A text of an editor, sent with the command that needs it. */
export interface SentDocument {
  /** The language id of the editor. */
  filetype: string;
  version: number;
  text: string;
}

/** A prompt, as its server sent it. */
export interface SentPrompt {
  name: string;
  title?: string;
  description?: string;
  arguments?: PromptArgument[];
}

/** A resource, as its server sent it. */
export interface SentResource {
  /** A template has a `uriTemplate` instead. */
  uri?: string;
  uriTemplate?: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
}

/** A tool, as its server sent it. */
export interface SentTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema?: Schema;
  outputSchema?: Schema;
  annotations?: Record<string, unknown>;
}

/** Shows the form of a server: of a new one, from a template, a command line or a definition, or of one that is in a file. What was entered goes through `mcp.form.check`, and its answer to the command that the form names. */
export interface ServerForm {
  /** The id of a template. */
  template?: string;
  /** A command line or a URL, as the user typed it. */
  commandLine?: string;
  /** A definition, as in a config file. */
  config?: Record<string, unknown>;
  /** A server of the registry. */
  registry?: RegistryServer;
  /** The absolute path of a bundle (`.mcpb`). */
  bundle?: string;
  /** A server that is in a file. */
  server?: ServerName;
}

/** The name and version that a server reports. */
export interface ServerInfo {
  name: string;
  version: string;
}

export interface ServerList {
  servers: ServerStatus[];
  /** Problems of mcp-sidecar itself, for example a state folder that it refuses to use. */
  problems?: string[];
}

/** Figures of a server. */
export interface ServerMetrics {
  server: ServerName;
  startMs?: number;
  discoverMs?: number;
  restarts: number;
  uptimeMs?: number;
  /** The estimated tokens of the definitions of its tools. */
  tokens: number;
  tools: ToolMetrics[];
}

/** The name of a server: letters, digits, `-` and `_`. */
export type ServerName = string;

/** An entry that defines no server, but disables the server of its name or restricts its tools. */
export interface ServerRestriction {
  scope: Scope;
  file?: string;
  /** The zero-based line of its key in that file. */
  line?: number;
  /** Whether it is the entry that disables the server. */
  disables: boolean;
  /** What it does, in a few words: `disables it`, `restricts its tools (2 rules)`. */
  effect: string;
}

/** A server: its definition, its state and what it offers. */
export interface ServerStatus {
  name: ServerName;
  status: Status;
  /** Why a pending server is not connected yet: `starting`, `awaiting-trust`, `awaiting-input`, `retrying in 4 s`. */
  reason?: string;
  /** The state in a few words, for a list of servers. */
  summary: Summary;
  /** The actions that are possible now. Those that the state calls for come first. */
  actions: Action[];
  /** The action that makes it usable again. */
  remedy?: Remedy;
  enabled: boolean;
  transport: Transport;
  /** The command that it runs or the address that it connects to, in one line, as written in the config file. */
  launch: string;
  scope: Scope;
  /** The file that defines it. */
  file?: string;
  /** The zero-based line of its key in that file. */
  line?: number;
  /** Where the levels of its tools can be set. The first one is the default: the file that defines it. */
  levelScopes: LevelScope[];
  /** Definitions of the same name that this one overrides. */
  hides: HiddenDefinition[];
  /** Entries of other files that disable it or restrict its tools, in order of precedence. */
  restrictions: ServerRestriction[];
  /** Why it failed, or what keeps it from starting. */
  error?: string;
  /** The same in one line, without output of the server. */
  cause?: string;
  /** Whether the user has to trust the definition before it starts. */
  needsTrust: boolean;
  /** What changed since the user last trusted the definition. */
  trustDiff?: string;
  /** Names the definition as it is shown, for `mcp.server.trust`. Absent if the definition needs no trust. */
  trustDigest?: string;
  serverInfo?: ServerInfo;
  /** The version of MCP that it uses. */
  protocolVersion?: string;
  instructions?: string;
  capabilities: string[];
  toolCount: number;
  resourceCount: number;
  promptCount: number;
  tools: ToolSummary[];
  /** The estimated tokens of a model's context that the definitions of its tools use. */
  tokens: number;
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

/** The state of a server in a few words. */
export interface Summary {
  text: string;
  tone: Tone;
}

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
  tools: SentTool[];
  resources: SentResource[];
  prompts: SentPrompt[];
  latencyMs: number;
}

/** RFC 3339 in UTC. */
export type Timestamp = string;

/** How good or bad a state is. */
export type Tone = "good" | "busy" | "attention" | "bad" | "muted";

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
  /** Whether it can be called: it is neither disabled nor denied. */
  callable: boolean;
  /** Where the level comes from. */
  source: string;
  /** The tool has changed since the user allowed it, so the next call asks again. */
  changed?: boolean;
  /** The estimated tokens of a model's context that its definition uses. */
  tokens: number;
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
  /** The median time that calls waited for the user, of those that did. */
  waitedMs: number;
  /** The median of the estimated tokens of a result. */
  resultTokens: number;
  /** The estimated tokens of all results. */
  totalResultTokens: number;
  /** The estimated tokens of its definition. Absent if the server does not offer it now. */
  tokens?: number;
}

/** The outcome of a tool call. */
export interface ToolResult {
  callId: CallId;
  /** As the server sent it. */
  content: Content[];
  structuredContent?: unknown;
  /** The tool itself reported an error. */
  isError: boolean;
  /** Without the time that the call waited for the user. */
  durationMs: number;
  /** How long the call waited for the user. */
  waitedMs: number;
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
  /** The estimated tokens of its definition. */
  tokens: number;
}

/** How a server is reached. */
export type Transport = "stdio" | "tcp" | "http" | "sse" | "sdk" | "claudeai-proxy";

/** What a view of `config.toml` shows to its agents, and what that costs. */
export interface ViewCost {
  /** The name of the section `[agents."NAME"]`. Empty for agents without one. */
  agent: string;
  /** How many tools these agents can call. */
  tools: number;
  /** The estimated tokens of the definitions that they get in their list of tools. */
  tokens: number;
  /** They search tools instead of listing them. */
  search?: boolean;
}

/** A place in the arguments of a call that does not match the schema. */
export interface Violation {
  /** A JSON pointer. */
  path: string;
  message: string;
}

/** Every command with its params and its answer. */
export interface Commands {
  /** Lists all servers, or one. */
  "mcp.servers": { params: { server?: ServerName | null }; answer: ServerList };
  /** Adds a server to the file of a scope. */
  "mcp.server.add": { params: { server: ServerName; config?: unknown; commandLine?: string | null; scope: FileScope; inputs?: unknown[] | null; bundle?: BundleFile | null }; answer: EditedServer };
  /** Shows the form of a server: of a new one, from a template, a command line or a definition, or of one that is in a file. What was entered goes through `mcp.form.check`, and its answer to the command that the form names. */
  "mcp.server.form": { params: { template?: string | null; commandLine?: string | null; config?: Record<string, unknown> | null; registry?: RegistryServer | null; bundle?: string | null; server?: ServerName | null }; answer: FilledForm };
  /** Replaces a definition. */
  "mcp.server.update": { params: { server: ServerName; config: unknown; scope: Scope }; answer: EditedServer };
  /** Removes a server from the file of a scope. */
  "mcp.server.remove": { params: { server: ServerName; scope: Scope }; answer: EditedFiles };
  /** Moves a server from one scope to another, or to another file of the same scope. */
  "mcp.server.move": { params: { server: ServerName; from: Scope; to: FileScope; file?: string | null }; answer: EditedServer };
  /** Enables or disables a server. In a scope that does not define it, an entry without a definition disables it. */
  "mcp.server.enable": { params: { server: ServerName; enabled: boolean; scope?: Scope | null }; answer: EditedServer };
  /** Sets how long a call may take without progress, in the file that defines the server. */
  "mcp.server.timeout": { params: { server: ServerName; timeout: number }; answer: EditedServer };
  /** Starts a server, or a definition, lists what it offers, and stops it again. */
  "mcp.server.test": { params: { server?: ServerName | null; config?: unknown }; answer: TestReport };
  /** Starts one server or all of them. */
  "mcp.server.start": { params: { server?: ServerName | null; all?: boolean }; answer: ServerList };
  /** Stops one server or all of them. */
  "mcp.server.stop": { params: { server?: ServerName | null; all?: boolean }; answer: ServerList };
  /** Restarts one server or all of them. */
  "mcp.server.restart": { params: { server?: ServerName | null; all?: boolean }; answer: ServerList };
  /** Asks one running server, or all of them, for its tools, resources and prompts again. */
  "mcp.server.refresh": { params: { server?: ServerName | null; all?: boolean }; answer: ServerList };
  /** Hides or shows the tools of a server. The connection stays. */
  "mcp.server.toggle": { params: { server: ServerName; enabled: boolean }; answer: OneServer };
  /** Trusts a definition, withdraws that trust, or asks the user about it. */
  "mcp.server.trust": { params: { server: ServerName; trusted?: boolean | null; digest?: string | null; ask?: boolean }; answer: OneServer };
  /** Signs in to a server, or out. */
  "mcp.server.auth": { params: { server: ServerName; signOut?: boolean }; answer: OneServer };
  /** Ends a sign-in whose browser is on another machine: passes on the address of the page that it cannot load. */
  "mcp.server.auth.paste": { params: { server: ServerName; address: string }; answer: Done };
  /** Reads the newest lines of the log of a server. */
  "mcp.server.logs": { params: { server: ServerName; limit?: number | null }; answer: LogLines };
  /** Replaces all servers of the session scope. */
  "mcp.servers.set": { params: { servers: Record<string, unknown> }; answer: SessionChange };
  /** Lists the tools of all servers, or of one. */
  "mcp.tools": { params: { server?: ServerName | null; all?: boolean }; answer: ToolList };
  /** Calls a tool. */
  "mcp.tool.call": { params: { tool: string; arguments?: Record<string, unknown> | null; decision?: Decision | null; requester?: Requester | null; workflow?: string | null; timeoutMs?: number | null }; answer: ToolResult };
  /** Calls a tool after its form was filled in, for a code action. An editor with its own form handles this command itself; without one, only a tool that needs no arguments can be called. */
  "mcp.tool.open": { params: { tool: string }; answer: ToolResult };
  /** Shows the fields of a tool's arguments. */
  "mcp.tool.form": { params: { tool: string }; answer: Form };
  /** Reads and checks what was entered so far in the form of a tool, a question or a server. Nothing is sent to a server. */
  "mcp.form.check": { params: { tool?: string | null; approval?: string | null; server?: ServerForm | null; values: Record<string, unknown> }; answer: CheckedForm };
  /** Sets the level of a tool, or of all that match a glob. */
  "mcp.tool.policy": { params: { server: ServerName; tool: string; level?: Level | null; scope?: Scope | null }; answer: EditedTools };
  /** Explains the levels of tools. Nothing is called. */
  "mcp.policies": { params: { server?: ServerName | null; tool?: string | null; arguments?: Record<string, unknown> | null }; answer: PolicyList };
  /** Lists resources and resource templates. */
  "mcp.resources": { params: { server?: ServerName | null }; answer: ResourceList };
  /** Reads a resource. */
  "mcp.resource.read": { params: { server: ServerName; uri: string; subscribe?: boolean | null; requester?: Requester | null }; answer: ReadResource };
  /** Lists prompts. */
  "mcp.prompts": { params: { server?: ServerName | null }; answer: PromptList };
  /** Gets a prompt with its arguments filled in. */
  "mcp.prompt.get": { params: { server: ServerName; name: string; arguments?: Record<string, unknown> | null; requester?: Requester | null }; answer: Prompt };
  /** Completes an argument, as MCP's `completion/complete` does. */
  "mcp.complete": { params: { server: ServerName; ref: unknown; argument: unknown; context?: unknown }; answer: Completion };
  /** Lists the questions that are waiting for the user, or one of them in full. */
  "mcp.approvals": { params: { id?: string | null }; answer: ApprovalList };
  /** Shows a question again, for a code action. An editor with its own prompt handles this command itself. */
  "mcp.approval.show": { params: { id: string }; answer: Done };
  /** Answers a question, or several in the same way. The first answer counts. */
  "mcp.approval.resolve": { params: { id?: string | null; ids?: string[] | null; decision: string; note?: string | null; content?: unknown; arguments?: Record<string, unknown> | null }; answer: Resolved };
  /** Lists the answers of the user that still apply. */
  "mcp.grants": { params: Record<string, unknown>; answer: GrantList };
  /** Revokes one grant or all of them. */
  "mcp.grant.revoke": { params: { id?: string | null; all?: boolean }; answer: Revoked };
  /** Lists the config files. */
  "mcp.config": { params: Record<string, unknown>; answer: ConfigFiles };
  /** Reads all config files again. */
  "mcp.config.reload": { params: Record<string, unknown>; answer: Reload };
  /** Imports servers from the files of another program. */
  "mcp.config.import": { params: { from: Dialect; path?: string | null; scope: FileScope; dryRun?: boolean }; answer: Imported };
  /** Writes servers in the format of another program. */
  "mcp.config.export": { params: { to: Dialect; servers?: ServerName[] | null; path?: string | null }; answer: Exported };
  /** Lists definitions to start from. */
  "mcp.templates": { params: Record<string, unknown>; answer: TemplateList };
  /** Searches the registry. */
  "mcp.registry.search": { params: { query: string }; answer: RegistryList };
  /** Lists calls, newest first. */
  "mcp.calls": { params: { server?: ServerName | null; tool?: string | null; workflow?: string | null; since?: Timestamp | null; failed?: boolean; denied?: boolean; agent?: string | null; text?: string | null; limit?: number | null }; answer: CallList };
  /** Checks whether another program has changed the call log. */
  "mcp.calls.verify": { params: Record<string, unknown>; answer: CallLogCheck };
  /** Reports figures of servers and tools. */
  "mcp.metrics": { params: { server?: ServerName | null }; answer: MetricsList };
  /** Reads the whole result of a call that an agent got only in part. It is kept for a while. */
  "mcp.call.result": { params: { callId: CallId }; answer: ToolResult };
  /** Lists the agents that are connected, and what they are doing. */
  "mcp.agents": { params: Record<string, unknown>; answer: AgentList };
  /** Limits running agents to a set of tools of `config.toml`. */
  "mcp.agent.set": { params: { set?: string | null; agent?: string | null }; answer: AgentList };
  /** Pauses or resumes an agent. The calls of a paused agent wait. */
  "mcp.agent.pause": { params: { agent: string; paused: boolean }; answer: AgentList };
  /** Disconnects an agent. Its calls end. */
  "mcp.agent.disconnect": { params: { agent: string }; answer: AgentList };
  /** Reports what agents did while no editor was open. */
  "mcp.away": { params: Record<string, unknown>; answer: AwayReport };
  /** Allows a call that was refused because there was no one to ask: the same call of the same agent, once. */
  "mcp.away.allow": { params: { callId: CallId }; answer: Done };
  /** Checks this machine and the configuration. */
  "mcp.doctor": { params: Record<string, unknown>; answer: CheckList };
  /** Lists the entries of `actions` for files of a type. They change only when a config file or a server does. */
  "mcp.actions": { params: { filetype: string }; answer: ActionList };
  /** Runs an entry of `actions`. Without `action`, the user is asked which tool gets the selection. */
  "mcp.action.run": { params: { action?: string | null; uri: string; range: unknown; document?: SentDocument | null }; answer: ToolResult };
  /** Applies edits that a code action or a lens offered. */
  "mcp.edit.apply": { params: { uri: string; version?: number | null; edits: unknown; label?: string | null }; answer: Done };
  /** Moves a secret from an open config file to the keyring. */
  "mcp.secret.keep": { params: { uri: string; range: unknown }; answer: KeptSecret };
  /** Inserts a template into an open config file. Without `template`, the user is asked which. */
  "mcp.template.insert": { params: { uri: string; template?: string | null }; answer: InsertedServer };
  /** Asks the user for the level of a tool, or of all tools of a server, in an open config file, and sets it. */
  "mcp.level.choose": { params: { uri: string; range: unknown }; answer: EditedFiles };
}

/** Every notification with its params. */
export interface Notifications {
  /** A server has changed, or is new. */
  "mcp/serverChanged": { params: { server: ServerStatus } };
  /** A server is gone. */
  "mcp/serverRemoved": { params: { name: ServerName } };
  /** The tools of a server, or their levels, have changed. */
  "mcp/toolsChanged": { params: { server: ServerName; tools: number } };
  /** All questions that are waiting for the user now, and how others ended. */
  "mcp/approvalsChanged": { params: { approvals: Approval[]; groups: ApprovalGroup[]; closed: ClosedApproval[] } };
  /** Config files were read again. */
  "mcp/configReloaded": { params: Reload };
  /** A call has ended. Without `arguments` and `result`. */
  "mcp/callFinished": { params: Call };
  /** A line of a server's log. */
  "mcp/log": { params: { server: ServerName; level: string; text: string; time: Timestamp } };
  /** Agents have connected or disconnected, or do something else now. `mcp.agents` lists them. */
  "mcp/agentsChanged": { params: { agents: number } };
  /** A resource has changed that the editor reads with `subscribe`. */
  "mcp/resourceUpdated": { params: { server: ServerName; uri: string } };
  /** The next `window/showDocument` with this page is the sign-in to this server. */
  "mcp/signInPage": { params: { server: ServerName; page: string } };
  /** From the editor: whether it trusts the workspace. */
  "mcp/workspaceTrust": { params: { trusted: boolean } };
}

/** Each of our own requests with its params and its answer. */
export interface Requests {
  /** In both directions: a message from or to a server inside the editor. */
  "mcp/sdk/message": { params: { server: string; message: unknown }; answer: Done };
  /** From the editor: a server inside it has ended. */
  "mcp/sdk/close": { params: { server: string }; answer: Done };
  /** To the editor: a server wants to use its model. The answer is the `CreateMessageResult` of MCP. */
  "mcp/sample": { params: { server: ServerName; params: unknown }; answer: unknown };
  /** To the editor: what it has open of a file that a call would change. */
  "mcp/buffer": { params: { file: string }; answer: BufferText };
}
