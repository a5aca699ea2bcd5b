--- The last workspace of each workspace, as the sidecar sent it: windows draw from it at once, and nobody changes it
--- but the sidecar's own notifications.

local compat = require("mcp_sidecar.compat")
local events = require("mcp_sidecar.events")

local M = {}

---@class mcp_sidecar.Workspace
---@field client_id integer
---@field root? string
---@field servers table<string, mcp_sidecar.Server>
---@field approvals mcp_sidecar.Approval[]
---@field busy integer calls of ours that run now

---@type table<integer, mcp_sidecar.Workspace?> by client id
M.all = {}

---@param client_id integer
---@param root? string
---@return mcp_sidecar.Workspace
function M.empty(client_id, root) return { client_id = client_id, root = root, servers = {}, approvals = {}, busy = 0 } end

---The questions of all workspaces, oldest first: an agent of another one waits just as much.
---@return mcp_sidecar.Approval[]
function M.approvals()
  local waiting = {}
  for _, workspace in pairs(M.all) do
    vim.list_extend(waiting, workspace.approvals)
  end
  table.sort(waiting, function(one, other)
    if one.createdAt ~= other.createdAt then return one.createdAt < other.createdAt end
    return one.id < other.id
  end)
  return waiting
end

---What a statusline shows. A plain variable, so that showing it loads nothing.
function M.publish()
  local status = { connected = 0, failed = 0, pending = 0, approvals = 0, busy = 0 }
  for _, workspace in pairs(M.all) do
    for _, server in pairs(workspace.servers) do
      local kind = server.status == "needs-auth" and "pending" or server.status
      if status[kind] then status[kind] = status[kind] + 1 end
    end
    status.approvals = status.approvals + #workspace.approvals
    status.busy = status.busy + workspace.busy
  end
  if not vim.deep_equal(status, vim.g.mcp_sidecar_status) then
    vim.g.mcp_sidecar_status = status
    vim.cmd.redrawstatus()
  end
end

---A handler of a notification that changes the workspace, then tells about it.
local function hears(event, change)
  return function(_, params, ctx)
    params = compat.plain(params) or {}
    local workspace = M.all[ctx.client_id]
    if workspace then
      change(workspace, params)
      M.publish()
      events.emit(event, params)
    end
    return vim.NIL
  end
end

local function nothing() end

---Handlers of what the sidecar says by itself.
M.handlers = {
  ["mcp/serverChanged"] = hears(
    "servers",
    function(workspace, params) workspace.servers[params.server.name] = params.server end
  ),
  ["mcp/serverRemoved"] = hears("servers", function(workspace, params) workspace.servers[params.name] = nil end),
  ["mcp/approvalsChanged"] = hears("approvals", function(workspace, params)
    workspace.approvals = params.approvals
    for _, approval in ipairs(params.approvals) do
      approval.client_id = workspace.client_id
    end
    if #params.approvals > 0 then
      -- Not before there is something to ask: from here on it listens by itself.
      require("mcp_sidecar.ui.approval")
    end
  end),
  ["mcp/toolsChanged"] = hears("tools", nothing),
  ["mcp/configReloaded"] = hears("reload", nothing),
  ["mcp/callFinished"] = hears("call", nothing),
  ["mcp/log"] = hears("log", nothing),
  ["mcp/resourceUpdated"] = hears(
    "resource",
    function(_, params) require("mcp_sidecar.resources").refresh(params.server, params.uri) end
  ),
  ["mcp/sdk/message"] = function(_, params, ctx)
    require("mcp_sidecar.sdk").receive(assert(vim.lsp.get_client_by_id(ctx.client_id)), params)
    return vim.empty_dict()
  end,
  ["mcp/sdk/close"] = function() return vim.empty_dict() end,
  ["window/showMessage"] = function(_, params)
    local levels = { vim.log.levels.ERROR, vim.log.levels.WARN, vim.log.levels.INFO, vim.log.levels.DEBUG }
    vim.notify(params.message, levels[params.type], { title = "mcp-sidecar" })
    return vim.NIL
  end,
}

return M
