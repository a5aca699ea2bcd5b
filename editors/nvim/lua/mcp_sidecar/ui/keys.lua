--- The keys of the dashboard. They act on the current row, a visual selection, or everything.

local actions = require("mcp_sidecar.actions")
local client = require("mcp_sidecar.client")
local style = require("mcp_sidecar.ui.style")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

---@type mcp_sidecar.Dashboard
local board

---@param dashboard mcp_sidecar.Dashboard
function M.attach(dashboard) board = dashboard end

---The row under the cursor, or an empty one.
---@return { kind?: string, item?: any }
local function here() return board.rows()[vim.api.nvim_win_get_cursor(0)[1]] or {} end

---The distinct servers, tools, agents or grants of the current row or the visual selection.
---@param kind "server"|"tool"|"agent"|"grant"
local function selected(kind)
  local first, last = vim.fn.line("v"), vim.fn.line(".")
  if vim.fn.mode() == "n" then
    first = last
  else
    vim.api.nvim_feedkeys(vim.keycode("<Esc>"), "nx", false)
  end
  local seen, items = {}, {}
  for place = math.min(first, last), math.max(first, last) do
    local row = board.rows()[place] or {}
    local item = row.kind == kind and row.item or nil
    -- On the row of what a server offers, an action for servers applies to its server.
    local of_server = row.kind == "tool" or row.kind == "resource" or row.kind == "prompt"
    if kind == "server" and of_server then item = client.workspace().servers[row.item.server] end
    local id = item and (item.id or item.name)
    if id and not seen[id] then
      seen[id] = true
      table.insert(items, item)
    end
  end
  if #items == 0 then client.info("no " .. kind .. " on this line") end
  return items
end

---Performs an action for each selected server: the first one, or the one instead of it.
local function each(name, instead)
  return function()
    vim.iter(selected("server")):each(function(server) actions.run(server, name, instead) end)
  end
end

---Sends a command, then reloads the view.
local function and_load(command, params)
  client.fetch(command, params, function() board.load() end)
end

local function on_all(command)
  return function() and_load(command, { all = true }) end
end

---Revokes every lasting answer, if the user confirms it.
local function revoke_all()
  client.fetch("mcp.grants", nil, function(result)
    local count = #result.grants
    if count == 0 then return client.info("there are no lasting answers") end
    local question = count == 1 and "Revoke your lasting answer?" or ("Revoke all %d lasting answers?"):format(count)
    if vim.fn.confirm(question, "&No\n&Revoke", 1) == 2 then and_load("mcp.grant.revoke", { all = true }) end
  end)
end

local function peek_json(value, title) windows.peek(windows.add_json({}, value), title) end

---Shows the details of a server with its definition.
---@param server mcp_sidecar.ServerStatus
local function describe(server)
  local lines, info = {}, server.serverInfo or {}
  local function add(label, value)
    if value then table.insert(lines, ("**%s** %s"):format(label, value)) end
  end
  add("status", server.summary.text)
  add("error", server.error)
  add("changed", server.trustDiff)
  add("server", info.name and ("%s %s, MCP %s"):format(info.name, info.version or "", server.protocolVersion or "?"))
  add("says", server.instructions)
  add("process", server.pid and ("%d, since %s"):format(server.pid, style.clock(server.startedAt)))
  add("answers in", server.latencyMs and style.duration(server.latencyMs))
  add("restarts", server.restarts > 0 and server.restarts)
  for _, warning in ipairs(server.warnings or {}) do
    add("warning", warning)
  end
  add("from", server.file and ("%s:%d (%s)"):format(server.file, (server.line or 0) + 1, server.scope))
  for _, hidden in ipairs(server.hides or {}) do
    add("hides", ("%s (%s)"):format(hidden.file or "", hidden.scope))
  end
  for _, one in ipairs(server.restrictions or {}) do
    add("restricted", ("%s: %s:%d (%s)"):format(one.effect, one.file or "", (one.line or 0) + 1, one.scope))
  end
  table.insert(lines, "")
  windows.peek(windows.add_json(lines, server.config), server.name)
