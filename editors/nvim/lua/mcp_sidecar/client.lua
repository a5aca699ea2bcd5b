--- The door to the sidecar: starts it, sends commands, hears notifications, and starts it again after a crash.
--- Keeps the last picture that the sidecar sent, so that windows can draw at once; decides nothing.

local compat = require("mcp_sidecar.compat")
local config = require("mcp_sidecar.config")

local M = {}

M.name = "mcp_sidecar"
M.version = "0.1.0"

---@class mcp_sidecar.Picture
---@field root string
---@field servers table<string, mcp_sidecar.Server>
---@field approvals mcp_sidecar.Approval[]
---@field commands table<string, boolean>
---@field busy integer calls of ours that run now

---@type table<integer, mcp_sidecar.Picture> by client id
local pictures = {}
---@type table<integer, table<integer, fun(err: table)>> by client id, then request id
local pending = {}
---@type table<string, fun(value: table)> by work done token
local progress = {}
---@type table<string, fun(data: any)[]>
local listeners = {}
---@type table<integer, boolean> clients that end because we want them to
local ending = {}
---@type integer? where commands go when the current buffer does not say
local latest
local tokens = 0

-- Servers inside this Neovim: name → what takes their messages. `sdk.lua` fills it.
M.hosted = {}

local function say(text, level)
  vim.notify(text, level or vim.log.levels.INFO, { title = "mcp-sidecar" })
end
M.say = say

---Reports an error of a command to the user, with what can be done about it.
function M.complain(err)
  if err and err.code ~= -32800 then
    say(err.message or "something went wrong", vim.log.levels.ERROR)
  end
end

-- Events ----------------------------------------------------------------------------------------------------------

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

local autocommands = {
  servers = "McpServerChanged",
  approvals = "McpApproval",
  tools = "McpToolsChanged",
  call = "McpCallFinished",
  reload = "McpConfigReloaded",
}

local function emit(event, data)
  for _, listener in ipairs(vim.list_slice(listeners[event] or {})) do
    local ok, problem = pcall(listener, data)
    if not ok then
      say(problem, vim.log.levels.ERROR)
    end
  end
  if autocommands[event] then
    vim.api.nvim_exec_autocmds("User", { pattern = autocommands[event], modeline = false, data = data })
  end
end

---What a statusline shows. A plain variable, so that showing it loads nothing.
local function publish()
  local status = { connected = 0, failed = 0, pending = 0, approvals = 0, busy = 0 }
  for _, picture in pairs(pictures) do
    for _, server in pairs(picture.servers) do
      local kind = server.status == "needs-auth" and "pending" or server.status
      if status[kind] then
        status[kind] = status[kind] + 1
      end
    end
    status.approvals = status.approvals + #picture.approvals
    status.busy = status.busy + picture.busy
  end
  if not vim.deep_equal(status, vim.g.mcp_sidecar_status) then
    vim.g.mcp_sidecar_status = status
    vim.cmd.redrawstatus()
  end
end

---A handler of a notification that changes the picture, then tells about it.
local function hears(event, change)
  return function(_, params, ctx)
    params = compat.plain(params) or {}
    local picture = pictures[ctx.client_id]
    if picture then
      change(picture, params)
      publish()
      emit(event, params)
    end
    return vim.NIL
  end
end

local function nothing() end

local handlers = {
  ["mcp/serverChanged"] = hears("servers", function(picture, params)
    picture.servers[params.server.name] = params.server
    for buffer in pairs((vim.lsp.get_client_by_id(latest or -1) or {}).attached_buffers or {}) do
      if config.get().lens and config.is_config_file(vim.api.nvim_buf_get_name(buffer)) then
        compat.refresh_lenses(buffer)
      end
    end
  end),
  ["mcp/serverRemoved"] = hears("servers", function(picture, params)
    picture.servers[params.name] = nil
  end),
  ["mcp/approvalsChanged"] = hears("approvals", function(picture, params)
    picture.approvals = params.approvals
    if #params.approvals > 0 then
      -- Not before there is something to ask: from here on it listens by itself.
      require("mcp_sidecar.ui.approval")
    end
  end),
  ["mcp/toolsChanged"] = hears("tools", nothing),
  ["mcp/configReloaded"] = hears("reload", nothing),
  ["mcp/callFinished"] = hears("call", nothing),
  ["mcp/log"] = hears("log", nothing),
  ["mcp/resourceUpdated"] = hears("resource", function(_, params)
    require("mcp_sidecar.resources").refresh(params.server, params.uri)
  end),
  ["mcp/sdk/message"] = function(_, params, ctx)
    require("mcp_sidecar.sdk").receive(vim.lsp.get_client_by_id(ctx.client_id), params)
    return vim.empty_dict()
  end,
  ["mcp/sdk/close"] = function()
    return vim.empty_dict()
  end,
  ["window/showMessage"] = function(_, params)
    local levels = { vim.log.levels.ERROR, vim.log.levels.WARN, vim.log.levels.INFO, vim.log.levels.DEBUG }
    say(params.message, levels[params.type])
    return vim.NIL
  end,
}

