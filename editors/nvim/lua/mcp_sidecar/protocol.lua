---@meta
-- Generated from src/protocol by `make generate`. Do not edit.

---The level of a tool for one agent.
---@class mcp_sidecar.AgentLevel
---@field agent string
---@field level mcp_sidecar.Level
---@field source string

---What a server claims about a tool.
---@class mcp_sidecar.Annotations
---@field readOnly? boolean
---@field destructive? boolean
---@field idempotent? boolean
---@field openWorld? boolean

---A question that waits for the user.
---@class mcp_sidecar.Approval
---@field id string
---@field kind mcp_sidecar.ApprovalKind
---@field server mcp_sidecar.ServerName
---@field tool? string
---@field arguments? table<string, any> In full, as they will be sent.
---@field title string
---@field detail string
---@field annotations? mcp_sidecar.Annotations
---@field requester mcp_sidecar.Requester
---@field options string[] The possible answers: decisions, or `accept`, `decline` and `cancel`.
---@field diff? string What changed since the user last agreed.
---@field change? mcp_sidecar.FileChange What the call would change in a file of the workspace.
---@field schema? mcp_sidecar.Schema The form to fill in.
---@field url? string The page to open.
---@field createdAt mcp_sidecar.Timestamp
---@field expiresAt mcp_sidecar.Timestamp

---What kind of answer a question takes.
---@alias mcp_sidecar.ApprovalKind "tool"|"trust"|"elicitation"|"input"

---@class mcp_sidecar.ApprovalList
---@field approvals mcp_sidecar.Approval[] Oldest first.

---An entry of the call log.
---@class mcp_sidecar.Call
---@field callId mcp_sidecar.CallId
---@field time mcp_sidecar.Timestamp
---@field server mcp_sidecar.ServerName
---@field tool string
---@field requester mcp_sidecar.Requester
---@field workflow? string
---@field decision string The level or answer that allowed or refused the call.
---@field decidedBy string Where the decision came from: a rule, a grant, `user`, `timeout`, ….
---@field success boolean
---@field error? string
---@field durationMs number
---@field arguments? any Masked and cut. Absent in notifications.
---@field result? mcp_sidecar.RecordedResult Masked and cut. Absent in notifications.

---Identifies a call in the log and in notifications.
---@alias mcp_sidecar.CallId string

---@class mcp_sidecar.CallList
---@field calls mcp_sidecar.Call[] Newest first.

---A check of `mcp.doctor`.
---@class mcp_sidecar.Check
---@field name string
---@field ok boolean
---@field message string
---@field fix? string What to do about it.

---@class mcp_sidecar.CheckList
---@field checks mcp_sidecar.Check[]

---@class mcp_sidecar.Completion
---@field values any[]
---@field hasMore boolean

---A config file.
---@class mcp_sidecar.ConfigFile
---@field path string
---@field scope mcp_sidecar.Scope
---@field exists boolean
---@field valid boolean Whether it can be parsed. If not, the last good version stays in force.
---@field servers string[] The names of the servers in it.

---@class mcp_sidecar.ConfigFiles
---@field files mcp_sidecar.ConfigFile[]

---A content block of MCP. Servers may send other fields, too.
---@class mcp_sidecar.Content
---@field type string
---@field text? string
---@field data? string Base64.
---@field mimeType? string
---@field uri? string
---@field name? string
---@field title? string
---@field description? string
---@field resource? mcp_sidecar.ResourceContents

---An answer to a question about a tool call.
---@alias mcp_sidecar.Decision "allow-once"|"allow-session"|"allow-project"|"allow-always"|"deny"|"disable"

---A program whose config files can be imported and exported.
---@alias mcp_sidecar.Dialect "vscode"|"claude"|"claude-desktop"|"cursor"|"windsurf"|"zed"|"cline"|"codex"|"mcphub"

---Nothing but success.
---@alias mcp_sidecar.Done table<string, any>

---@class mcp_sidecar.EditedFiles
---@field unsaved? string[] Files that were changed in the editor and take effect when they are saved.

