--- MCP servers inside this Neovim: implements the part of MCP that tools written in Lua need.
--- A config file refers to one as `{ "type": "sdk", "name": "…" }`; servers made with `server()` are added automatically.

local client = require("mcp_sidecar.client")
local compat = require("mcp_sidecar.compat")

local M = {}

---@class mcp_sidecar.LuaTool
---@field description string
---@field input? table JSON Schema of the arguments
---@field annotations? table MCP's hints: readOnlyHint, destructiveHint, …
---@field run fun(arguments: table, done: fun(result: any, err?: string)): any returns the result, or calls `done` later

---@class mcp_sidecar.LuaServer
---@field tools table<string, mcp_sidecar.LuaTool>
---@field instructions? string
---@field connect? boolean false: only where a config file refers to it

---Turns a value into an MCP result: text unchanged, tables as JSON, `{ content = … }` as given.
local function result_of(value)
  if type(value) == "table" and type(value.content) == "table" then return value end
  if type(value) == "table" then
    local text = require("mcp_sidecar.json").pretty(value)
    local structured = not vim.islist(value) and value or nil
    return { content = { { type = "text", text = text } }, structuredContent = structured }
  end
  return { content = { { type = "text", text = value == nil and "" or tostring(value) } } }
end

local function failure(text) return { content = { { type = "text", text = tostring(text) } }, isError = true } end

---@param server mcp_sidecar.LuaServer
local function list(server)
  local function describe(name, tool)
    local schema = tool.input or { type = "object", properties = vim.empty_dict() }
    return { name = name, description = tool.description, inputSchema = schema, annotations = tool.annotations }
  end
  return { tools = vim.iter(vim.spairs(server.tools)):map(describe):totable() }
end

---Handles one request: calls `reply` with a result or an error.
---@param server mcp_sidecar.LuaServer
local function answer(name, server, message, reply)
  local params = compat.plain(message.params) or {}
  if message.method == "initialize" then
    reply({
      protocolVersion = params.protocolVersion,
      capabilities = { tools = { listChanged = true } },
      serverInfo = { name = name, version = require("mcp_sidecar.binary").version },
      instructions = server.instructions,
    })
  elseif message.method == "ping" then
    reply(vim.empty_dict())
  elseif message.method == "tools/list" then
    reply(list(server))
  elseif message.method == "tools/call" then
    local tool = server.tools[params.name]
    if not tool then return reply(nil, { code = -32602, message = ("no tool named `%s`"):format(params.name) }) end
    local over = false
    local function done(value, err)
      if not over then
        over = true
        reply(err and failure(err) or result_of(value))
      end
    end
    local ok, value = pcall(tool.run, params.arguments or {}, done)
    if not ok then
      done(nil, value)
    elseif value ~= nil then
      done(value)
    end
  else
    reply(nil, { code = -32601, message = ("no method `%s`"):format(message.method) })
  end
end

local function find(name)
  if name == "nvim" and not client.hosted.nvim then client.hosted.nvim = require("mcp_sidecar.editor_server") end
  return client.hosted[name]
end

local function send(to, name, message)
  message.jsonrpc = "2.0"
  compat.request(to, "mcp/sdk/message", { server = name, message = message }, function() end)
end

---Handles a message of the sidecar to a server in this Neovim. Responses are sent as separate messages.
---@param from vim.lsp.Client
---@param params { server: string, message: table }
function M.receive(from, params)
  local server, message = find(params.server), params.message
  if not server or message.id == nil or message.method == nil then return end
  local id = message.id
  -- Later, so that the sidecar gets its `{}` before the response.
  vim.schedule(function()
    answer(params.server, server, message, function(result, err)
      vim.schedule(function() send(from, params.server, { id = id, result = result, error = err }) end)
    end)
  end)
end

---The definitions that a sidecar gets for its session.
local function definitions()
  local servers = {}
  for name, server in pairs(client.hosted) do
    if server.connect ~= false then servers[name] = { type = "sdk", name = name } end
  end
  if require("mcp_sidecar.config").get().editor_server then servers.nvim = { type = "sdk", name = "nvim" } end
  return servers
end

---Sends the servers of this Neovim to a sidecar that has just started.
---@param to vim.lsp.Client
function M.connect(to)
  local servers = definitions()
  if next(servers) then client.command("mcp.servers.set", { servers = servers }, nil, { client = to }) end
end

---Hosts an MCP server. Names are announced when a sidecar starts, so a running one is restarted.
---@param name string
---@param server mcp_sidecar.LuaServer
function M.add(name, server)
  assert(type(name) == "string" and type(server.tools) == "table", "server(name, { tools = { … } })")
  local known = client.hosted[name] ~= nil
  client.hosted[name] = server
  local running = client.current()
  if running and known then
    send(running, name, { method = "notifications/tools/list_changed" })
  elseif running then
    client.restart()
  end
end

return M
