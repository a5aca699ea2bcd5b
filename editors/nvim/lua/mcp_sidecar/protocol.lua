---@meta
-- Generated from src/protocol by `make generate`. Do not edit.

---Something that can be done with a server now.
---@class mcp_sidecar.Action
---@field kind mcp_sidecar.ActionKind
---@field title string
---@field command string The command to send.
---@field arguments table<string, any>
---@field destructive boolean It loses something that no other action restores: ask first.

---An entry of the menu for a file.
---@class mcp_sidecar.ActionEntry
---@field title string
---@field action? string The id for `mcp.action.run`. Without it, the user is asked which tool gets the selection.
---@field automatic boolean Whether the editor may announce it, for example with a light bulb. Otherwise it is offered only on request.

---What an action does, for icons and keys.
---@alias mcp_sidecar.ActionKind "trust"|"sign-in"|"start"|"stop"|"restart"|"refresh"|"enable"|"show-tools"|"test"|"show-log"|"hide-tools"|"sign-out"|"revoke-trust"|"disable"|"move"|"remove"

---@class mcp_sidecar.ActionList
---@field actions mcp_sidecar.ActionEntry[]

---A call of an agent that has not ended.
---@class mcp_sidecar.AgentCall
---@field callId mcp_sidecar.CallId
---@field server mcp_sidecar.ServerName
---@field tool string
---@field since mcp_sidecar.Timestamp
---@field question? string The id of the question that it waits for.

---What agents of one name did.
---@class mcp_sidecar.AgentFigures
---@field calls integer
---@field denied integer Calls that a rule or the user refused.
---@field tokens integer The estimated tokens of all results.

---The level of a tool for one agent.
---@class mcp_sidecar.AgentLevel
---@field agent string
---@field level mcp_sidecar.Level
---@field source string

---The agents that are connected.
---@class mcp_sidecar.AgentList
---@field agents mcp_sidecar.AgentStatus[] In the order in which they connected.
---@field sets string[] The sets of tools in `config.toml`.

---An agent that is connected.
---@class mcp_sidecar.AgentStatus
---@field id string Names this connection in commands.
---@field name string The name that it reports, or that its user chose. Empty until it is known.
---@field folder string The workspace or worktree that it works in.
---@field since mcp_sidecar.Timestamp
---@field set? string The set of tools that it is limited to.
---@field problem? string Why it has no tools, if its set is unknown.
---@field paused boolean Its calls wait until the user resumes it.
---@field doing string The state in a few words: `idle`, `runs git/log`, `waits for you: git/push`, `paused`.
---@field calls mcp_sidecar.AgentCall[] Its calls that have not ended, oldest first.
---@field today mcp_sidecar.AgentFigures What agents of this name did in this workspace in the last 24 hours.

---What a server claims about a tool.
---@class mcp_sidecar.Annotations
---@field readOnly? boolean
---@field destructive? boolean
---@field idempotent? boolean
---@field openWorld? boolean

---What the user answered a question in.
---@alias mcp_sidecar.AnswerPlace "editor"|"shell"|"agent"

---Where the user answered a question.
---@class mcp_sidecar.AnsweredIn
---@field place mcp_sidecar.AnswerPlace
---@field name? string The name of the editor or agent.
---@field pid? integer The process of the editor or shell.

---A question that is waiting for the user.
---@class mcp_sidecar.Approval
---@field id string
---@field kind mcp_sidecar.ApprovalKind
---@field folder? string Set if the question is not about this workspace but about another folder of the repository, such as a worktree. `title` and `detail` say so, too.
---@field server mcp_sidecar.ServerName
---@field tool? string
---@field resource? mcp_sidecar.ResourceQuestion Instead of `tool`: the resource to read or to watch.
---@field prompt? string Instead of `tool`: the name of a prompt.
---@field agentTool? string Instead of `tool`: an agent's own tool, such as its shell. `server` is the name of the agent.
---@field arguments? table<string, any> In full, as they will be sent.
---@field largeArguments? mcp_sidecar.LargeArguments Instead of `arguments` that are too large for a list. `mcp.approvals` with the `id` of the question returns them.
---@field title string
---@field summary string What it is about in one line, for a list: a server with its command or URL, a tool with its arguments. It may be truncated, so show the rest before the user decides.
---@field detail string
---@field annotations? mcp_sidecar.Annotations
---@field requester mcp_sidecar.Requester
---@field options string[] The decisions of `answers`.
---@field answers mcp_sidecar.ApprovalAnswer[] The possible answers, in the order to show them.
---@field diff? string What changed since the user last agreed.
---@field change? mcp_sidecar.FileChange What the call would change in a file of the workspace.
---@field form? mcp_sidecar.Form What to fill in before accepting.
---@field schema? mcp_sidecar.Schema The schema of the form.
---@field url? string The page to open.
---@field createdAt mcp_sidecar.Timestamp
---@field expiresAt mcp_sidecar.Timestamp

