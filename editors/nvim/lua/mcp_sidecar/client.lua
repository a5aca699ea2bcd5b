--- The connection to the sidecar: starts it, stops it, sends commands.
--- The last known state is in `workspaces`, listeners are in `events`.

local compat = require("mcp_sidecar.compat")
local config = require("mcp_sidecar.config")
local events = require("mcp_sidecar.events")
local workspaces = require("mcp_sidecar.workspaces")
local unsaved = require("mcp_sidecar.unsaved")

local M = {}

M.name = "mcp_sidecar"
M.version = "0.1.0"
M.on = events.on

local READY_MS = 10000
local CANCELLED, NOT_RUNNING = -32800, -32099

---@class mcp_sidecar.Error an error as the sidecar reports it
---@field code integer
---@field message string
---@field data? mcp_sidecar.ErrorData

---@type table<integer, table<integer, fun(err: mcp_sidecar.Error)?>?> by client id, then request id
local pending = {}
---@type table<string, fun(value: table)?> by work done token
local progress = {}
---@type table<integer, boolean?> clients that were stopped on purpose
local ending = {}
---@type integer? where commands go when the current buffer has no client
local latest
local tokens = 0

---@type table<string, mcp_sidecar.LuaServer?> servers inside this Neovim; `sdk.lua` fills it
M.hosted = {}

---@param text string
---@param level? integer
function M.info(text, level) vim.notify(text, level or vim.log.levels.INFO, { title = "mcp-sidecar" }) end

---@param text string
function M.warn(text) M.info(text, vim.log.levels.WARN) end

---Reports the error of a command to the user, unless the user cancelled it.
---@param err? mcp_sidecar.Error|string
function M.error(err)
  local message = type(err) == "table" and (err.code ~= CANCELLED and err.message or nil) or err
  if type(message) == "string" then M.info(message, vim.log.levels.ERROR) end
end

-- Commands of code lenses and code actions that the plugin handles with its own windows.
local command_handlers = {
  ["mcp.server.logs"] = function(params) require("mcp_sidecar.ui.logs").open(params.server) end,
  ["mcp.server.test"] = function(params) require("mcp_sidecar.ui.result").test(params) end,
  ["mcp.server.trust"] = function(params) require("mcp_sidecar.ui.approval").trust(params.server, params.trusted) end,
  ["mcp.servers"] = function(params) require("mcp_sidecar.ui.dashboard").open("servers", nil, params.server) end,
  ["mcp.tool.call"] = function(params)
    require("mcp_sidecar.ui.call").start(params.tool, { arguments = params.arguments })
  end,
  ["mcp.action.run"] = function(params)
    -- The sidecar puts the result where the action says; only a failure is reported here.
    if params.action then return M.command("mcp.action.run", params) end
    require("mcp_sidecar.ui.call").pick_for(params.uri, params.range)
  end,
}

-- The client ------------------------------------------------------------------------------------------------------

local function on_exit(code, signal, client_id)
  vim.schedule(function()
    local workspace, waiting = workspaces.all[client_id], pending[client_id] or {}
    workspaces.all[client_id], pending[client_id] = nil, nil
    for _, settle in pairs(waiting) do
      settle({ code = NOT_RUNNING, message = ("the sidecar exited (code %d, signal %d)"):format(code, signal) })
    end
    workspaces.publish()
    if latest == client_id then latest = nil end
    local wanted = ending[client_id] or (code == 0 and signal == 0)
    ending[client_id] = nil
    events.emit("exit", { client_id = client_id, crashed = not wanted, root = workspace and workspace.root })
  end)
end

local function on_init(client)
  workspaces.all[client.id] = workspaces.empty(client.id, client.root_dir or client.config.root_dir)
  latest = client.id
  M.refresh(client)
  require("mcp_sidecar.auto_restart")
  require("mcp_sidecar.sdk").connect(client)
  events.emit("ready", client.id)
end

local function on_attach(client, buffer)
  if not config.is_config_file(vim.api.nvim_buf_get_name(buffer)) then return end
  -- Config files may have comments and trailing commas, which plain JSON highlights as errors.
  if vim.bo[buffer].filetype == "json" then
    vim.bo[buffer].syntax = "jsonc"
    vim.bo[buffer].commentstring = "// %s"
    vim.api.nvim_buf_call(buffer, function() vim.cmd("silent! syntax clear jsonTrailingCommaError") end)
  end
  if config.get().lens and client.server_capabilities.codeLensProvider then compat.lenses(buffer) end
end

