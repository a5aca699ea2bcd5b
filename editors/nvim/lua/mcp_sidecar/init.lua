--- The Lua API. Everything is optional: the plugin works without a line of configuration.

local M = {}

---Sets the options, for plugin managers that call it. The same as assigning `vim.g.mcp_sidecar`.
---@param options? mcp_sidecar.Config
function M.setup(options)
  vim.g.mcp_sidecar = options or vim.empty_dict()
  require("mcp_sidecar.config").forget()
end

---The servers of the current workspace as last reported, sorted by name. Starts nothing.
---@return mcp_sidecar.ServerStatus[]
function M.servers()
  local servers = require("mcp_sidecar.client").workspace().servers
  return vim.iter(vim.spairs(servers)):map(function(_, server) return server end):totable()
end

---The tools that may be called, with schemas and levels.
---@param callback fun(err?: mcp_sidecar.Error, tools?: mcp_sidecar.ToolInfo[])
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
---@param callback fun(err?: mcp_sidecar.Error, result?: mcp_sidecar.ToolResult)
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
---@return mcp_sidecar.Counts
function M.status()
  return vim.g.mcp_sidecar_status
    or vim.tbl_extend("error", { running = false }, require("mcp_sidecar.workspaces").no_counts)
end

---Hosts an MCP server in this Neovim.
---@param name string
---@param server mcp_sidecar.LuaServer
function M.server(name, server) require("mcp_sidecar.sdk").add(name, server) end

return M
