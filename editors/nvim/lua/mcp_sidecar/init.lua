--- The Lua API. Everything is optional: the plugin works without a line of configuration.

local M = {}

---@class mcp_sidecar.Server the status of a server, from `mcp.servers`
---@field name string
---@field status "pending"|"connected"|"failed"|"needs-auth"|"disabled"|"stopped"
---@field reason? string
---@field error? string
---@field enabled boolean
---@field transport string
---@field scope string
---@field file? string
---@field line? integer
---@field hides { scope: string, file?: string }[]
---@field needsTrust boolean
---@field trustDiff? string
---@field serverInfo? { name: string, version?: string }
---@field protocolVersion? string
---@field instructions? string
---@field pid? integer
---@field startedAt? string
---@field toolCount integer
---@field resourceCount integer
---@field promptCount integer
---@field tools { name: string, description: string, annotations: mcp_sidecar.Annotations }[]
---@field latencyMs? number
---@field restarts integer
---@field warnings string[]
---@field config table<string, any> as written

---@class mcp_sidecar.Annotations hints of a tool about itself
---@field readOnly? boolean
---@field destructive? boolean
---@field idempotent? boolean
---@field openWorld? boolean

---@class mcp_sidecar.Tool a tool, from `mcp.tools`
---@field name string `mcp__server__tool`
---@field server string
---@field tool string
---@field title? string
---@field description string
---@field inputSchema mcp_sidecar.Schema
---@field annotations mcp_sidecar.Annotations
---@field level string
---@field source string where the level comes from
---@field changed? boolean it changed after the user allowed it

---@class mcp_sidecar.Approval a question that waits for the user
---@field id string
---@field kind "tool"|"trust"|"elicitation"|"input"
---@field server string
---@field tool? string
---@field arguments? table<string, any>
---@field title string
---@field detail string
---@field annotations? mcp_sidecar.Annotations
---@field requester mcp_sidecar.Requester
---@field options string[]
---@field diff? string
---@field change? { file: string, path: string, isNew: boolean, after: string, diff: string }
---@field schema? mcp_sidecar.Schema
---@field url? string
---@field createdAt string
---@field client_id integer the LSP client of the sidecar that asks

---@alias mcp_sidecar.Requester { kind: "user"|"plugin"|"agent", name?: string }

---@class mcp_sidecar.Call an entry of the call log
---@field callId string
---@field time string
---@field server string
---@field tool string
---@field requester mcp_sidecar.Requester
---@field decision string
---@field decidedBy string
---@field success boolean
---@field error? string
---@field durationMs number

---@class mcp_sidecar.Grant an answer of the user that lasts
---@field id string
---@field server string
---@field tool string
---@field level string
---@field scope string
---@field since? string

---@class mcp_sidecar.LogLine
---@field server string
---@field time string
---@field source? string
---@field level? string
---@field text string

---@class mcp_sidecar.Result the result of a tool call
---@field callId string
---@field content mcp_sidecar.Content[]
---@field structuredContent? any
---@field isError boolean
---@field durationMs number
---@field decision string
---@field server string
---@field tool string

---@class mcp_sidecar.Content a content block of MCP
---@field type "text"|"image"|"audio"|"resource"|"resource_link"
---@field text? string
---@field data? string base64
---@field mimeType? string
---@field resource? { uri: string, mimeType?: string, text?: string, blob?: string }
---@field uri? string
---@field name? string
---@field title? string
---@field description? string

---Sets the options, for plugin managers that call it. The same as assigning `vim.g.mcp_sidecar`.
---@param options? mcp_sidecar.Config
function M.setup(options)
  vim.g.mcp_sidecar = options or vim.empty_dict()
  require("mcp_sidecar.config").forget()
end

---The servers of the current workspace as last reported, sorted by name. Starts nothing.
---@return mcp_sidecar.Server[]
function M.servers()
  local servers = vim.tbl_values(require("mcp_sidecar.client").workspace().servers)
  table.sort(servers, function(one, other) return one.name < other.name end)
  return servers
end

---The tools that may be called, with schemas and levels.
---@param callback fun(err?: mcp_sidecar.Error, tools?: mcp_sidecar.Tool[])
---@param opts? { server?: string, all?: boolean }
function M.tools(callback, opts)
  require("mcp_sidecar.client").command(
    "mcp.tools",
    opts,
    function(err, result) callback(err, result and result.tools) end
  )
end

---The full name of a tool; `server/tool` is short for `mcp__server__tool`.
---@param tool string
---@return string
function M.tool_name(tool)
  local server, name = tool:match("^([^/]+)/(.+)$")
  if server and not vim.startswith(tool, "mcp__") then return ("mcp__%s__%s"):format(server, name) end
  return tool
end

---Calls a tool. The policy of the user applies, and the user is asked where it says so.
---@param tool string `mcp__server__tool` or `server/tool`
---@param arguments? table
---@param opts? { requester?: string, timeoutMs?: integer, workflow?: string, progress?: fun(value: table) }
---@param callback fun(err?: mcp_sidecar.Error, result?: mcp_sidecar.Result)
---@return fun() cancel
function M.call(tool, arguments, opts, callback)
  opts = opts or {}
  return require("mcp_sidecar.client").command("mcp.tool.call", {
    tool = M.tool_name(tool),
    arguments = arguments and next(arguments) and arguments or nil,
    requester = { kind = "plugin", name = opts.requester or "lua" },
    timeoutMs = opts.timeoutMs,
    workflow = opts.workflow,
  }, callback, { progress = opts.progress })
end

---Listens to an event. Each event is a `User` autocommand as well: McpServerChanged, McpApproval, …
---@param event mcp_sidecar.Event
---@param listener fun(data: any)
---@return fun() off
function M.on(event, listener) return require("mcp_sidecar.client").on(event, listener) end

---The counts for a statusline.
---@return { connected: integer, failed: integer, pending: integer, approvals: integer, busy: integer }
function M.status()
  return vim.g.mcp_sidecar_status or { connected = 0, failed = 0, pending = 0, approvals = 0, busy = 0 }
end

---Hosts an MCP server in this Neovim.
---@param name string
---@param server mcp_sidecar.LuaServer
function M.server(name, server) require("mcp_sidecar.sdk").add(name, server) end

return M