---A server after its file was changed.
---@class mcp_sidecar.EditedServer
---@field server mcp_sidecar.ServerStatus
---@field unsaved? string[] Files that were changed in the editor and take effect when they are saved.

---The tools that a new level applies to.
---@class mcp_sidecar.EditedTools
---@field tools mcp_sidecar.ToolInfo[]
---@field unsaved? string[] Files that were changed in the editor and take effect when they are saved.

---The `data` of an error response.
---@class mcp_sidecar.ErrorData
---@field kind mcp_sidecar.ErrorKind
---@field server? string
---@field tool? string
---@field detail? mcp_sidecar.Violation[] What is wrong with the arguments of a call.

---What kind of failure an error reports.
---@alias mcp_sidecar.ErrorKind "invalid-params"|"invalid-arguments"|"not-found"|"conflict"|"disabled"|"denied"|"needs-trust"|"needs-auth"|"timeout"|"cancelled"|"connection-failed"|"process-failed"|"protocol-error"|"io"

---@class mcp_sidecar.Exported
---@field text string A whole file with these servers.
---@field path? string The file that was written.
---@field notes table<string, string[]> Server → what could not be carried over.

---What a call would change in a file.
---@class mcp_sidecar.FileChange
---@field file string The absolute path.
---@field path string The path as the call names it.
---@field isNew boolean
---@field after string The text after the call.
---@field diff string

---Where a definition is written.
---@alias mcp_sidecar.FileScope "user"|"project"|"local"|"session"|"managed"

---An answer of the user that still applies.
---@class mcp_sidecar.Grant
---@field id string
---@field server mcp_sidecar.ServerName
---@field tool string
---@field level mcp_sidecar.Level
---@field scope string `session`, `project` or `always`.
---@field since mcp_sidecar.Timestamp

---@class mcp_sidecar.GrantList
---@field grants mcp_sidecar.Grant[]

---A definition that another one overrides.
---@class mcp_sidecar.HiddenDefinition
---@field scope mcp_sidecar.Scope
---@field file? string

---A rule that did not decide.
---@class mcp_sidecar.HiddenRule
---@field level mcp_sidecar.Level
---@field source string
---@field reason? string Why it does not count. Absent if an earlier rule simply came first.

---@class mcp_sidecar.Imported
---@field imported string[]
---@field skipped table<string, string> Server → why it was not imported.
---@field notes table<string, string[]> Server → what to know about it.
---@field path string The file that was written, or would be.

---The name of the server that was inserted.
---@class mcp_sidecar.InsertedServer
---@field server string

---The name under which a secret is kept in the keyring.
---@class mcp_sidecar.KeptSecret
---@field name string

---How freely a tool may run, from the most to the least restrictive.
---@alias mcp_sidecar.Level "disable"|"deny"|"require-approval"|"allow-once"|"allow-session"|"allow-project"|"allow-always"

---A line of a server's log.
---@class mcp_sidecar.LogLine
---@field time mcp_sidecar.Timestamp
---@field source mcp_sidecar.LogSource
---@field level string
---@field text string

---@class mcp_sidecar.LogLines
---@field lines mcp_sidecar.LogLine[] Oldest first.

---Where a log line comes from.
---@alias mcp_sidecar.LogSource "stderr"|"server"|"sidecar"

---@class mcp_sidecar.MetricsList
---@field servers mcp_sidecar.ServerMetrics[]

---@class mcp_sidecar.OneServer
---@field server mcp_sidecar.ServerStatus

---The level of a tool, where it comes from, and the rules that it overrides.
---@class mcp_sidecar.Policy
---@field tool string
---@field level mcp_sidecar.Level
---@field source string
---@field hides mcp_sidecar.HiddenRule[]
---@field agents? mcp_sidecar.AgentLevel[] Levels of agents, where they differ.

---@class mcp_sidecar.PolicyList
---@field policies mcp_sidecar.Policy[]