---One way to answer a question.
---@class mcp_sidecar.ApprovalAnswer
---@field decision string A decision, or `accept`, `decline` or `cancel`.
---@field label string
---@field selectedLabel? string The label if the user selects some questions of a group.
---@field grants boolean It lets something happen.
---@field lasts boolean It applies to later questions, too. Let the user confirm it, or make it harder to choose.
---@field effect? string What has changed afterwards, as a sentence.
---@field shortEffect? string The same without what the question has just said, for one line.
---@field undo? mcp_sidecar.Remedy How to undo it.

---Questions that can be answered together: trust in the servers of one file, or the calls of one agent.
---@class mcp_sidecar.ApprovalGroup
---@field id string Stays the same while questions are added and removed.
---@field kind mcp_sidecar.ApprovalKind `tool` or `trust`.
---@field title string
---@field ids string[] The ids of its questions, two or more, in the order to show them. Answer them with `ids` of `mcp.approval.resolve`: all of them, or those that the user selects.
---@field answers mcp_sidecar.ApprovalAnswer[] The answers for all of them, in the order to show them. The first one grants nothing.

---What kind of answer a question takes.
---@alias mcp_sidecar.ApprovalKind "trust"|"elicitation"|"input"|"tool"

---@class mcp_sidecar.ApprovalList
---@field approvals mcp_sidecar.Approval[] Oldest first.
---@field groups mcp_sidecar.ApprovalGroup[]

---How a question ended.
---@alias mcp_sidecar.ApprovalOutcome "answered"|"dismissed"|"expired"|"withdrawn"|"unasked"

---What agents did while no editor was open.
---@class mcp_sidecar.AwayReport
---@field since? mcp_sidecar.Timestamp When the last editor closed. Absent if none was open before.
---@field until? mcp_sidecar.Timestamp When the next one connected. Absent if there is still none.
---@field summary? string All of it in a sentence. Absent if agents did nothing.
---@field agents table<string, mcp_sidecar.AgentFigures> The name of the agent → what it did.
---@field refused mcp_sidecar.Call[] Calls that were refused because there was no one to ask, newest first. `mcp.away.allow` allows one for next time.

---An open file.
---@class mcp_sidecar.BufferText
---@field text? string Its text, if it has unsaved changes.

---A bundle that the user has seen.
---@class mcp_sidecar.BundleFile
---@field path string
---@field sha256 string Another file at this path is not unpacked.

---An entry of the call log.
---@class mcp_sidecar.Call
---@field callId mcp_sidecar.CallId
---@field folder? string The workspace in which the call was made, if it is another worktree of the repository.
---@field time mcp_sidecar.Timestamp
---@field kind mcp_sidecar.CallKind
---@field server mcp_sidecar.ServerName
---@field tool string The tool, or `resource:URI` or `prompt:NAME`, as rules name it.
---@field requester mcp_sidecar.Requester
---@field workflow? string
---@field decision string The level or answer that allowed or refused the call; `invalid` if it could not be made as requested.
---@field decidedBy string Who decided: a rule, a grant, or the user and the editor, shell or agent in which they answered.
---@field success boolean
---@field error? string
---@field durationMs number Without the time that the call waited for the user.
---@field waitedMs number How long the call waited for the user.
---@field resultBytes? integer The size of the whole result.
---@field resultTokens? integer The estimated tokens of the whole result.
---@field arguments? any Masked and truncated. Absent in notifications.
---@field requestedArguments? any The arguments that were requested, if the user changed them. Masked and truncated. Absent in notifications.
---@field result? mcp_sidecar.RecordedResult Masked and truncated. Absent in notifications.

