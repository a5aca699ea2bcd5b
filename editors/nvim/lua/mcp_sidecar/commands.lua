--- `:Mcp {subcommand} {argument}`: the subcommands and their completion.

local actions = require("mcp_sidecar.actions")
local client = require("mcp_sidecar.client")
local style = require("mcp_sidecar.ui.style")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

local function servers()
  return vim.tbl_map(function(server) return server.name end, require("mcp_sidecar").servers())
end

local function tools()
  local function names(server)
    return vim.tbl_map(function(tool) return server.name .. "/" .. tool.name end, server.tools)
  end
  return vim.iter(require("mcp_sidecar").servers()):map(names):flatten():totable()
end

local function programs() return require("mcp_sidecar.lists").dialects end

local COMPLETE_MS = 500

---Fetches a list for a completion. Waits a moment for it, and starts nothing.
---@param command string
---@param key string
---@param name fun(item: any): string
---@return string[]
local function fetched(command, key, name)
  local items ---@type any[]?
  local current = client.current()
  if not current then return {} end
  client.command(command, nil, function(_, result) items = result and result[key] or {} end, { client = current })
  vim.wait(COMPLETE_MS, function() return items ~= nil end, 5)
  return vim.tbl_map(name, items or {})
end

local function templates()
  return fetched("mcp.templates", "templates", function(template) return template.id end)
end

local function prompts()
  return fetched("mcp.prompts", "prompts", function(prompt) return prompt.server .. "/" .. prompt.name end)
end

---Completes the first argument only.
---@param list fun(): string[]
local function first(list)
  return function(words) return #words == 0 and list() or nil end
end

---@param name? string `server/tool`
---@return string? server, string? tool
local function split_tool(name) return (name or ""):match("^([^/]+)/(.+)$") end

---@class mcp_sidecar.Subcommand
---@field [1] fun(arguments: string[], command: vim.api.keyset.create_user_command.command_args)
---@field [2]? fun(words: string[]): string[]? completes an argument, given those before it

local function dashboard(view)
  return { function(_, command) require("mcp_sidecar.ui.dashboard").open(view, command.smods) end }
end

-- These take `all` instead of a name.
local on_all = { start = true, stop = true, restart = true, refresh = true }

---An action on the named server, or on one that the user picks.
local function on_server(name)
  local function run(server)
    if server == "all" and on_all[name] then return client.command("mcp.server." .. name, { all = true }) end
    local known = client.workspace().servers[server]
    if known then return actions.run(known, name) end
    client.fetch("mcp.servers", { server = server }, function(result) actions.run(result.servers[1], name) end)
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
    first(function() return vim.list_extend(on_all[name] and { "all" } or {}, servers()) end),
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
    windows.peek(lines, "why", "No matching tool.")
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
        local cost = ("results %s tokens"):format(style.tokens(tool.totalResultTokens))
        local line = ("- `%s`  %d calls, %d errors, %s, %s"):format(tool.tool, tool.calls, tool.errors, spread, cost)
        table.insert(lines, line)
      end
    end
    for _, view in ipairs(result.views) do
      local who = view.agent ~= "" and view.agent or #result.views > 1 and "other agents" or "all agents"
      local how = view.search and ", searched with find_tools" or ""
      local cost = ("%d tools, %s tokens%s"):format(view.tools, style.tokens(view.tokens), how)
      table.insert(lines, ("**%s**  %s"):format(who, cost))
    end
    windows.peek(lines, "metrics", "No server has run yet.")
  end)
end

local function sets()
  return fetched("mcp.agents", "sets", function(set) return set end)
end

local function set(arguments)
  local agents = require("mcp_sidecar.agents")
  if arguments[1] == "none" then return agents.set(nil) end
  if arguments[1] then return agents.set(arguments[1]) end
  agents.choose_set()
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
  local params = { server = server, tool = tool, level = arguments[2], scope = arguments[3] }
  client.fetch(
    "mcp.tool.policy",
    params,
    function(result) client.info(("`%s` is now %s (%s)"):format(arguments[1], arguments[2], result.scope)) end
  )
end

---Completes a tool, a level, and where it can be set.
local function complete_level(words)
  if #words == 0 then return tools() end
  if #words == 1 then return style.levels end
  local server = #words == 2 and client.workspace().servers[split_tool(words[1]) or ""]
  return server and vim.tbl_map(function(place) return place.scope end, server.levelScopes) or nil
end

local function timeout(arguments)
  local server, seconds = arguments[1], tonumber(arguments[2])
  if not server or not seconds then return client.warn("usage: :Mcp timeout {server} {seconds}") end
  client.command("mcp.server.timeout", { server = server, timeout = seconds })
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
  agents = dashboard("agents"),
  away = { function() require("mcp_sidecar.agents").away() end },
  set = { set, first(function() return vim.list_extend({ "none" }, sets()) end) },
  grants = dashboard("grants"),
  approvals = dashboard("approvals"),
  approve = { function() require("mcp_sidecar.ui.approval").focus() end },
  deny = { function() require("mcp_sidecar.ui.approval").deny() end },
  later = { function() require("mcp_sidecar.ui.approval").later() end },
  call = { call, first(tools) },
  again = { function() require("mcp_sidecar.ui.call").again() end },
  policy = { policy, first(tools) },
  level = { level, complete_level },
  timeout = { timeout, first(servers) },
  metrics = { metrics, first(servers) },
  resources = { function(arguments) require("mcp_sidecar.resources").pick(arguments[1]) end, first(servers) },
  prompts = { function(arguments) require("mcp_sidecar.prompts").pick(arguments[1]) end, first(prompts) },
  config = { open_config },
  reload = { reload },
  add = { function(arguments) require("mcp_sidecar.manage").add(arguments[1]) end, first(templates) },
  search = {
    function(arguments) require("mcp_sidecar.manage").search(#arguments > 0 and table.concat(arguments, " ") or nil) end,
  },
  import = { function(arguments) require("mcp_sidecar.manage").import(arguments[1]) end, first(programs) },
  export = { function(arguments) require("mcp_sidecar.manage").export(arguments[1]) end, first(programs) },
  install = { function() require("mcp_sidecar.install").command() end },
  doctor = { function() vim.cmd.checkhealth("mcp_sidecar") end },
  log = { function() require("mcp_sidecar.ui.logs").own() end },
  up = { function() client.restart() end },
  down = { client.stop },
}
subcommands.edit = {
  function(arguments)
    local function edit(server) require("mcp_sidecar.ui.server_form").open({ server = server }) end
    if arguments[1] then return edit(arguments[1]) end
    windows.choose(servers(), { prompt = "Edit: ", kind = "mcp_server", none = "no servers yet" }, edit)
  end,
  first(servers),
}
for name in pairs(actions.named) do
  subcommands[name] = on_server(name)
end

function M.names() return vim.fn.sort(vim.tbl_keys(subcommands)) end

---@param lead string the word before the cursor
---@param line string the whole command line
function M.complete(lead, line)
  local words = vim.split(line:gsub("^.-Mcp!?%s*", ""), "%s+")
  -- The last word is the one that is being typed.
  table.remove(words)
  local name = table.remove(words, 1)
  local completes = name and (subcommands[name] or {})[2]
  local found = not name and M.names() or completes and completes(words) or {}
  return vim.tbl_filter(function(each) return vim.startswith(each, lead) end, found)
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
