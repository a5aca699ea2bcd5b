--- The last known state of each workspace, as the sidecar sent it. Only notifications of the sidecar change it.

local compat = require("mcp_sidecar.compat")
local events = require("mcp_sidecar.events")

local M = {}

---@class mcp_sidecar.Question: mcp_sidecar.Approval a question, or a group of them, which has an id, kind, title and answers
---@field client_id integer the LSP client of the sidecar that asks
---@field members? mcp_sidecar.Question[] the questions of a group, in the order to show them

---@class mcp_sidecar.Workspace
---@field client_id integer
---@field root? string
---@field servers table<string, mcp_sidecar.ServerStatus>
---@field approvals mcp_sidecar.Question[]
---@field groups mcp_sidecar.Question[]
---@field fetched table<string, mcp_sidecar.Approval|true|nil> questions whose large arguments were fetched, or are on the way
---@field busy integer running calls of this Neovim

---@type table<integer, mcp_sidecar.Workspace?> by client id
M.all = {}

---@param client_id integer
---@param root? string
---@return mcp_sidecar.Workspace
function M.empty(client_id, root)
  return { client_id = client_id, root = root, servers = {}, approvals = {}, groups = {}, fetched = {}, busy = 0 }
end

---The questions of all workspaces, oldest first.
---@return mcp_sidecar.Question[]
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

---The same with each group instead of its members.
---@return mcp_sidecar.Question[]
function M.questions()
  local listed, group_of, seen = {}, {}, {}
  for _, workspace in pairs(M.all) do
    for _, group in ipairs(workspace.groups) do
      for _, member in ipairs(group.members or {}) do
        group_of[member.id] = group
      end
    end
  end
  for _, approval in ipairs(M.approvals()) do
    local shown = group_of[approval.id] or approval
    if not seen[shown.id] then table.insert(listed, shown) end
    seen[shown.id] = true
  end
  return listed
end

---The question or group with this id.
---@param id? string
---@return mcp_sidecar.Question?
function M.find(id)
  local function has_id(asked) return asked.id == id end
  return vim.iter(M.questions()):find(has_id) or vim.iter(M.approvals()):find(has_id)
end

---The group that a question is in, or itself.
---@param id string
---@return mcp_sidecar.Question?
function M.listed(id)
  return vim.iter(M.questions()):find(function(asked)
    return asked.id == id or vim.iter(asked.members or {}):any(function(member) return member.id == id end)
  end)
end

---The ids of all questions and groups.
---@return table<string, true?>
function M.waiting_ids()
  local ids = {}
  for _, asked in ipairs(vim.list_extend(M.questions(), M.approvals())) do
    ids[asked.id] = true
  end
  return ids
end

---@param workspace mcp_sidecar.Workspace
---@param list { approvals: table[], groups?: table[] } as the sidecar sends it, or as the workspace has it
local function set_questions(workspace, list)
  local approvals, fetched, by_id = list.approvals, {}, {}
  workspace.approvals, workspace.groups = {}, list.groups or {}
  for _, approval in ipairs(approvals) do
    local whole = workspace.fetched[approval.id]
    fetched[approval.id], approval.client_id = whole, workspace.client_id
    if approval.largeArguments and type(whole) == "table" then
      local parts = { arguments = whole.arguments, change = whole.change, detail = whole.detail }
      approval = vim.tbl_extend("force", approval, parts)
      approval.largeArguments = nil
    end
    table.insert(workspace.approvals, approval)
    by_id[approval.id] = approval
  end
  for _, group in ipairs(workspace.groups) do
    group.client_id = workspace.client_id
    group.members = vim.tbl_map(function(id) return by_id[id] end, group.ids)
  end
  workspace.fetched = fetched
end

---Fetches the arguments of a question that were too large for the list, once. The question then has them.
---@param asked mcp_sidecar.Question
---@param done fun()
function M.fetch_arguments(asked, done)
  local workspace = M.all[asked.client_id]
  if not workspace or not asked.largeArguments or workspace.fetched[asked.id] then return end
  workspace.fetched[asked.id] = true
  local client = require("mcp_sidecar.client")
  client.command("mcp.approvals", { id = asked.id }, function(err, result)
    workspace.fetched[asked.id] = result and result.approvals[1]
    if err then return client.error(err) end
    set_questions(workspace, workspace)
    done()
  end, { client = vim.lsp.get_client_by_id(asked.client_id) })
end

---What the statusline counts a server as.
---@type table<mcp_sidecar.Tone, string?>
local counted = { good = "connected", bad = "failed", busy = "pending", attention = "pending" }

---@class mcp_sidecar.Counts
---@field running boolean whether a sidecar runs
---@field servers integer all of them
---@field connected integer
---@field failed integer
---@field pending integer
---@field approvals integer
---@field busy integer running calls of this Neovim

M.no_counts = { servers = 0, connected = 0, failed = 0, pending = 0, approvals = 0, busy = 0 }

---Updates what a statusline shows: a plain variable, so that reading it loads nothing.
function M.publish()
  local status = vim.tbl_extend("error", { running = next(M.all) ~= nil }, M.no_counts)
  for _, workspace in pairs(M.all) do
    status.servers = status.servers + vim.tbl_count(workspace.servers)
    for _, server in pairs(workspace.servers) do
      local kind = counted[server.summary.tone]
      if kind then status[kind] = (status[kind] or 0) + 1 end
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
    set_questions(workspace, params)
    if #params.approvals > 0 then
      -- Loaded with the first question; from then on it listens to the event.
      require("mcp_sidecar.ui.approval")
    end
  end),
  ["mcp/toolsChanged"] = handler("tools", nothing),
  ["mcp/configReloaded"] = handler("reload", nothing),
  ["mcp/callFinished"] = handler("call", function() vim.schedule(require("mcp_sidecar.open_files").reload) end),
  ["mcp/log"] = handler("log", nothing),
  ["mcp/agentsChanged"] = handler("agents", nothing),
  ["mcp/resourceUpdated"] = handler(
    "resource",
    function(_, params) require("mcp_sidecar.resources").refresh(params.server, params.uri) end
  ),
  ["mcp/signInPage"] = function(_, params)
    require("mcp_sidecar.ui.sign_in").show(params.server, params.page)
    return vim.NIL
  end,
  ["mcp/buffer"] = function(_, params) return require("mcp_sidecar.open_files").unsaved(params.file) end,
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
  ["window/showDocument"] = function(err, params, ctx)
    local answer = vim.lsp.handlers["window/showDocument"](err, params, ctx)
    if not params.external or answer.success then return answer end
    -- There is no browser here. The user opens the page on another machine.
    if not require("mcp_sidecar.ui.sign_in").shows(params.uri) then
      vim.notify("Open this page in your browser: " .. params.uri, nil, { title = "mcp-sidecar" })
    end
    return { success = true }
  end,
}

return M