end

local function to_config()
  local row = here()
  local server = row.kind == "server" and row.item or client.workspace().servers[(row.item or {}).server or ""]
  local place = row.kind == "file" and row.item or server
  if not (place and place.file) then return client.info("this line has no config file") end
  windows.edit(place.file, place.line)
end

---Shows a call. Of a large result, the log has only the beginning; the whole is kept for a while.
---@param call mcp_sidecar.Call
local function show_call(call)
  local title, result = call.server .. "/" .. call.tool, call.result --[[@as any]]
  if type(result) ~= "table" or not result.cut then return peek_json(call, title) end
  client.command("mcp.call.result", { callId = call.callId }, function(problem, whole)
    local shown = not problem and whole and { content = whole.content, isError = whole.isError } or result
    peek_json(vim.tbl_extend("force", call, { result = shown }), title)
  end)
end

---What <CR> does for each kind of row.
---@type table<string, fun(item: any)?>
local default_action = {
  approval = function(approval) require("mcp_sidecar.ui.approval").focus(approval.id) end,
  tool = function(tool) require("mcp_sidecar.ui.call").start(tool.name) end,
  call = show_call,
  agent = function(agent)
    local waiting = vim.iter(agent.calls):find(function(call) return call.question ~= nil end)
    if waiting then return require("mcp_sidecar.ui.approval").focus(waiting.question) end
    peek_json(agent, agent.name)
  end,
  log = function(line) windows.peek({ line.text }, line.server) end,
  resource = function(resource) require("mcp_sidecar.resources").start(resource) end,
  prompt = function(prompt) require("mcp_sidecar.prompts").pick(prompt.server .. "/" .. prompt.name) end,
  file = function() to_config() end,
  server = function(server)
    if server.remedy then return actions.perform(server.remedy) end
    board.fold(server)
  end,
}

---What `K` shows for each kind of row; rows without an entry use the action of <CR>.
---@type table<string, fun(item: any)?>
local details = {
  tool = function(tool) require("mcp_sidecar.ui.call").describe(tool) end,
  server = describe,
  grant = function(grant) peek_json(grant, "grant") end,
  agent = function(agent) peek_json(agent, agent.name) end,
  resource = function(resource) peek_json(resource, resource.name or "resource") end,
  prompt = function(prompt) peek_json(prompt, prompt.name) end,
  file = function(file) windows.peek({ file.message }, file.name) end,
}

local function enter()
  local row = here()
  if default_action[row.kind] then default_action[row.kind](row.item) end
end

local function show_details()
  local row = here()
  local show = details[row.kind] or default_action[row.kind]
  if show then show(row.item) end
end

---Where the level of these tools can be set. Several servers have only some places in common, and their own files.
---@param tools mcp_sidecar.ToolInfo[]
---@return { scope?: mcp_sidecar.Scope, title: string }[]
local function level_places(tools)
  local offered, servers = {}, {}
  for _, tool in ipairs(tools) do
    servers[tool.server] = client.workspace().servers[tool.server]
  end
  for _, server in pairs(servers) do
    for _, place in ipairs(server.levelScopes) do
      offered[place.scope] = { place = place, count = (offered[place.scope] or { count = 0 }).count + 1 }
    end
  end
  local count, only = vim.tbl_count(servers), next(servers)
  if count == 1 then return servers[only].levelScopes end
  local common = { { title = "in the file that defines each server" } }
  for _, known in vim.spairs(offered) do
    if known.count == count then table.insert(common, known.place) end
  end
  return common
end

---Asks for a level and where to set it, then sets it for every selected tool.
local function set_level()
  local tools = selected("tool")
  if #tools == 0 then return end
  local which = #tools == 1 and tools[1].tool or #tools .. " tools"
  windows.choose(style.levels, { prompt = ("Level of `%s`: "):format(which) }, function(level)
    local opts = { prompt = ("`%s` is %s: "):format(which, level), format = function(place) return place.title end }
    windows.choose(level_places(tools), opts, function(place)
      for _, tool in ipairs(tools) do
        local params = { server = tool.server, tool = tool.tool, level = level, scope = place.scope }
        client.fetch("mcp.tool.policy", params, function() board.load_tools(tool.server) end)
      end
    end)
  end)
