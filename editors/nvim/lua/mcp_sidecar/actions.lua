--- The actions on a server, for `:Mcp {action}` and for the keys of the dashboard.

local client = require("mcp_sidecar.client")
local user_actions = require("mcp_sidecar.user_actions")

---@param command string
---@param extra? table other parameters than the name of the server
---@return fun(server: mcp_sidecar.ServerStatus)
local function sends(command, extra)
  return function(server) client.command(command, vim.tbl_extend("force", { server = server.name }, extra or {})) end
end

---The same for a command that starts the server: a question about its trust or its inputs may follow.
---@param command string
---@param extra? table
---@return fun(server: mcp_sidecar.ServerStatus)
local function starts(command, extra)
  return function(server)
    local current = client.current()
    user_actions.add({ server = server.name, client_id = current and current.id })
    sends(command, extra)(server)
  end
end

---@type table<string, fun(server: mcp_sidecar.ServerStatus)>
local M = {
  start = starts("mcp.server.start"),
  stop = sends("mcp.server.stop"),
  restart = starts("mcp.server.restart"),
  toggle = function(server) sends("mcp.server.toggle", { enabled = not server.enabled })(server) end,
  trust = function(server) require("mcp_sidecar.ui.approval").trust(server.name) end,
  distrust = sends("mcp.server.trust", { trusted = false }),
  auth = sends("mcp.server.auth"),
  signout = sends("mcp.server.auth", { signOut = true }),
  enable = starts("mcp.server.enable", { enabled = true }),
  disable = sends("mcp.server.enable", { enabled = false }),
  logs = function(server) require("mcp_sidecar.ui.logs").open(server.name) end,
  test = function(server) require("mcp_sidecar.ui.result").test({ server = server.name }) end,
  remove = function(server) require("mcp_sidecar.manage").remove(server) end,
  move = function(server) require("mcp_sidecar.manage").move(server) end,
}

---Stops a server that runs, starts any other.
function M.start_or_stop(server)
  local runs = server.status == "connected" or server.status == "pending"
  M[runs and "stop" or "start"](server)
end

function M.enable_or_disable(server) M[server.status == "disabled" and "enable" or "disable"](server) end

return M