---@class mcp_sidecar.Prompt
---@field description? string
---@field messages mcp_sidecar.PromptMessage[]

---An argument of a prompt.
---@class mcp_sidecar.PromptArgument
---@field name string
---@field description? string
---@field required? boolean

---A prompt, as its server sent it.
---@class mcp_sidecar.PromptInfo
---@field name string
---@field title? string
---@field description? string
---@field arguments? mcp_sidecar.PromptArgument[]
---@field server mcp_sidecar.ServerName

---@class mcp_sidecar.PromptList
---@field prompts mcp_sidecar.PromptInfo[]

---A message of a prompt.
---@class mcp_sidecar.PromptMessage
---@field role string
---@field content mcp_sidecar.Content

---@class mcp_sidecar.ReadResource
---@field contents mcp_sidecar.ResourceContents[]

---The result of a call, as the log keeps it.
---@class mcp_sidecar.RecordedResult
---@field content? mcp_sidecar.Content[]
---@field structuredContent? any
---@field isError? boolean

---What a reload of the config files changed.
---@class mcp_sidecar.Reload
---@field added mcp_sidecar.ServerName[]
---@field removed mcp_sidecar.ServerName[]
---@field changed mcp_sidecar.ServerName[] Restarted, because their launch changed.
---@field policyOnly mcp_sidecar.ServerName[] Only their levels changed; they keep running.
---@field unchanged integer
---@field errors table<string, string[]> File → its errors.

---Who asks for a call.
---@class mcp_sidecar.Requester
---@field kind "user"|"plugin"|"agent"
---@field name? string

---The content of a resource.
---@class mcp_sidecar.ResourceContents
---@field uri string
---@field mimeType? string
---@field text? string
---@field blob? string Base64.

---A resource or a resource template, as its server sent it.
---@class mcp_sidecar.ResourceInfo
---@field uri? string A template has a `uriTemplate` instead.
---@field uriTemplate? string
---@field name string
---@field title? string
---@field description? string
---@field mimeType? string
---@field server mcp_sidecar.ServerName

---@class mcp_sidecar.ResourceList
---@field resources mcp_sidecar.ResourceInfo[]
---@field templates mcp_sidecar.ResourceInfo[]

---@class mcp_sidecar.Revoked
---@field revoked integer How many grants were revoked.

---The part of JSON Schema that forms support. It comes from a server, so it may hold other keys, too.
---@class mcp_sidecar.Schema
---@field type? string|string[]
---@field title? string
---@field description? string
---@field default? any
---@field enum? any[]
---@field enumNames? string[]
---@field const? any
---@field oneOf? mcp_sidecar.Schema[]
---@field anyOf? mcp_sidecar.Schema[]
---@field format? string
---@field pattern? string
---@field minimum? number
---@field maximum? number
---@field minLength? integer
---@field maxLength? integer
---@field minItems? integer
---@field maxItems? integer
---@field items? mcp_sidecar.Schema
---@field properties? table<string, mcp_sidecar.Schema>
---@field required? string[]
---@field password? boolean The value is a secret: do not show it.

---Where a definition comes from.
---@alias mcp_sidecar.Scope "managed"|"session"|"local"|"project"|"user"|"claudeai"

---The name and version that a server reports.
---@class mcp_sidecar.ServerInfo
---@field name string
---@field version string

---@class mcp_sidecar.ServerList
---@field servers mcp_sidecar.ServerStatus[]

---Figures of a server.
---@class mcp_sidecar.ServerMetrics
---@field server mcp_sidecar.ServerName
---@field startMs? number
---@field discoverMs? number
---@field restarts integer
---@field uptimeMs? number
---@field tools mcp_sidecar.ToolMetrics[]

---The name of a server: letters, digits, `-` and `_`.
---@alias mcp_sidecar.ServerName string