---Identifies a call in the log and in notifications.
---@alias mcp_sidecar.CallId string

---What a call requests from a server. Only denied completions are recorded.
---@alias mcp_sidecar.CallKind "tool"|"resource"|"subscription"|"prompt"|"completion"|"hook"

---@class mcp_sidecar.CallList
---@field calls mcp_sidecar.Call[] Newest first.

---Whether the call log is as mcp-sidecar wrote it.
---@class mcp_sidecar.CallLogCheck
---@field whole boolean
---@field message string The outcome as sentences: which record breaks the chain, if one does.
---@field checked integer How many records were compared with the chain.
---@field unchecked integer How many records were written before the chain began.
---@field head? string The newest link of the chain. It changes if any record is changed, so a copy elsewhere proves that none was.

---A check of `mcp.doctor`.
---@class mcp_sidecar.Check
---@field name string
---@field ok boolean
---@field message string
---@field fix? string What to do about it.

---@class mcp_sidecar.CheckList
---@field checks mcp_sidecar.Check[]

---What was entered in a form.
---@class mcp_sidecar.CheckedForm
---@field arguments table<string, any> As they would be sent.
---@field problems mcp_sidecar.Violation[] What keeps them from being sent.
---@field warnings? mcp_sidecar.Violation[] What the user should know before they are sent.
---@field preview? string[] For a new server: what it runs or connects to, one `word value` per line.

---A value to choose.
---@class mcp_sidecar.Choice
---@field value any
---@field title string

---A question that has ended.
---@class mcp_sidecar.ClosedApproval
---@field id string
---@field title string
---@field outcome mcp_sidecar.ApprovalOutcome
---@field decision? string The answer.
---@field by? mcp_sidecar.AnsweredIn Where it was answered.
---@field message string How it ended, to show: `“Deny”, by the user in Neovim (process 4242)`.

---@class mcp_sidecar.Completion
---@field values string[]
---@field hasMore boolean

---An error in a config file.
---@class mcp_sidecar.ConfigError
---@field line integer Zero-based.
---@field message string

---A config file.
---@class mcp_sidecar.ConfigFile
---@field path string
---@field scope mcp_sidecar.Scope
---@field exists boolean
---@field valid boolean Whether it can be parsed. If not, the last valid version stays in effect.
---@field servers string[] The names of the servers in it.
---@field errors mcp_sidecar.ConfigError[] What is wrong with it: only errors, in the order of the file.

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

---The stable name of a kind of diagnostic.
---@alias mcp_sidecar.DiagnosticCode "syntax"|"outside-workspace"|"settings"|"too-deep"|"unreadable"|"wrong-type"|"missing-key"|"unknown-key"|"duplicate-key"|"same-key"|"conflicting-keys"|"type-mismatch"|"unknown-type"|"unused-key"|"ignored-key"|"bad-name"|"name-clash"|"hidden"|"unknown-server"|"only-restricts"|"too-many-servers"|"bad-port"|"bad-duration"|"milliseconds"|"bad-url"|"bad-header"|"bad-variable"|"bad-level"|"bad-condition"|"bad-regex"|"bad-glob"|"bad-tool"|"unknown-result"|"nul"|"invisible-text"|"blocked-address"|"arguments-too-long"|"command-not-found"|"relative-path"|"shell"|"risky-variable"|"unset-variable"|"unknown-expansion"|"unknown-input"|"raw-secret"|"secret-not-referenced"|"plain-http"|"deprecated-sse"|"tcp-host"|"ourselves"|"needs-trust"|"deprecated-spelling"|"secret-to-host"|"other-spelling"|"setting"|"no-file"|"more"|"connection-failed"|"port-closed"|"needs-sign-in"|"awaiting-trust"|"not-trusted"|"awaiting-input"|"sandbox-not-enforced"|"unknown-tool"|"unused-tools"

---A program whose config files can be imported and exported.
---@alias mcp_sidecar.Dialect "vscode"|"claude"|"claude-desktop"|"cursor"|"windsurf"|"zed"|"cline"|"codex"|"gemini"|"qwen"|"opencode"|"copilot"|"continue"|"goose"|"mcphub"

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
---@field scope mcp_sidecar.Scope Where the level was set.
---@field unsaved? string[] Files that were changed in the editor and take effect when they are saved.

