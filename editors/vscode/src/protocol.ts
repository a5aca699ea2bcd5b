/** The types of the protocol between the sidecar and its editors, see `docs/protocol.md`. */

export type Status = "pending" | "connected" | "failed" | "needs-auth" | "disabled" | "stopped";
export type Level =
  | "disable"
  | "deny"
  | "require-approval"
  | "allow-once"
  | "allow-session"
  | "allow-project"
  | "allow-always";
export type Scope = "managed" | "session" | "local" | "project" | "user" | "claudeai";

/** From the most to the least restrictive. */
export const LEVELS: readonly Level[] = [
  "disable",
  "deny",
  "require-approval",
  "allow-once",
  "allow-session",
  "allow-project",
  "allow-always",
];

export interface Annotations {
  readOnly?: boolean;
  destructive?: boolean;
  idempotent?: boolean;
  openWorld?: boolean;
}

export interface ServerStatus {
  name: string;
  status: Status;
  reason?: string;
  enabled: boolean;
  transport: string;
  scope: Scope;
  file?: string;
  /** Zero-based. */
  line?: number;
  hides: { scope: Scope; file?: string }[];
  error?: string;
  needsTrust: boolean;
  trustDiff?: string;
  serverInfo?: { name: string; version: string };
  protocolVersion?: string;
  instructions?: string;
  capabilities: string[];
  toolCount: number;
  resourceCount: number;
  promptCount: number;
  tools: { name: string; description: string; annotations: Annotations }[];
  pid?: number;
  startedAt?: string;
  latencyMs?: number;
  restarts: number;
  warnings: string[];
  config: Record<string, unknown>;
}

/** The part of JSON Schema that forms support. */
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
  password?: boolean;
}

export interface ToolInfo {
  name: string;
  server: string;
  tool: string;
  title?: string;
  description: string;
  inputSchema: Schema;
  outputSchema?: Schema;
  annotations: Annotations;
  level: Level;
  source: string;
  changed?: boolean;
}

export interface ResourceInfo {
  server: string;
  uri?: string;
  uriTemplate?: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
}

export interface ResourceContents {
  uri: string;
  mimeType?: string;
  text?: string;
  blob?: string;
}

export interface PromptInfo {
  server: string;
  name: string;
  title?: string;
  description?: string;
  arguments?: { name: string; description?: string; required?: boolean }[];
}

/** One block of a tool result or a prompt message. */
export interface Content {
  type: string;
  text?: string;
  data?: string;
  mimeType?: string;
  uri?: string;
  name?: string;
  title?: string;
  description?: string;
  resource?: ResourceContents;
}

export interface ToolResult {
  callId: string;
  content: Content[];
  structuredContent?: unknown;
  isError: boolean;
  durationMs: number;
  decision: string;
  server: string;
  tool: string;
}

export interface Requester {
  kind: "user" | "plugin" | "agent";
  name?: string;
}

export interface Approval {
  id: string;
  kind: "tool" | "trust" | "elicitation" | "input";
  server: string;
  tool?: string;
  arguments?: Record<string, unknown>;
  title: string;
  detail: string;
  annotations?: Annotations;
  requester: Requester;
  options: string[];
  diff?: string;
  change?: { file: string; path: string; isNew: boolean; after: string; diff: string };
  schema?: Schema;
  url?: string;
  createdAt: string;
  expiresAt: string;
}

export interface Grant {
  id: string;
  server: string;
  tool: string;
  level: Level;
  scope: string;
  since: string;
}

export interface Call {
  callId: string;
  time: string;
  server: string;
  tool: string;
  requester: Requester;
  workflow?: string;
  decision: string;
  decidedBy: string;
  success: boolean;
  error?: string;
  durationMs: number;
  arguments?: unknown;
  result?: { content?: Content[]; structuredContent?: unknown; isError?: boolean };
}

export interface Reload {
  added: string[];
  removed: string[];
  changed: string[];
  policyOnly: string[];
  unchanged: number;
  errors: Record<string, unknown[]>;
}

export interface ConfigFile {
  path: string;
  scope: Scope;
  exists: boolean;
  valid: boolean;
  servers: string[];
}

export interface LogLine {
  time: string;
  source: "stderr" | "server" | "sidecar";
  level: string;
  text: string;
}

/** The `data` of an error response. */
export interface FailureData {
  kind: string;
  server?: string;
  tool?: string;
  detail?: { path: string; message: string }[];
}