---The config of the LSP client, as `lsp/mcp_sidecar.lua` returns it.
---@return vim.lsp.Config
function M.config()
  local cmd = config.cmd() or { "mcp-sidecar" }
  if #cmd == 1 then table.insert(cmd, "lsp") end
  return {
    name = M.name,
    cmd = cmd,
    root_dir = function(buffer, on_dir)
      local root = config.root(buffer)
      if root and M.may_start() then on_dir(root) end
    end,
    -- In 0.10 a partial table replaces all defaults, so this one is complete.
    capabilities = vim.tbl_deep_extend("force", vim.lsp.protocol.make_client_capabilities(), {
      experimental = { mcpSidecar = { version = M.version, approvals = true, elicitation = true } },
    }),
    before_init = function(params)
      local names = vim.tbl_keys(vim.tbl_extend("keep", M.hosted, { nvim = true }))
      table.sort(names)
      params.capabilities.experimental.mcpSidecar.sdkServers = names
    end,
    init_options = config.get().settings,
    handlers = workspaces.handlers,
    commands = vim.tbl_map(function(run)
      return function(command) run(compat.plain((command.arguments or {})[1]) or {}) end
    end, command_handlers),
    on_init = on_init,
    on_attach = on_attach,
    on_exit = on_exit,
  }
end

---Whether there is a binary to start; if not, the user is told once what to do.
---@return boolean
function M.may_start()
  local _, problem = config.cmd()
  if problem then
    -- Later, because the first screen erases messages that are shown while Neovim starts.
    vim.schedule(function() vim.notify_once(problem, vim.log.levels.ERROR, { title = "mcp-sidecar" }) end)
  end
  return problem == nil
end

---Attaches to every file of a workspace that has servers, from now on.
function M.enable()
  if compat.has_enable then return vim.lsp.enable(M.name) end
  local function attach(buffer)
    local root = vim.bo[buffer].buftype == "" and config.root(buffer)
    if root and M.may_start() then M.start(root, buffer) end
  end
  vim.api.nvim_create_autocmd("FileType", {
    group = vim.api.nvim_create_augroup("mcp_sidecar_attach", {}),
    callback = function(event) attach(event.buf) end,
  })
  vim.iter(vim.api.nvim_list_bufs()):filter(vim.api.nvim_buf_is_loaded):each(attach)
end

---@param root string
---@param buffer? integer
---@return integer? client_id
function M.start(root, buffer)
  local wanted = compat.config(M.name) or M.config()
  return compat.start(vim.tbl_extend("force", wanted, { root_dir = root }) --[[@as vim.lsp.ClientConfig]], buffer)
end

---The running sidecar that the current buffer belongs to, else the one used last.
---@return vim.lsp.Client?
function M.current()
  local client = vim.lsp.get_clients({ name = M.name, bufnr = 0 })[1]
    or (latest and vim.lsp.get_client_by_id(latest))
    or vim.lsp.get_clients({ name = M.name })[1]
  if client and not compat.is_stopped(client) then
    latest = workspaces.all[client.id] and client.id or latest
    return client
  end
end

---The last known state of the current workspace; empty when no sidecar runs.
---@return mcp_sidecar.Workspace
function M.workspace()
  local client = M.current()
  return client and workspaces.all[client.id] or workspaces.empty(-1)
end

---Calls back with a sidecar that is ready, started in the current workspace if none runs.
---@param ready fun(client?: vim.lsp.Client, problem?: string)
---@param starting? integer a client that has just been started
function M.ensure(ready, starting)
  local client = not starting and M.current() or nil
  if client and workspaces.all[client.id] then return ready(client) end
  local _, problem = config.cmd()
  local id = not problem and (starting or client and client.id or M.start(config.root(0) or config.workspace_folder()))
  if not id then return ready(nil, problem or "the sidecar could not be started; see `:checkhealth mcp_sidecar`") end
  local offs, settled = {}, false
  local function settle(trouble)
    if settled then return end
    settled = true
    vim.iter(offs):each(function(off) off() end)
    ready(not trouble and vim.lsp.get_client_by_id(id) or nil, trouble)
  end
  offs[1] = M.on("ready", function(started)
    if started == id then settle() end
  end)
  offs[2] = M.on("exit", function(ended)
    if ended.client_id ~= id then return end
    settle("the sidecar exited immediately; see `:Mcp log` and `:checkhealth mcp_sidecar`")
  end)
  local late = ("the sidecar was not ready within %d s; see `:Mcp log`"):format(READY_MS / 1000)
  vim.defer_fn(function() settle(late) end, READY_MS)
end

