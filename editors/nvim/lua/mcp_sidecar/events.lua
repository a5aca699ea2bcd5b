--- Who hears of what. Every event is a `User` autocommand, for listeners in Lua as for everybody else: one that fails
--- is told to the user and does not keep the others from hearing.

local M = {}

local group = vim.api.nvim_create_augroup("mcp_sidecar_events", {})

---@alias mcp_sidecar.Event "servers"|"approvals"|"tools"|"call"|"log"|"reload"|"resource"|"ready"|"exit"

---@type table<mcp_sidecar.Event, string>
local patterns = {
  servers = "McpServerChanged",
  approvals = "McpApproval",
  tools = "McpToolsChanged",
  call = "McpCallFinished",
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
    -- What a listener opens is a buffer like any other, with events of its own.
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