---The `data` of an error response.
---@class mcp_sidecar.ErrorData
---@field kind mcp_sidecar.ErrorKind
---@field server? string
---@field tool? string
---@field detail? mcp_sidecar.Violation[] What is wrong with the arguments of a call.
---@field unasked? boolean The call was not allowed: it requires approval, and there was no one to ask.
---@field remedy? mcp_sidecar.Remedy What the user can do about it.

---What kind of failure an error reports.
---@alias mcp_sidecar.ErrorKind "invalid-params"|"invalid-arguments"|"not-found"|"conflict"|"disabled"|"denied"|"needs-trust"|"needs-auth"|"timeout"|"cancelled"|"connection-failed"|"process-failed"|"protocol-error"|"io"

---@class mcp_sidecar.Exported
---@field text string A whole file with these servers.
---@field syntax mcp_sidecar.FileSyntax The language of the file.
---@field path? string The file that was written.
---@field notes table<string, string[]> Server → what could not be exported.

---A field of a form.
---@class mcp_sidecar.Field
---@field name string The key of its value.
---@field title string
---@field help? string
---@field required boolean
---@field kind mcp_sidecar.FieldKind
---@field rule string What can be entered, as text: `a whole number, at least 1`.
---@field default? any
---@field choices? mcp_sidecar.Choice[] The values to choose from. A field of kind `choices` takes several of them.
---@field fields? mcp_sidecar.Field[] The fields of an object.
---@field item? mcp_sidecar.Field An item of a list. The user can add as many as the rule allows.

---How a value is entered.
---@alias mcp_sidecar.FieldKind "text"|"integer"|"number"|"boolean"|"choice"|"choices"|"object"|"list"|"multiline"|"secret"|"json"

---What a call would change in a file.
---@class mcp_sidecar.FileChange
---@field file string The absolute path.
---@field path string The path as the call names it.
---@field isNew boolean
---@field after string The text after the call.
---@field diff string
---@field unsaved boolean The file has unsaved changes in an editor, and `diff` is against these.

---Where a definition is written.
---@alias mcp_sidecar.FileScope "user"|"project"|"local"|"session"|"managed"

---A language for config files.
---@alias mcp_sidecar.FileSyntax "json"|"toml"|"yaml"

---A form with its first values.
---@class mcp_sidecar.FilledForm
---@field title string
---@field verb string What the last step does.
---@field fields mcp_sidecar.Field[]
---@field values table<string, any>
---@field command string The command that takes the `arguments` of the checked form.

---The fields of a form, required ones first.
---@class mcp_sidecar.Form
---@field fields mcp_sidecar.Field[]

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

---Arguments that are not part of a list because of their size.
---@class mcp_sidecar.LargeArguments
---@field bytes integer The length of their JSON text.
---@field digest string SHA-256 of that text.

---How freely a tool may run, from the most to the least restrictive.
---@alias mcp_sidecar.Level "disable"|"deny"|"require-approval"|"allow-once"|"allow-session"|"allow-project"|"allow-always"

---Where a level can be set.
---@class mcp_sidecar.LevelScope
---@field scope mcp_sidecar.Scope
---@field title string A choice for the user: `in the project config`.

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
---@field views mcp_sidecar.ViewCost[] What agents get in their list of tools, by the sections of `config.toml`. The last one is for all other agents.

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

---A server of the registry. Its publisher wrote the texts.
---@class mcp_sidecar.RegistryEntry
---@field name string
---@field title? string
---@field description string
---@field version string
---@field packages string[] How it can be used: `npm`, `pypi`, `oci`, `nuget`, `mcpb`, `http` or `sse`.
---@field warning? string Such as that it is deprecated, or that its name looks like another one.

---What the registry has found.
---@class mcp_sidecar.RegistryList
---@field servers mcp_sidecar.RegistryEntry[]
---@field notes? string[] What the user should know: an old answer, a long list, or entries that were left out.

---A server of the registry.
---@class mcp_sidecar.RegistryServer
---@field name string Its name there: `io.github.user/weather`.
---@field version? string Without it, the newest version.
---@field package? string One of its `packages`, if it has several.