end

local function yank()
  local item = here().item or {}
  local text = item.callId or item.name or item.title or item.text or vim.api.nvim_get_current_line()
  windows.yank(text)
  client.info("yanked " .. text)
end

---Lets the calls of an agent wait, or lets it go on.
local function pause()
  for _, agent in ipairs(selected("agent")) do
    and_load("mcp.agent.pause", { agent = agent.id, paused = not agent.paused })
  end
end

---Asks for a set of tools, then limits an agent to it.
local function choose_set()
  local agent = selected("agent")[1]
  if agent then require("mcp_sidecar.agents").choose_set(agent, board.load) end
end

---An action for agents, on the row of one; else the other.
local function or_agent(on_agent, otherwise)
  return function() return (here().kind == "agent" and on_agent or otherwise)() end
end

local function disconnect()
  for _, agent in ipairs(selected("agent")) do
    local question = ("Disconnect `%s`? Its calls are cancelled."):format(agent.name)
    if vim.fn.confirm(question, "&No\n&Disconnect", 1) == 2 then
      and_load("mcp.agent.disconnect", { agent = agent.id })
    end
  end
end

local function revoke_or_test()
  if here().kind == "agent" then return disconnect() end
  if here().kind ~= "grant" then return each("test")() end
  for _, grant in ipairs(selected("grant")) do
    and_load("mcp.grant.revoke", { id = grant.id })
  end
end

local function call()
  local row = here()
  if row.kind == "tool" then return enter() end
  require("mcp_sidecar.ui.call").pick({ server = row.kind == "server" and row.item.name or nil })
end

local function start_sidecar()
  client.ensure(function(_, problem)
    client.error(problem)
    board.redraw()
  end)
end

local function fold() vim.iter(selected("server")):each(board.fold) end

local many = { "n", "x" }

---@type mcp_sidecar.Key[]
M.keys = {
  { "<CR>", enter, "answer, call, start, open" },
  { "<Tab>", fold, "unfold or fold", mode = many },
  { "za", fold, "the same" },
  { "s", or_agent(pause, each("start", "stop")), "start, stop; pause an agent", mode = many },
  { "r", each("restart"), "restart", mode = many },
  { "R", each("refresh"), "refresh its lists", mode = many },
  { "e", or_agent(choose_set, each("toggle")), "show, hide its tools; a set", mode = many },
  { "t", each("trust"), "trust (shows the definition)" },
  { "T", each("distrust"), "withdraw trust", mode = many },
  { "i", each("auth"), "sign in", mode = many },
  { "O", each("signout"), "sign out", mode = many },
  { "a", set_level, "set the level of a tool", mode = many },
  { "A", function() require("mcp_sidecar.manage").add() end, "add a server" },
  { "D", each("remove"), "remove from its file", mode = many },
  { "M", each("move"), "move to another file" },
  { "E", each("enable", "disable"), "enable, disable in file", mode = many },
  { "c", call, "call a tool" },
  { ".", function() require("mcp_sidecar.ui.call").again() end, "repeat the last call" },
  { "l", each("logs"), "log of the server" },
  { "x", revoke_or_test, "revoke, test, disconnect", mode = many },
  { "gf", to_config, "go to its definition" },
  { "K", show_details, "details" },
  { "y", yank, "yank the name" },
  { "gs", on_all("mcp.server.start"), "start all" },
  { "gS", on_all("mcp.server.stop"), "stop all" },
  { "gr", on_all("mcp.server.restart"), "restart all" },
  { "gx", revoke_all, "revoke all grants (asks)" },
  { "u", start_sidecar, "start the sidecar" },
  { "<C-l>", function() and_load("mcp.config.reload") end, "reload the config files" },
}

return M
