--- Who wants to hear of what: listeners in Lua, and `User` autocommands for everybody else.

local M = {}

---@type table<string, fun(data: any)[]>
local listeners = {}

local autocommands = {
  servers = "McpServerChanged",
  approvals = "McpApproval",
  tools = "McpToolsChanged",
  call = "McpCallFinished",
  reload = "McpConfigReloaded",
}

---@param event "servers"|"approvals"|"tools"|"call"|"log"|"reload"|"resource"|"ready"|"exit"
---@param listener fun(data: any)
---@return fun() off
function M.on(event, listener)
  listeners[event] = listeners[event] or {}
  table.insert(listeners[event], listener)
  return function()
    for place, known in ipairs(listeners[event]) do
      if known == listener then
        table.remove(listeners[event], place)
        return
      end
    end
  end
end

---One listener that fails does not keep the others from hearing.
function M.emit(event, data)
  for _, listener in ipairs(vim.list_slice(listeners[event] or {})) do
    local ok, problem = pcall(listener, data)
    if not ok then vim.notify(problem, vim.log.levels.ERROR, { title = "mcp-sidecar" }) end
  end
  if autocommands[event] then
    vim.api.nvim_exec_autocmds("User", { pattern = autocommands[event], modeline = false, data = data })
  end
end

return M