---What a reload of the config files changed.
---@class mcp_sidecar.Reload
---@field added mcp_sidecar.ServerName[]
---@field removed mcp_sidecar.ServerName[]
---@field changed mcp_sidecar.ServerName[] Restarted, because their launch changed.
---@field policyOnly mcp_sidecar.ServerName[] Only their levels changed; they keep running.
---@field unchanged integer
---@field errors table<string, string[]> File → its errors.

---What to do about an error or a state.
---@class mcp_sidecar.Remedy
---@field title string
---@field command string The command to send.
---@field arguments table<string, any>

---Who made a call.
---@class mcp_sidecar.Requester
---@field kind "user"|"plugin"|"agent"
---@field name? string

---The effect of an answer.
---@class mcp_sidecar.Resolved
---@field resolved string[] The ids of the questions that this answered.
---@field gone string[] The ids of those that had ended before, for example because they were answered elsewhere.
---@field effect? string What has changed for later questions, as a sentence.
---@field shortEffect? string The same without what the question has just said, for one line.
---@field undo? mcp_sidecar.Remedy How to undo it.

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

---A resource that a question is about.
---@class mcp_sidecar.ResourceQuestion
---@field uri string As the server gets it. Hidden characters are visible.
---@field template? string The template that it is an instance of.

---@class mcp_sidecar.Revoked
---@field revoked integer How many grants were revoked.
---@field warning? string What to say if this could not be saved.

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

---A text of an editor, sent with the command that needs it.
---@class mcp_sidecar.SentDocument
---@field filetype string The language id of the editor.
---@field version integer
---@field text string

---A prompt, as its server sent it.
---@class mcp_sidecar.SentPrompt
---@field name string
---@field title? string
---@field description? string
---@field arguments? mcp_sidecar.PromptArgument[]

---A resource, as its server sent it.
---@class mcp_sidecar.SentResource
---@field uri? string A template has a `uriTemplate` instead.
---@field uriTemplate? string
---@field name string
---@field title? string
---@field description? string
---@field mimeType? string

---A tool, as its server sent it.
---@class mcp_sidecar.SentTool
---@field name string
---@field title? string
---@field description? string
---@field inputSchema? mcp_sidecar.Schema
---@field outputSchema? mcp_sidecar.Schema
---@field annotations? table<string, any>

---Shows the form of a server: of a new one, from a template, a command line or a definition, or of one that is in a file. What was entered goes through `mcp.form.check`, and its answer to the command that the form names.
---@class mcp_sidecar.ServerForm
---@field template? string The id of a template.
---@field commandLine? string A command line or a URL, as the user typed it.
---@field config? table<string, any> A definition, as in a config file.
---@field registry? mcp_sidecar.RegistryServer A server of the registry.
---@field bundle? string The absolute path of a bundle (`.mcpb`).
---@field server? mcp_sidecar.ServerName A server that is in a file.

---The name and version that a server reports.
---@class mcp_sidecar.ServerInfo
---@field name string
---@field version string

---@class mcp_sidecar.ServerList
---@field servers mcp_sidecar.ServerStatus[]
---@field problems? string[] Problems of mcp-sidecar itself, for example a state folder that it refuses to use.

---Figures of a server.
---@class mcp_sidecar.ServerMetrics
---@field server mcp_sidecar.ServerName
---@field startMs? number
---@field discoverMs? number
---@field restarts integer
---@field uptimeMs? number
---@field tokens integer The estimated tokens of the definitions of its tools.
---@field tools mcp_sidecar.ToolMetrics[]

---The name of a server: letters, digits, `-` and `_`.
---@alias mcp_sidecar.ServerName string

---An entry that defines no server, but disables the server of its name or restricts its tools.
---@class mcp_sidecar.ServerRestriction
---@field scope mcp_sidecar.Scope
---@field file? string
---@field line? integer The zero-based line of its key in that file.
---@field disables boolean Whether it is the entry that disables the server.
---@field effect string What it does, in a few words: `disables it`, `restricts its tools (2 rules)`.