-- Commands that a code lens or an action names, and that need a window of ours.
local takes_over = {
  ["mcp.server.logs"] = function(params)
    require("mcp_sidecar.ui.logs").open(params.server)
  end,
  ["mcp.server.test"] = function(params)
    require("mcp_sidecar.ui.result").test(params)
  end,
  ["mcp.server.trust"] = function(params)
    require("mcp_sidecar.ui.approval").trust(params.server, params.trusted)
  end,
  ["mcp.tool.call"] = function(params)
    require("mcp_sidecar.ui.form").start(params.tool, { arguments = params.arguments })
  end,
}

-- The client ------------------------------------------------------------------------------------------------------

local function hosted_names()
  local names = vim.tbl_keys(M.hosted)
  if not M.hosted.nvim then
    table.insert(names, "nvim")
  end
  table.sort(names)
  return names
end

local restart_after_crash

local function on_exit(code, signal, client_id)
  vim.schedule(function()
    local picture, waiting = pictures[client_id], pending[client_id] or {}
    pictures[client_id], pending[client_id] = nil, nil
    for _, settle in pairs(waiting) do
      settle({ code = -32099, message = ("the sidecar ended (exit code %d, signal %d)"):format(code, signal) })
    end
    publish()
    emit("exit", { client_id = client_id, code = code, signal = signal })
    local wanted = ending[client_id] or (code == 0 and signal == 0)
    ending[client_id] = nil
    if latest == client_id then
      latest = nil
    end
    if picture and not wanted and vim.v.exiting == vim.NIL then
      restart_after_crash(picture)
    end
  end)
end

local function on_init(client)
  local offered = client.server_capabilities.executeCommandProvider or {}
  local picture =
    { root = client.root_dir or client.config.root_dir, servers = {}, approvals = {}, busy = 0, commands = {} }
  for _, command in ipairs(offered.commands or {}) do
    picture.commands[command] = true
  end
  pictures[client.id] = picture
  latest = client.id
  M.command("mcp.servers", nil, function(_, result)
    for _, server in ipairs(result and result.servers or {}) do
      picture.servers[server.name] = server
    end
    publish()
    emit("servers", {})
  end, { client = client })
  require("mcp_sidecar.sdk").connect(client)
  emit("ready", client.id)
end

local function on_attach(client, buffer)
  if not config.is_config_file(vim.api.nvim_buf_get_name(buffer)) then
    return
  end
  -- Config files may have comments and trailing commas, which plain JSON colours as mistakes.
  if vim.bo[buffer].filetype == "json" then
    vim.bo[buffer].syntax = "jsonc"
    vim.bo[buffer].commentstring = "// %s"
    vim.api.nvim_buf_call(buffer, function()
      vim.cmd("silent! syntax clear jsonTrailingCommaError")
    end)
  end
  if config.get().lens and client.server_capabilities.codeLensProvider then
    compat.lenses(buffer)
  end
end

---The config of the LSP client, as `lsp/mcp_sidecar.lua` returns it.
---@return vim.lsp.Config
function M.config()
  local cmd = config.cmd() or { "mcp-sidecar" }
  if #cmd == 1 then
    table.insert(cmd, "lsp")
  end
  local commands = {}
  for name, run in pairs(takes_over) do
    commands[name] = function(command)
      run(compat.plain((command.arguments or {})[1]) or {})
    end
  end
  return {
    name = M.name,
    cmd = cmd,
    root_dir = function(buffer, on_dir)
      local root = config.root(buffer)
      if root and M.may_start() then
        on_dir(root)
      end
    end,
    -- 0.10 takes a partial table for the whole, so it is always the whole.
    capabilities = vim.tbl_deep_extend("force", vim.lsp.protocol.make_client_capabilities(), {
      experimental = { mcpSidecar = { version = M.version, approvals = true, elicitation = true } },
    }),
    before_init = function(params)
      params.capabilities.experimental.mcpSidecar.sdkServers = hosted_names()
    end,
    init_options = config.get().settings,
    handlers = handlers,
    commands = commands,
    on_init = on_init,
    on_attach = on_attach,
    on_exit = on_exit,
  }
