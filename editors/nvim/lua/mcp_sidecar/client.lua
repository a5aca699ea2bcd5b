--- The connection to the sidecar: starts it, stops it, sends commands.
--- The last known state is in `workspaces`, listeners are in `events`.

local binary = require("mcp_sidecar.binary")
local compat = require("mcp_sidecar.compat")
local config = require("mcp_sidecar.config")
local events = require("mcp_sidecar.events")
local open_files = require("mcp_sidecar.open_files")
local workspaces = require("mcp_sidecar.workspaces")

local M = {}

M.name = "mcp_sidecar"
M.on = events.on

local READY_MS = 10000
local CANCELLED, NOT_RUNNING = -32800, -32099

---@class mcp_sidecar.Error an error as the sidecar reports it
---@field code integer
---@field message string
---@field data? mcp_sidecar.ErrorData
---@field crashed? boolean the sidecar crashed, which the user is told in one message for all requests

---@type table<integer, table<integer, fun(err: mcp_sidecar.Error)?>?> by client id, then request id
local pending = {}
---@type table<string, fun(value: table)?> by work done token
local progress = {}
---@type table<integer, boolean?> clients that were stopped on purpose
local ending = {}
---@type table<integer, mcp_sidecar.Exit?> by client id
local exits = {}
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

---How the user performs a remedy in Neovim, such as `:Mcp trust demo`.
---@param remedy mcp_sidecar.Remedy
function M.typed(remedy)
  local names, on_server = require("mcp_sidecar.commands").names(), remedy.command:match("^mcp%.server%.(%l+)$")
  local word = remedy.arguments.trusted == false and "distrust" or on_server or remedy.command:match("^mcp%.(%l+)$")
  if word ~= "servers" and not vim.list_contains(names, word) then return remedy.title end
  local command = (":Mcp %s %s %s"):format(
    word ~= "servers" and word or "",
    on_server and remedy.arguments.server or "",
    remedy.arguments.timeout or ""
  )
  return ("`%s`"):format(vim.trim(command))
end

---Reports the error of a command to the user with what to do about it, unless the user cancelled it.
---@param err? mcp_sidecar.Error|string
function M.error(err)
  local message, remedy = err, nil
  if type(err) == "table" then
    local known = err.code == CANCELLED or err.crashed
    message, remedy = not known and err.message or nil, err.data and err.data.remedy
  end
  if type(message) ~= "string" then return end
  local hint = remedy and (" (%s: %s)"):format(remedy.title, M.typed(remedy)) or ""
  M.info(message .. hint, vim.log.levels.ERROR)
end

-- The client ------------------------------------------------------------------------------------------------------

local function on_exit(code, signal, client_id)
  vim.schedule(function()
    local workspace, waiting, exit = workspaces.all[client_id], pending[client_id] or {}, exits[client_id] or {}
    code, signal = exit.code or code, exit.signal or signal
    local crashed = not ending[client_id] and (code ~= 0 or signal ~= 0)
    local lost = workspace and workspace.busy or 0
    workspaces.all[client_id], pending[client_id], exits[client_id], ending[client_id] = nil, nil, nil, nil
    if latest == client_id then latest = nil end
    for _, settle in pairs(waiting) do
      local message = ("the sidecar exited (code %d, signal %d)"):format(code, signal)
      settle({ code = NOT_RUNNING, message = message, crashed = crashed })
    end
    workspaces.publish()
    local root = workspace and workspace.root
    events.emit("exit", { client_id = client_id, crashed = crashed, root = root, lost = lost })
  end)
end

local function on_init(client)
  exits[client.id] = compat.exit_of(client)
  workspaces.all[client.id] = workspaces.empty(client.id, client.root_dir or client.config.root_dir)
  latest = client.id
  require("mcp_sidecar.auto_restart")
  require("mcp_sidecar.sdk").connect(client)
  events.emit("ready", client.id)
  vim.schedule(function() require("mcp_sidecar.agents").greet() end)
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
  return {
    name = M.name,
    -- Searched at each start, because an installation or an update may have changed it.
    cmd = function(dispatchers, given)
      local cmd = binary.cmd() or { "mcp-sidecar" }
      if #cmd == 1 then table.insert(cmd, "lsp") end
      return compat.spawn(cmd, dispatchers, given)
    end,
    root_dir = function(buffer, on_dir)
      local root = config.root(buffer)
      if root and M.may_start() then on_dir(root) end
    end,
    -- In 0.10 a partial table replaces all defaults, so this one is complete.
    capabilities = vim.tbl_deep_extend("force", vim.lsp.protocol.make_client_capabilities(), {
      experimental = { mcpSidecar = { version = binary.version, approvals = true, elicitation = true, buffers = true } },
    }),
    before_init = function(params)
      local names = vim.tbl_keys(vim.tbl_extend("keep", M.hosted, { nvim = true }))
      params.capabilities.experimental.mcpSidecar.sdkServers = vim.fn.sort(names)
    end,
    init_options = config.get().settings,
    handlers = workspaces.handlers,
    commands = vim.tbl_map(function(run)
      return function(command) run(compat.plain((command.arguments or {})[1]) or {}) end
    end, require("mcp_sidecar.actions").handlers),
    on_init = on_init,
    on_attach = on_attach,
    on_exit = on_exit,
  }
end

---Whether there is a binary to start; if not, the user is told once what to do.
function M.may_start()
  local _, problem = binary.cmd()
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
  vim.iter(open_files.list()):each(attach)
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
  local _, problem = binary.cmd()
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
  local before = open_files.modified()
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
    local left = type(result) == "table" and result.unsaved and open_files.save(result.unsaved, before)
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
  local ensure = opts.client and function(ready) ready(opts.client) end or M.ensure
  ensure(send)
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

---Fetches how fast each server answers, which is in no notification. Everything else in the answer may be older than
---a notification that came while it was on its way.
function M.refresh()
  M.command("mcp.servers", nil, function(_, result)
    local known = M.workspace().servers
    for _, server in ipairs(result and result.servers or {}) do
      if known[server.name] then known[server.name].latencyMs = server.latencyMs end
    end
    events.emit("servers", {})
  end)
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
  done = done or function(_, problem) M.error(problem) end
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
  for _, buffer in ipairs(open_files.list()) do
    if config.root(buffer) == root then id = M.start(root, buffer) end
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
