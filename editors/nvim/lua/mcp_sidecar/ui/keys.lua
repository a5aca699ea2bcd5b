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

---The distinct servers, tools or grants of the current row or the visual selection.
---@param kind "server"|"tool"|"grant"
---@return any[]
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
    -- On the row of a tool, an action for servers applies to its server.
    if kind == "server" and row.kind == "tool" then item = client.workspace().servers[row.item.server] end
    local id = item and (item.id or item.name)
    if id and not seen[id] then
      seen[id] = true
      table.insert(items, item)
    end
  end
  if #items == 0 then client.info("no " .. kind .. " on this line") end
  return items
end

---Runs an action for each selected server.
---@param act fun(server: mcp_sidecar.ServerStatus)
local function each(act)
  return function() vim.iter(selected("server")):each(act) end
end

---Sends a command, then reloads the view.
local function and_load(command, params)
  client.fetch(command, params, function() board.load() end)
end

local function on_all(command)
  return function() and_load(command, { all = true }) end
end

---@param value any
local function peek_json(value, title) windows.peek(windows.add_json({}, value), title) end

---Shows the details of a server with its definition.
---@param server mcp_sidecar.ServerStatus
local function describe(server)
  local lines, info = {}, server.serverInfo or {}
  local function add(label, value)
    if value then table.insert(lines, ("**%s** %s"):format(label, value)) end
  end
  add("status", server.status .. (server.reason and ", " .. server.reason or ""))
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
  table.insert(lines, "")
  windows.peek(windows.add_json(lines, server.config), server.name)
end

---What <CR> does for each kind of row.
---@type table<string, fun(item: any)?>
local default_action = {
  approval = function(approval) require("mcp_sidecar.ui.approval").focus(approval.id) end,
  tool = function(tool) require("mcp_sidecar.ui.call").start(tool.name) end,
  call = function(call) peek_json(call, call.server .. "/" .. call.tool) end,
  log = function(line) windows.peek({ line.text }, line.server) end,
  server = function(server)
    local act = server.needsTrust and "trust" or ({ ["needs-auth"] = "auth", stopped = "start" })[server.status]
    local run = act and actions[act] or board.fold
    run(server)
  end,
}

---What `K` shows for each kind of row; rows without an entry use the action of <CR>.
---@type table<string, fun(item: any)?>
local details = {
  tool = function(tool) require("mcp_sidecar.ui.call").describe(tool) end,
  server = describe,
  grant = function(grant) peek_json(grant, "grant") end,
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

local levels = { "disable", "deny", "require-approval", "allow-once", "allow-session", "allow-project", "allow-always" }

---Asks for a level and a scope, then sets it for every selected tool.
local function set_level()
  local tools = selected("tool")
  if #tools == 0 then return end
  local which = #tools == 1 and tools[1].tool or #tools .. " tools"
  windows.choose(levels, { prompt = ("Level of `%s`: "):format(which) }, function(level)
    windows.choose({ "local", "project", "user", "session" }, { prompt = "Scope: " }, function(scope)
      for _, tool in ipairs(tools) do
        local params = { server = tool.server, tool = tool.tool, level = level, scope = scope }
        client.fetch("mcp.tool.policy", params, function() board.load_tools(tool.server) end)
      end
    end)
  end)
end

local function to_config()
  local row = here()
  local server = row.kind == "server" and row.item or client.workspace().servers[(row.item or {}).server or ""]
  if not (server and server.file) then return client.info("this line has no config file") end
  vim.cmd.wincmd("p")
  if vim.bo.buftype ~= "" then vim.cmd.split() end
  vim.cmd.edit({ args = { server.file }, magic = { file = false } })
  vim.api.nvim_win_set_cursor(0, { math.min((server.line or 0) + 1, vim.api.nvim_buf_line_count(0)), 0 })
end

local function yank()
  local item = here().item or {}
  local text = item.callId or item.name or item.title or item.text or vim.api.nvim_get_current_line()
  windows.yank(text)
  client.info("yanked " .. text)
end

local function revoke_or_test()
  if here().kind ~= "grant" then return each(actions.test)() end
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

---@param server mcp_sidecar.ServerStatus
local function fold(server) board.fold(server) end

local many = { "n", "x" }

---@type mcp_sidecar.Key[]
M.keys = {
  { "<CR>", enter, "answer, call, start, open" },
  { "<Tab>", each(fold), "unfold or fold", mode = many },
  { "za", each(fold), "the same" },
  { "s", each(actions.start_or_stop), "start or stop", mode = many },
  { "r", each(actions.restart), "restart", mode = many },
  { "e", each(actions.toggle), "show or hide its tools", mode = many },
  { "t", each(actions.trust), "trust (shows the definition)" },
  { "T", each(actions.distrust), "withdraw trust", mode = many },
  { "i", each(actions.auth), "sign in", mode = many },
  { "O", each(actions.signout), "sign out", mode = many },
  { "a", set_level, "set the level of a tool", mode = many },
  { "A", function() require("mcp_sidecar.manage").add() end, "add a server" },
  { "D", each(actions.remove), "remove from its file", mode = many },
  { "M", each(actions.move), "move to another file" },
  { "E", each(actions.enable_or_disable), "enable or disable in its file", mode = many },
  { "c", call, "call a tool" },
  { ".", function() require("mcp_sidecar.ui.call").again() end, "repeat the last call" },
  { "l", each(actions.logs), "log of the server" },
  { "x", revoke_or_test, "revoke; on a server: test", mode = many },
  { "gf", to_config, "go to its definition" },
  { "K", show_details, "details" },
  { "y", yank, "yank the name" },
  { "gs", on_all("mcp.server.start"), "start all" },
  { "gS", on_all("mcp.server.stop"), "stop all" },
  { "gr", on_all("mcp.server.restart"), "restart all" },
  { "gx", on_all("mcp.grant.revoke"), "revoke all grants" },
  { "u", start_sidecar, "start the sidecar" },
  { "<C-l>", function() and_load("mcp.config.reload") end, "reload the config files" },
}

return M
