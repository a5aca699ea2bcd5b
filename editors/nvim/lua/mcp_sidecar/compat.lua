--- What differs between the versions of Neovim that are supported (0.10 and later), in one place.

local M = {}

local has11 = vim.fn.has("nvim-0.11") == 1
local has12 = vim.fn.has("nvim-0.12") == 1

-- These hold what somebody else wrote, in which null means null.
local foreign = {
  structuredContent = true,
  arguments = true,
  result = true,
  inputSchema = true,
  outputSchema = true,
  schema = true,
  message = true,
}

---JSON null is `vim.NIL` from 0.12 on and nil before: here it is nil, wherever it means "absent".
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

---What the user made of a client's config, where there is a place to say so.
---@param name string
---@return vim.lsp.Config?
function M.config(name)
  local configs = vim.lsp.config --[[@as table<string, vim.lsp.Config>?]]
  return has11 and configs and configs[name] or nil
end

---Starts a client, or finds the one that runs already for this root.
---@param config vim.lsp.ClientConfig
---@param buffer? integer to attach
---@return integer? client_id
function M.start(config, buffer)
  if buffer then return vim.lsp.start(config, { bufnr = buffer }) end
  if has11 then return vim.lsp.start(config, { attach = false }) end
  return (vim.lsp.start_client(config))
end

---@type table<integer, boolean?> buffers whose lenses are kept fresh
local lensed = {}

---Code lenses of a buffer. 0.12 keeps them fresh by itself; before, somebody has to ask again when a server has changed.
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