end

---Whether there is a binary to start; says once what to do if not.
function M.may_start()
  local _, problem = config.cmd()
  if problem then
    vim.notify_once(problem, vim.log.levels.ERROR, { title = "mcp-sidecar" })
  end
  return problem == nil
end

---Attaches to every file of a workspace that has servers, from now on.
function M.enable()
  if compat.has_enable then
    vim.lsp.enable(M.name)
    return
  end
  local function attach(buffer)
    local root = vim.bo[buffer].buftype == "" and config.root(buffer)
    if root and M.may_start() then
      M.start(root, buffer)
    end
  end
  vim.api.nvim_create_autocmd("FileType", {
    group = vim.api.nvim_create_augroup("mcp_sidecar_attach", {}),
    callback = function(event)
      attach(event.buf)
    end,
  })
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      attach(buffer)
    end
  end
end

---@param root string
---@param buffer? integer
---@return integer? client_id
function M.start(root, buffer)
  local wanted = compat.has_enable and vim.lsp.config[M.name] or M.config()
  return compat.start(vim.tbl_extend("force", wanted, { root_dir = root }), buffer)
end

---The running sidecar that the current buffer belongs to, else the one used last.
function M.current()
  local attached = vim.lsp.get_clients({ name = M.name, bufnr = 0 })[1]
  local client = attached or (latest and vim.lsp.get_client_by_id(latest))
  client = client or vim.lsp.get_clients({ name = M.name })[1]
  if client and not compat.is_stopped(client) then
    latest = pictures[client.id] and client.id or latest
    return client
  end
end

---The last picture of the current workspace; an empty one when nothing runs.
---@return mcp_sidecar.Picture
function M.picture()
  local client = M.current()
  return client and pictures[client.id] or { servers = {}, approvals = {}, commands = {}, busy = 0 }
end

---Whether the sidecar that runs knows this command. True when none runs: asking starts one.
function M.knows(command)
  local client = M.current()
  local picture = client and pictures[client.id]
  return not picture or picture.commands[command] == true
end

---Calls back with a sidecar that is ready, started in the current workspace if none runs.
---@param ready fun(client?: vim.lsp.Client, problem?: string)
function M.ensure(ready)
  local client = M.current()
  if client and pictures[client.id] then
    return ready(client)
  end
  local _, problem = config.cmd()
  if problem then
    return ready(nil, problem)
  end
  local id = client and client.id or M.start(config.root(0) or config.workspace())
  if not id then
    return ready(nil, "the sidecar could not be started; :checkhealth mcp_sidecar tells more")
  end
  local deadline, off_ready, off_exit = assert(vim.uv.new_timer()), nil, nil
  local function settle(problem_now)
    if not deadline:is_closing() then
      deadline:close()
      off_ready()
      off_exit()
      ready(not problem_now and vim.lsp.get_client_by_id(id) or nil, problem_now)
    end
  end
  off_ready = M.on("ready", function(started)
    if started == id then
      settle()
    end
  end)
  off_exit = M.on("exit", function(ended)
    if ended.client_id == id then
      settle("the sidecar ended at once; `:Mcp log` and :checkhealth mcp_sidecar tell more")
    end
  end)
  deadline:start(10000, 0, function()
    vim.schedule(function()
      settle("the sidecar did not get ready within 10 s; `:Mcp log` tells more")
    end)
  end)
end