---A server: its definition, its state and what it offers.
---@class mcp_sidecar.ServerStatus
---@field name mcp_sidecar.ServerName
---@field status mcp_sidecar.Status
---@field reason? string Why a pending server is not connected yet: `starting`, `awaiting-trust`, `awaiting-input`, `retrying in 4 s`.
---@field summary mcp_sidecar.Summary The state in a few words, for a list of servers.
---@field actions mcp_sidecar.Action[] The actions that are possible now. Those that the state calls for come first.
---@field remedy? mcp_sidecar.Remedy The action that makes it usable again.
---@field enabled boolean
---@field transport mcp_sidecar.Transport
---@field launch string The command that it runs or the address that it connects to, in one line, as written in the config file.
---@field scope mcp_sidecar.Scope
---@field file? string The file that defines it.
---@field line? integer The zero-based line of its key in that file.
---@field levelScopes mcp_sidecar.LevelScope[] Where the levels of its tools can be set. The first one is the default: the file that defines it.
---@field hides mcp_sidecar.HiddenDefinition[] Definitions of the same name that this one overrides.
---@field restrictions mcp_sidecar.ServerRestriction[] Entries of other files that disable it or restrict its tools, in order of precedence.
---@field error? string Why it failed, or what keeps it from starting.
---@field cause? string The same in one line, without output of the server.
---@field needsTrust boolean Whether the user has to trust the definition before it starts.
---@field trustDiff? string What changed since the user last trusted the definition.
---@field trustDigest? string Names the definition as it is shown, for `mcp.server.trust`. Absent if the definition needs no trust.
---@field serverInfo? mcp_sidecar.ServerInfo
---@field protocolVersion? string The version of MCP that it uses.
---@field instructions? string
---@field capabilities string[]
---@field toolCount integer
---@field resourceCount integer
---@field promptCount integer
---@field tools mcp_sidecar.ToolSummary[]
---@field tokens integer The estimated tokens of a model's context that the definitions of its tools use.
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

---The state of a server in a few words.
---@class mcp_sidecar.Summary
---@field text string
---@field tone mcp_sidecar.Tone

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
---@field tools mcp_sidecar.SentTool[]
---@field resources mcp_sidecar.SentResource[]
---@field prompts mcp_sidecar.SentPrompt[]
---@field latencyMs number

---RFC 3339 in UTC.
---@alias mcp_sidecar.Timestamp string

---How good or bad a state is.
---@alias mcp_sidecar.Tone "good"|"busy"|"attention"|"bad"|"muted"

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
---@field callable boolean Whether it can be called: it is neither disabled nor denied.
---@field source string Where the level comes from.
---@field changed? boolean The tool has changed since the user allowed it, so the next call asks again.
---@field tokens integer The estimated tokens of a model's context that its definition uses.

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
---@field waitedMs number The median time that calls waited for the user, of those that did.
---@field resultTokens integer The median of the estimated tokens of a result.
---@field totalResultTokens integer The estimated tokens of all results.
---@field tokens? integer The estimated tokens of its definition. Absent if the server does not offer it now.

---The outcome of a tool call.
---@class mcp_sidecar.ToolResult
---@field callId mcp_sidecar.CallId
---@field content mcp_sidecar.Content[] As the server sent it.
---@field structuredContent? any
---@field isError boolean The tool itself reported an error.
---@field durationMs number Without the time that the call waited for the user.
---@field waitedMs number How long the call waited for the user.
---@field decision string The level or answer that allowed the call.
---@field server mcp_sidecar.ServerName
---@field tool string

---A tool in the status of its server.
---@class mcp_sidecar.ToolSummary
---@field name string
---@field description string
---@field annotations mcp_sidecar.Annotations
---@field tokens integer The estimated tokens of its definition.

---How a server is reached.
---@alias mcp_sidecar.Transport "stdio"|"tcp"|"http"|"sse"|"sdk"|"claudeai-proxy"

---What a view of `config.toml` shows to its agents, and what that costs.
---@class mcp_sidecar.ViewCost
---@field agent string The name of the section `[agents."NAME"]`. Empty for agents without one.
---@field tools integer How many tools these agents can call.
---@field tokens integer The estimated tokens of the definitions that they get in their list of tools.
---@field search? boolean They search tools instead of listing them.

---A place in the arguments of a call that does not match the schema.
---@class mcp_sidecar.Violation
---@field path string A JSON pointer.
---@field message string