---Sends one command. The callback runs exactly once, even when the sidecar exits meanwhile.
---@param command string
---@param params? table
---@param callback? fun(err?: mcp_sidecar.Error, result?: any)
---@param opts? { client?: vim.lsp.Client, progress?: fun(value: table) }
---@return fun() cancel
function M.command(command, params, callback, opts)
  opts, callback = opts or {}, callback or M.error
  local over, cancelled, token = false, false, nil
  local client, id ---@type vim.lsp.Client?, integer?
  local before = unsaved.now()
  ---Counts the running calls of this Neovim.
  local function count(by)
    local workspace = client and command == "mcp.tool.call" and workspaces.all[client.id]
    if not workspace then return end
    workspace.busy = workspace.busy + by
    workspaces.publish()
  end
  local function settle(err, result)
    if over then return end
    over = true
    if token then progress[token] = nil end
    if client and id then
      (pending[client.id] or {})[id] = nil
      count(-1)
    end
    err, result = compat.plain(err), compat.plain(result)
    callback(err, result)
    local left = type(result) == "table" and result.unsaved and unsaved.save(result.unsaved, before)
    if left then M.warn(left) end
  end
  local function send(ready, problem)
    client = ready
    if cancelled then return settle({ code = CANCELLED, message = "cancelled" }) end
    if not client then return settle({ code = NOT_RUNNING, message = problem }) end
    local request = { command = command, arguments = { params and next(params) and params or vim.empty_dict() } }
    if opts.progress then
      tokens = tokens + 1
      token = "mcp-sidecar-" .. tokens
      request.workDoneToken, progress[token] = token, opts.progress
    end
    local sent, number = compat.request(client, "workspace/executeCommand", request, settle)
    if not sent then
      return vim.schedule(function() settle({ code = NOT_RUNNING, message = "the sidecar is not running" }) end)
    end
    id = number
    count(1)
    if over then return count(-1) end
    pending[client.id] = pending[client.id] or {}
    pending[client.id][number] = settle
  end
  if opts.client then
    send(opts.client)
  else
    M.ensure(send)
  end
  return function()
    cancelled = true
    if client and id and not over then compat.cancel(client, id) end
  end
end

---Sends a command, reports its failure to the user, and continues with its result.
---@param command string
---@param params? table
---@param done fun(result: any)
function M.fetch(command, params, done)
  M.command(command, params, function(err, result)
    if err then return M.error(err) end
    done(result)
  end)
end

---Fetches all servers again. Their latency is not part of any notification.
---@param client? vim.lsp.Client
function M.refresh(client)
  M.command("mcp.servers", nil, function(_, result)
    local workspace = client and workspaces.all[client.id] or M.workspace()
    for _, server in ipairs(result and result.servers or {}) do
      workspace.servers[server.name] = server
    end
    workspaces.publish()
    events.emit("servers", {})
  end, { client = client })
end

-- Stopping and restarting ---------------------------------------------------------------------------------------

---Stops the sidecar of the current workspace and all its servers.
function M.stop()
  local client = M.current()
  if client then
    ending[client.id] = true
    compat.stop(client)
  end
end

---Restarts the sidecar.
---@param done? fun(client?: vim.lsp.Client, problem?: string)
function M.restart(done)
  done = done or function() end
  local client, off = M.current(), function() end
  if not client then return M.ensure(done) end
  off = M.on("exit", function(ended)
    if ended.client_id ~= client.id then return end
    off()
    M.ensure(done, M.start_again(ended.root or config.workspace_folder()))
  end)
  M.stop()
end

---Starts a sidecar for a workspace and attaches the open files of it.
---@param root string
---@return integer? client_id
function M.start_again(root)
  local id ---@type integer?
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local is_file = vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].buftype == ""
    if is_file and config.root(buffer) == root then id = M.start(root, buffer) end
  end
  return id or M.start(root)
end

local group = vim.api.nvim_create_augroup("mcp_sidecar_client", {})

-- The LSP client drops errors with the code for "cancelled": the request is complete, but its callback never runs.
vim.api.nvim_create_autocmd("LspRequest", {
  group = group,
  callback = function(event)
    local settle = (pending[event.data.client_id] or {})[event.data.request_id]
    if settle and event.data.request.type == "complete" then
      vim.schedule(function() settle({ code = CANCELLED, message = "cancelled" }) end)
    end
  end,
})

vim.api.nvim_create_autocmd("LspProgress", {
  group = group,
  callback = function(event)
    local report = progress[event.data.params.token]
    if report then report(event.data.params.value) end
  end,
})

return M
