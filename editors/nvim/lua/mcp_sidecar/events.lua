--- Events. Each one is a `User` autocommand, also for listeners in Lua: Neovim reports a listener that fails and still
--- runs the others.

local M = {}

local group = vim.api.nvim_create_augroup("mcp_sidecar_events", {})

---@alias mcp_sidecar.Event "servers"|"approvals"|"tools"|"call"|"agents"|"log"|"reload"|"resource"|"ready"|"exit"

---@type table<mcp_sidecar.Event, string>
local patterns = {
  servers = "McpServerChanged",
  approvals = "McpApproval",
  tools = "McpToolsChanged",
  call = "McpCallFinished",
  agents = "McpAgentsChanged",
  log = "McpLog",
  reload = "McpConfigReloaded",
  resource = "McpResourceUpdated",
  ready = "McpReady",
  exit = "McpExit",
}

---@param event mcp_sidecar.Event
---@param listener fun(data: any)
---@return fun() off
function M.on(event, listener)
  local id = vim.api.nvim_create_autocmd("User", {
    group = group,
    pattern = patterns[event],
    -- A listener may open buffers, which trigger their own events.
    nested = true,
    callback = function(args) listener(args.data) end,
  })
  return function() pcall(vim.api.nvim_del_autocmd, id) end
end

---@param event mcp_sidecar.Event
---@param data any
function M.emit(event, data)
  vim.api.nvim_exec_autocmds("User", { pattern = patterns[event], modeline = false, data = data })
end

return M
