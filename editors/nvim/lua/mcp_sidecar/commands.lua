--- `:Mcp {subcommand} {argument}`: the subcommands and their completion.

local actions = require("mcp_sidecar.actions")
local client = require("mcp_sidecar.client")
local style = require("mcp_sidecar.ui.style")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

---@return string[]
local function servers()
  return vim.tbl_map(function(server) return server.name end, require("mcp_sidecar").servers())
end

local function tools()
  local names = {}
  for _, server in ipairs(require("mcp_sidecar").servers()) do
    for _, tool in ipairs(server.tools) do
      table.insert(names, server.name .. "/" .. tool.name)
    end
  end
  return names
end

local function programs() return require("mcp_sidecar.manage").programs end

---Shows lines in a popup.
---@param lines string[]
---@param none string
---@param title string
local function show(lines, none, title) windows.peek(#lines > 0 and lines or { none }, title) end

---@param name? string `server/tool`
---@return string? server, string? tool
local function split_tool(name) return (name or ""):match("^([^/]+)/(.+)$") end

---@class mcp_sidecar.Subcommand
---@field [1] fun(arguments: string[], command: vim.api.keyset.create_user_command.command_args)
---@field [2]? fun(): string[] completes its argument

local function dashboard(view)
  return { function(_, command) require("mcp_sidecar.ui.dashboard").open(view, command.smods) end }
end

-- These take `all` instead of a name.
local on_all = { start = true, stop = true, restart = true }

---An action on the named server, or on one that the user picks.
---@param name string
---@return mcp_sidecar.Subcommand
local function on_server(name)
  local function run(server)
    if server == "all" and on_all[name] then return client.command("mcp.server." .. name, { all = true }) end
    -- An unknown name: the sidecar reports whether there is such a server.
    local unknown = { name = server, scope = "project", status = "stopped", enabled = false }
    actions[name](client.workspace().servers[server] or unknown --[[@as mcp_sidecar.ServerStatus]])
  end
  local function pick(_, problem)
    if problem then return client.error(problem) end
    local none = "no servers yet: use `:Mcp add`, or define one in mcp.json"
    windows.choose(servers(), { prompt = "Server: ", kind = "mcp_server", none = none }, run)
  end
  return {
    function(arguments)
      if arguments[1] then return run(arguments[1]) end
      client.ensure(pick)
    end,
    function() return vim.list_extend(on_all[name] and { "all" } or {}, servers()) end,
  }
end

---Explains the levels of tools.
local function policy(arguments)
  local server, tool = split_tool(arguments[1])
  client.fetch("mcp.policies", { server = server, tool = tool }, function(result)
    local lines = {}
    for _, each in ipairs(result.policies) do
      table.insert(lines, ("`%s`  **%s**  %s"):format(each.tool, each.level, each.source))
      for _, hidden in ipairs(each.hides) do
        local reason = hidden.reason and ": " .. hidden.reason or ""
        table.insert(lines, ("  overrides %s %s%s"):format(hidden.level, hidden.source, reason))
      end
    end
    show(lines, "No matching tool.", "why")
  end)
end

---Shows the metrics of servers and their tools.
local function metrics(arguments)
  client.fetch("mcp.metrics", { server = arguments[1] }, function(result)
    local lines, took = {}, style.duration
    for _, server in ipairs(result.servers) do
      local times = ("started in %s, listed in %s"):format(took(server.startMs), took(server.discoverMs))
      table.insert(lines, ("**%s**  %s, %d restarts"):format(server.server, times, server.restarts or 0))
      for _, tool in ipairs(server.tools) do
        local spread = ("median %s, 95th percentile %s"):format(took(tool.p50Ms), took(tool.p95Ms))
        table.insert(lines, ("- `%s`  %d calls, %d errors, %s"):format(tool.tool, tool.calls, tool.errors, spread))
      end
    end
    show(lines, "No server has run yet.", "metrics")
  end)
end

local function call(arguments, command)
  local form, opts = require("mcp_sidecar.ui.call"), {}
  if command.range > 0 then
    opts.origin, opts.text = form.origin(command.line1, command.line2)
  end
  if arguments[1] then return form.start(arguments[1], opts) end
  form.pick(opts)
end

local function level(arguments)
  local server, tool = split_tool(arguments[1])
  if not server or not arguments[2] then return client.warn("usage: :Mcp level {server/tool} {level} [scope]") end
  local params = { server = server, tool = tool, level = arguments[2], scope = arguments[3] or "local" }
  client.command("mcp.tool.policy", params)
end

local function open_config()
  client.fetch("mcp.config", nil, function(result)
    windows.choose(result.files, {
      prompt = "Open: ",
      format = function(file)
        local state = not file.exists and "does not exist yet" or file.valid and "" or "has errors"
        return ("%-8s %s  %s"):format(file.scope, vim.fn.fnamemodify(file.path, ":~:."), state)
      end,
    }, function(file) vim.cmd.edit({ args = { file.path }, magic = { file = false } }) end)
  end)
end

local function reload()
  client.fetch("mcp.config.reload", nil, function(result)
    local counts = { #result.added, #result.changed, #result.removed }
    client.info(("reloaded: %d added, %d changed, %d removed"):format(unpack(counts)))
  end)
end

---@type table<string, mcp_sidecar.Subcommand?>
local subcommands = {
  tools = dashboard("tools"),
  calls = dashboard("calls"),
  grants = dashboard("grants"),
  approvals = dashboard("approvals"),
  approve = { function() require("mcp_sidecar.ui.approval").focus() end },
  deny = { function() require("mcp_sidecar.ui.approval").deny() end },
  later = { function() require("mcp_sidecar.ui.approval").later() end },
  call = { call, tools },
  again = { function() require("mcp_sidecar.ui.call").again() end },
  policy = { policy, tools },
  level = { level, tools },
  metrics = { metrics, servers },
  resources = { function(arguments) require("mcp_sidecar.resources").pick(arguments[1]) end, servers },
  prompts = { function(arguments) require("mcp_sidecar.prompts").pick(arguments[1]) end },
  config = { open_config },
  reload = { reload },
  add = { function(arguments) require("mcp_sidecar.manage").add(arguments[1]) end },
  import = { function(arguments) require("mcp_sidecar.manage").import(arguments[1]) end, programs },
  export = { function(arguments) require("mcp_sidecar.manage").export(arguments[1]) end, programs },
  doctor = { function() vim.cmd.checkhealth("mcp_sidecar") end },
  log = { function() require("mcp_sidecar.ui.logs").own() end },
  up = {
    function()
      client.restart(function(_, problem) client.error(problem) end)
    end,
  },
  down = { client.stop },
}
for name in
  vim.gsplit("start stop restart toggle trust distrust auth signout enable disable logs test remove move", " ")
do
  subcommands[name] = on_server(name)
end

---@return string[]
function M.names()
  local names = vim.tbl_keys(subcommands)
  table.sort(names)
  return names
end

---@param lead string the word before the cursor
---@param line string the whole command line
---@return string[]
function M.complete(lead, line)
  local words = vim.split(line:gsub("^.-Mcp!?%s*", ""), "%s+")
  local completes = #words == 1 and M.names or #words == 2 and (subcommands[words[1]] or {})[2]
  return vim.tbl_filter(function(name) return vim.startswith(name, lead) end, completes and completes() or {})
end

---@param command vim.api.keyset.create_user_command.command_args
function M.run(command)
  local name = command.fargs[1]
  if not name then return require("mcp_sidecar.ui.dashboard").open(nil, command.smods) end
  local subcommand = subcommands[name]
  if not subcommand then
    return client.error((":Mcp has no subcommand `%s`; use one of %s"):format(name, table.concat(M.names(), ", ")))
  end
  subcommand[1](vim.list_slice(command.fargs, 2), command)
end

return M