---Sends one command. The callback runs exactly once, whatever happens: also when the sidecar dies meanwhile.
---@param command string
---@param params? table
---@param callback? fun(err?: table, result?: table)
---@param opts? { client?: vim.lsp.Client, progress?: fun(value: table) }
---@return fun() cancel
function M.command(command, params, callback, opts)
  opts, callback = opts or {}, callback or M.complain
  local over, cancelled, client, id, token = false, false, nil, nil, nil
  local function settle(err, result)
    if over then
      return
    end
    over = true
    if id and pending[client.id] then
      pending[client.id][id] = nil
    end
    if token then
      progress[token] = nil
    end
    local picture = client and pictures[client.id]
    if picture and command == "mcp.tool.call" then
      picture.busy = math.max(0, picture.busy - 1)
      publish()
    end
    callback(compat.plain(err), compat.plain(result))
  end
  local function send(ready, problem)
    client = ready
    if not client or cancelled then
      return settle({ code = cancelled and -32800 or -32099, message = cancelled and "cancelled" or problem })
    end
    local request = { command = command, arguments = { params and next(params) and params or vim.empty_dict() } }
    if opts.progress then
      tokens = tokens + 1
      token = "mcp-sidecar-" .. tokens
      request.workDoneToken, progress[token] = token, opts.progress
    end
    local sent
    sent, id = compat.request(client, "workspace/executeCommand", request, settle)
    if not sent then
      return vim.schedule(function()
        settle({ code = -32099, message = "the sidecar is not running" })
      end)
    end
    local picture = pictures[client.id]
    if picture and command == "mcp.tool.call" then
      picture.busy = picture.busy + 1
      publish()
    end
    if not over then
      pending[client.id] = pending[client.id] or {}
      pending[client.id][id] = settle
    end
  end
  if opts.client then
    send(opts.client)
  else
    M.ensure(send)
  end
  return function()
    cancelled = true
    if client and id and not over then
      compat.cancel(client, id)
    end
  end
end

-- Ending and beginning again ------------------------------------------------------------------------------------

---Ends the sidecar of the current workspace, and all servers with it.
function M.stop()
  local client = M.current()
  if client then
    ending[client.id] = true
    compat.stop(client)
  end
  return client
end

---Ends the sidecar and starts it again, with the buffers that it had.
---@param done? fun()
function M.restart(done)
  local client = M.current()
  if not client then
    return M.ensure(done or nothing)
  end
  local root = pictures[client.id] and pictures[client.id].root or client.config.root_dir
  local buffers = vim.tbl_keys(client.attached_buffers)
  local off
  off = M.on("exit", function(ended)
    if ended.client_id ~= client.id then
      return
    end
    off()
    M.start_again(root, buffers)
    M.ensure(done or nothing)
  end)
  M.stop()
end

---@param root string
---@param buffers integer[]
function M.start_again(root, buffers)
  local attached = false
  for _, buffer in ipairs(buffers) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      attached = M.start(root, buffer) ~= nil or attached
    end
  end
  if not attached then
    M.start(root)
  end
end

---@type integer[] when the last crashes were, in milliseconds
local crashes = {}

function restart_after_crash(picture)
  local now = vim.uv.now()
  crashes = vim.tbl_filter(function(time)
    return now - time < 60000
  end, crashes)
  table.insert(crashes, now)
  if #crashes >= 3 then
    crashes = {}
    say(
      "the sidecar ended three times within a minute and stays down; `:Mcp log` tells why, `:Mcp up` tries again",
      vim.log.levels.ERROR
    )
    return
  end
  local wait = 250 * 4 ^ (#crashes - 1)
  say(("the sidecar ended unexpectedly; starting it again in %.2g s"):format(wait / 1000), vim.log.levels.WARN)
  local buffers = vim.tbl_filter(function(buffer)
    return vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].buftype == "" and config.root(buffer) == picture.root
  end, vim.api.nvim_list_bufs())
  vim.defer_fn(function()
    if vim.v.exiting == vim.NIL and not M.current() then
      M.start_again(picture.root, buffers)
    end
  end, wait)
end

local group = vim.api.nvim_create_augroup("mcp_sidecar_client", {})

-- The client swallows errors with the code for "cancelled": such a request is over, but its callback never runs.
vim.api.nvim_create_autocmd("LspRequest", {
  group = group,
  callback = function(event)
    local settle = (pending[event.data.client_id] or {})[event.data.request_id]
    if settle and event.data.request.type == "complete" then
      vim.schedule(function()
        settle({ code = -32800, message = "cancelled" })
      end)
    end
  end,
})

vim.api.nvim_create_autocmd("LspProgress", {
  group = group,
  callback = function(event)
    local params = event.data.params or {}
    local report = progress[params.token]
    if report then
      report(params.value)
    end
  end,
})

return M
