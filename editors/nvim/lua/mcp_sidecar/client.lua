--- The door to the sidecar: starts it, ends it, sends commands.
--- Decides nothing: what is known is in `pictures`, who hears of it in `events`.

local compat = require("mcp_sidecar.compat")
local config = require("mcp_sidecar.config")
local events = require("mcp_sidecar.events")
local pictures = require("mcp_sidecar.pictures")

local M = {}

M.name = "mcp_sidecar"
M.version = "0.1.0"
M.on = events.on

---@type table<integer, table<integer, fun(err: table)>> by client id, then request id
local pending = {}
---@type table<string, fun(value: table)> by work done token
local progress = {}
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

-- Commands that a code lens or a code action names, and that have a window of ours.
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
  ["mcp.servers"] = function(params)
    require("mcp_sidecar.ui.dashboard").open("servers", nil, params.server)
  end,
  ["mcp.tool.call"] = function(params)
    require("mcp_sidecar.ui.form").start(params.tool, { arguments = params.arguments })
  end,
  ["mcp.action.run"] = function(params)
    if params.action then
      -- The sidecar puts the result where the action says; here only a failure is told.
      return M.command("mcp.action.run", params)
    end
    require("mcp_sidecar.ui.form").pick_for(params.uri, params.range)
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

local function on_exit(code, signal, client_id)
  vim.schedule(function()
    local picture, waiting = pictures.all[client_id], pending[client_id] or {}
    pictures.all[client_id], pending[client_id] = nil, nil
    for _, settle in pairs(waiting) do
      settle({ code = -32099, message = ("the sidecar ended (exit code %d, signal %d)"):format(code, signal) })
    end
    pictures.publish()
    if latest == client_id then
      latest = nil
    end
    local wanted = ending[client_id] or (code == 0 and signal == 0)
    ending[client_id] = nil
    events.emit("exit", { client_id = client_id, crashed = not wanted, root = picture and picture.root })
  end)
end

local function on_init(client)
  local offered = client.server_capabilities.executeCommandProvider or {}
  local picture = {
    client_id = client.id,
    root = client.root_dir or client.config.root_dir,
    servers = {},
    approvals = {},
    busy = 0,
    commands = {},
  }
  for _, command in ipairs(offered.commands or {}) do
    picture.commands[command] = true
  end
  pictures.all[client.id] = picture
  latest = client.id
  M.command("mcp.servers", nil, function(_, result)
    for _, server in ipairs(result and result.servers or {}) do
      picture.servers[server.name] = server
    end
    pictures.publish()
    events.emit("servers", {})
  end, { client = client })
  require("mcp_sidecar.revive")
  require("mcp_sidecar.sdk").connect(client)
  events.emit("ready", client.id)
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
    handlers = pictures.handlers,
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
    latest = pictures.all[client.id] and client.id or latest
    return client
  end
end

---The last picture of the current workspace; an empty one when nothing runs.
---@return mcp_sidecar.Picture
function M.picture()
  local client = M.current()
  return client and pictures.all[client.id] or { servers = {}, approvals = {}, commands = {}, busy = 0 }
end

---Whether the sidecar that runs knows this command. True when none runs: asking starts one.
function M.knows(command)
  local client = M.current()
  local picture = client and pictures.all[client.id]
  return not picture or picture.commands[command] == true
end

---Calls back with a sidecar that is ready, started in the current workspace if none runs.
---@param ready fun(client?: vim.lsp.Client, problem?: string)
function M.ensure(ready)
  local client = M.current()
  if client and pictures.all[client.id] then
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
    local picture = client and pictures.all[client.id]
    if picture and command == "mcp.tool.call" then
      picture.busy = math.max(0, picture.busy - 1)
      pictures.publish()
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
    local picture = pictures.all[client.id]
    if picture and command == "mcp.tool.call" then
      picture.busy = picture.busy + 1
      pictures.publish()
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
    return M.ensure(done or function() end)
  end
  local root = pictures.all[client.id] and pictures.all[client.id].root or client.config.root_dir
  local buffers = vim.tbl_keys(client.attached_buffers)
  local off
  off = M.on("exit", function(ended)
    if ended.client_id ~= client.id then
      return
    end
    off()
    M.start_again(root, buffers)
    M.ensure(done or function() end)
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
