--- The last known state of each workspace, as the sidecar sent it. Only notifications of the sidecar change it.

local compat = require("mcp_sidecar.compat")
local events = require("mcp_sidecar.events")

local M = {}

---@class mcp_sidecar.ClientApproval: mcp_sidecar.Approval
---@field client_id integer the LSP client of the sidecar that asks

---@class mcp_sidecar.Workspace
---@field client_id integer
---@field root? string
---@field servers table<string, mcp_sidecar.ServerStatus>
---@field approvals mcp_sidecar.ClientApproval[]
---@field busy integer running calls of this Neovim

---@type table<integer, mcp_sidecar.Workspace?> by client id
M.all = {}

---@param client_id integer
---@param root? string
---@return mcp_sidecar.Workspace
function M.empty(client_id, root) return { client_id = client_id, root = root, servers = {}, approvals = {}, busy = 0 } end

---The questions of all workspaces, oldest first.
---@return mcp_sidecar.ClientApproval[]
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

---Updates what a statusline shows: a plain variable, so that reading it loads nothing.
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

---Returns a notification handler that changes the state and then emits an event.
local function handler(event, change)
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

---Handlers of the notifications of the sidecar.
M.handlers = {
  ["mcp/serverChanged"] = handler(
    "servers",
    function(workspace, params) workspace.servers[params.server.name] = params.server end
  ),
  ["mcp/serverRemoved"] = handler("servers", function(workspace, params) workspace.servers[params.name] = nil end),
  ["mcp/approvalsChanged"] = handler("approvals", function(workspace, params)
    workspace.approvals = params.approvals
    for _, approval in ipairs(params.approvals) do
      approval.client_id = workspace.client_id
    end
    if #params.approvals > 0 then
      -- Loaded with the first question; from then on it listens to the event.
      require("mcp_sidecar.ui.approval")
    end
  end),
  ["mcp/toolsChanged"] = handler("tools", nothing),
  ["mcp/configReloaded"] = handler("reload", nothing),
  ["mcp/callFinished"] = handler("call", nothing),
  ["mcp/log"] = handler("log", nothing),
  ["mcp/resourceUpdated"] = handler(
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