---A server: its definition, its state and what it offers.
---@class mcp_sidecar.ServerStatus
---@field name mcp_sidecar.ServerName
---@field status mcp_sidecar.Status
---@field reason? string Why a pending server is not connected yet: `starting`, `awaiting-trust`, `awaiting-input`, `retrying in 4 s`.
---@field enabled boolean
---@field transport mcp_sidecar.Transport
---@field scope mcp_sidecar.Scope
---@field file? string The file that defines it.
---@field line? integer The zero-based line of its key in that file.
---@field hides mcp_sidecar.HiddenDefinition[] Definitions of the same name that this one overrides.
---@field error? string Why it failed, or what keeps it from starting.
---@field needsTrust boolean Whether the user has to trust the definition before it starts.
---@field trustDiff? string What changed since the user last trusted the definition.
---@field serverInfo? mcp_sidecar.ServerInfo
---@field protocolVersion? string The version of MCP that it speaks.
---@field instructions? string
---@field capabilities string[]
---@field toolCount integer
---@field resourceCount integer
---@field promptCount integer
---@field tools mcp_sidecar.ToolSummary[]
---@field pid? integer
---@field startedAt? mcp_sidecar.Timestamp
---@field latencyMs? number How long the last ping or call took at the server.
---@field restarts integer
---@field warnings string[]
---@field config table<string, any> The entry as written in its file. Nothing is expanded, and values of `env` and `headers` are shown as `•••` unless they are a plain `${…}`.

---What changed in the session scope.
---@class mcp_sidecar.SessionChange
---@field added string[]
---@field removed string[]
---@field errors table<string, string> Server → why its definition cannot be used.

---What a server is doing.
---@alias mcp_sidecar.Status "pending"|"connected"|"failed"|"needs-auth"|"disabled"|"stopped"

---A definition to start from.
---@class mcp_sidecar.Template
---@field id string Also a good name for the server.
---@field title string
---@field description string
---@field config any
---@field inputs any[] Entries for `inputs` that the definition needs.

---@class mcp_sidecar.TemplateList
---@field templates mcp_sidecar.Template[]

---The outcome of a test. Nothing stays running.
---@class mcp_sidecar.TestReport
---@field success boolean
---@field message string
---@field serverInfo? mcp_sidecar.ServerInfo
---@field protocolVersion? string
---@field tools any[] As the server sent them.
---@field resources any[]
---@field prompts any[]
---@field latencyMs number

---RFC 3339 in UTC.
---@alias mcp_sidecar.Timestamp string

---A tool with the level that applies to it.
---@class mcp_sidecar.ToolInfo
---@field name string The whole name: `mcp__server__tool`.
---@field server mcp_sidecar.ServerName
---@field tool string
---@field title? string
---@field description string
---@field inputSchema mcp_sidecar.Schema
---@field outputSchema? mcp_sidecar.Schema
---@field annotations mcp_sidecar.Annotations
---@field level mcp_sidecar.Level
---@field source string Where the level comes from.
---@field changed? boolean The tool has changed since the user allowed it, so the next call asks again.

---@class mcp_sidecar.ToolList
---@field tools mcp_sidecar.ToolInfo[]

---Figures of a tool.
---@class mcp_sidecar.ToolMetrics
---@field tool string
---@field calls integer
---@field errors integer
---@field p50Ms number
---@field p95Ms number
---@field p99Ms number

---The outcome of a tool call.
---@class mcp_sidecar.ToolResult
---@field callId mcp_sidecar.CallId
---@field content mcp_sidecar.Content[] As the server sent it.
---@field structuredContent? any
---@field isError boolean The tool itself reported an error.
---@field durationMs number
---@field decision string The level or answer that allowed the call.
---@field server mcp_sidecar.ServerName
---@field tool string

---A tool in the status of its server.
---@class mcp_sidecar.ToolSummary
---@field name string
---@field description string
---@field annotations mcp_sidecar.Annotations

---How a server is reached.
---@alias mcp_sidecar.Transport "stdio"|"tcp"|"http"|"sse"|"sdk"|"claudeai-proxy"

---A place in the arguments of a call that does not match the schema.
---@class mcp_sidecar.Violation
---@field path string A JSON pointer.
---@field message string
