--- The differences between the supported versions of Neovim (0.10 and later).

local M = {}

local has11 = vim.fn.has("nvim-0.11") == 1
local has12 = vim.fn.has("nvim-0.12") == 1

-- The values of these keys come from servers, so null in them is kept.
local foreign = {
  structuredContent = true,
  arguments = true,
  result = true,
  inputSchema = true,
  outputSchema = true,
  schema = true,
  message = true,
}

---JSON null is `vim.NIL` since 0.12 and nil before. Turns it into nil wherever it means "absent".
function M.plain(value)
  if value == vim.NIL then return nil end
  if type(value) == "table" then
    for key, inner in pairs(value) do
      if inner == vim.NIL and type(key) ~= "number" then
        value[key] = nil
      elseif type(inner) == "table" and not foreign[key] then
        value[key] = M.plain(inner)
      end
    end
  end
  return value
end

---Calls a method of a client: before 0.11 they were plain functions.
local function method(client, name, ...)
  if has11 then return client[name](client, ...) end
  return client[name](...)
end

---@return boolean ok, integer? id
function M.request(client, name, params, callback) return method(client, "request", name, params, callback) end
function M.cancel(client, id) method(client, "cancel_request", id) end
function M.stop(client) method(client, "stop") end
function M.is_stopped(client) return method(client, "is_stopped") end

---The config of a client with the user's changes, where Neovim supports them.
---@param name string
---@return vim.lsp.Config?
function M.config(name)
  local configs = vim.lsp.config --[[@as table<string, vim.lsp.Config>?]]
  return has11 and configs and configs[name] or nil
end

---@class mcp_sidecar.Exit how a process ended; empty while it runs
---@field code? integer
---@field signal? integer

---@type table<table, mcp_sidecar.Exit> by the connection of its client
local exits = setmetatable({}, { __mode = "k" })

---Starts the process of a client. The client is told that it ended normally: the message that Neovim shows otherwise
---would come in addition to ours.
---@param cmd string[]
---@param dispatchers vim.lsp.rpc.Dispatchers
---@param config? vim.lsp.ClientConfig absent in 0.10
---@return vim.lsp.rpc.PublicClient
function M.spawn(cmd, dispatchers, config)
  local exit, given = {}, config or {}
  local quiet = vim.tbl_extend("force", dispatchers, {
    on_exit = function(code, signal)
      exit.code, exit.signal = code, signal
      dispatchers.on_exit(0, 0)
    end,
  }) --[[@as vim.lsp.rpc.Dispatchers]]
  local options = { cwd = given.cmd_cwd, env = given.cmd_env, detached = given.detached }
  local rpc = vim.lsp.rpc.start(cmd, quiet, options)
  exits[rpc] = exit
  return rpc
end

---How the process of a client ends, once it has. Nil for a command that the user has set in the config of the client.
---@param client vim.lsp.Client
---@return mcp_sidecar.Exit?
function M.exit_of(client) return exits[client.rpc] end

---Starts a client, or returns the one that already runs for this root.
---@param config vim.lsp.ClientConfig
---@param buffer? integer to attach
---@return integer? client_id
function M.start(config, buffer)
  if buffer then return vim.lsp.start(config, { bufnr = buffer }) end
  if has11 then return vim.lsp.start(config, { attach = false }) end
  return (vim.lsp.start_client(config))
end

---@type table<integer, boolean?> buffers whose lenses are refreshed
local lensed = {}

---Shows code lenses in a buffer. 0.12 updates them itself; before, they are refreshed when a server changes.
---@param buffer integer
function M.lenses(buffer)
  if has12 then return vim.lsp.codelens.enable(true, { bufnr = buffer }) end
  local function refresh()
    if vim.api.nvim_buf_is_loaded(buffer) then vim.lsp.codelens.refresh({ bufnr = buffer }) end
  end
  refresh()
  if not lensed[buffer] then require("mcp_sidecar.events").on("servers", refresh) end
  lensed[buffer] = true
end

M.has_enable = has11

return M
