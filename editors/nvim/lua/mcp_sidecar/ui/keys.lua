--- What each key of the dashboard does: to the row under the cursor, a visual selection, or everything.

local client = require("mcp_sidecar.client")
local json = require("mcp_sidecar.json")
local look = require("mcp_sidecar.ui.look")

local M = {}

---@class mcp_sidecar.Board what the dashboard lets its keys see and do
---@field rows fun(): mcp_sidecar.Row[]
---@field row fun(): mcp_sidecar.Row? under the cursor
---@field unfolded table<string, boolean>
---@field load fun() asks for what the view shows again
---@field load_tools fun(server?: string)
---@field redraw fun()
local board

---@param dashboard mcp_sidecar.Board
function M.attach(dashboard) board = dashboard end

---The distinct servers, tools or grants of the cursor's row or the visual selection.
---@param kind "server"|"tool"|"grant"
---@return table[]
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
    -- A tool stands for its server where servers are meant.
    if kind == "server" and row.kind == "tool" then item = client.picture().servers[row.item.server] end
    local id = item and (item.id or item.name)
    if id and not seen[id] then
      seen[id] = true
      table.insert(items, item)
    end
  end
  if #items == 0 then client.say("there is no " .. kind .. " here") end
  return items
end

---A key that runs `act` on each of them.
local function each(kind, act)
  return function() vim.iter(selected(kind)):each(act) end
end

---A key that sends a command for each server; `params` may depend on it.
local function on_servers(command, params)
  return each("server", function(server)
    local extra = type(params) == "function" and params(server) or params or {}
    client.command(command, vim.tbl_extend("force", { server = server.name }, extra))
  end)
end

local function on_all(command)
  return function() client.command(command, { all = true }) end
end

---A key that sends a command, after which the view is asked for again.
local function and_load(command, params)
  return client.fetch(command, params, function() board.load() end)
end

local start_or_stop = each("server", function(server)
  local runs = server.status == "connected" or server.status == "pending"
  client.command(runs and "mcp.server.stop" or "mcp.server.start", { server = server.name })
end)

local function fold(server)
  board.unfolded[server.name] = not board.unfolded[server.name] or nil
  if board.unfolded[server.name] then board.load_tools(server.name) end
  board.redraw()
end

---The obvious thing to do with each kind of row.
local obvious = {
  approval = function(approval) require("mcp_sidecar.ui.approval").focus(approval.id) end,
  tool = function(tool) require("mcp_sidecar.ui.call").start(tool.name) end,
  call = function(call) look.peek_json(call, call.server .. "/" .. call.tool) end,
  log = function(line) look.peek(vim.split(line.text, "\n"), line.server) end,
  server = function(server)
    if server.needsTrust then
      require("mcp_sidecar.ui.approval").trust(server.name)
    elseif server.status == "needs-auth" then
      client.command("mcp.server.auth", { server = server.name })
    elseif server.status == "stopped" then
      client.command("mcp.server.start", { server = server.name })
    else
      fold(server)
    end
  end,
}

local function enter()
  local row = board.row()
  if row and obvious[row.kind] then obvious[row.kind](row.item) end
end

local levels = { "disable", "deny", "require-approval", "allow-once", "allow-session", "allow-project", "allow-always" }

---Chooses a level and where it is written, then sets it for every tool that is selected.
local function set_level()
  local tools = selected("tool")
  if #tools == 0 then return end
  local which = #tools == 1 and tools[1].tool or #tools .. " tools"
  look.choose(levels, { prompt = ("Level of %s: "):format(which) }, function(level)
    look.choose({ "local", "project", "user", "session" }, { prompt = "Written to: " }, function(scope)
      for _, tool in ipairs(tools) do
        local params = { server = tool.server, tool = tool.tool, level = level, scope = scope }
        client.fetch("mcp.tool.policy", params, function() board.load_tools(tool.server) end)
      end
    end)
  end)
end

local function to_config()
  local row = board.row() or {}
  local server = row.kind == "server" and row.item or client.picture().servers[(row.item or {}).server or ""]
  if not (server and server.file) then return client.say("no config file stands behind this line") end
  vim.cmd.wincmd("p")
  if vim.bo.buftype ~= "" then vim.cmd.split() end
  vim.cmd.edit({ args = { server.file }, magic = { file = false } })
  vim.api.nvim_win_set_cursor(0, { math.min((server.line or 0) + 1, vim.api.nvim_buf_line_count(0)), 0 })
end

---A server in words, with its definition as written.
---@param server mcp_sidecar.Server
local function describe(server)
  local lines, info = {}, server.serverInfo or {}
  local function tell(label, value)
    if value then vim.list_extend(lines, vim.split(("**%s** %s"):format(label, value), "\n")) end
  end
  tell("status", server.status .. (server.reason and ", " .. server.reason or ""))
  tell("error", server.error)
  tell("changed", server.trustDiff)
  tell("server", info.name and ("%s %s, MCP %s"):format(info.name, info.version or "", server.protocolVersion or "?"))
  tell("says", server.instructions)
  tell("has", ("%d tools, %d resources, %d prompts"):format(server.toolCount, server.resourceCount, server.promptCount))
  tell("process", server.pid and ("%d, since %s"):format(server.pid, look.clock(server.startedAt)))
  tell("answers in", server.latencyMs and look.duration(server.latencyMs))
  tell("restarts", server.restarts > 0 and server.restarts)
  for _, warning in ipairs(server.warnings or {}) do
    tell("warning", warning)
  end
  tell("from", server.file and ("%s:%d (%s)"):format(server.file, (server.line or 0) + 1, server.scope))
  for _, hidden in ipairs(server.hides or {}) do
    tell("hides", ("%s (%s)"):format(hidden.file or "", hidden.scope))
  end
  vim.list_extend(lines, { "", "```json" })
  vim.list_extend(lines, json.lines(server.config))
  look.peek(vim.list_extend(lines, { "```" }), server.name)
end

local function details()
  local row = board.row()
  if not row or not row.item then return end
  if row.kind == "tool" then return require("mcp_sidecar.ui.call").describe(row.item) end
  if row.kind == "server" then return describe(row.item) end
  if row.kind == "log" or row.kind == "approval" then return obvious[row.kind](row.item) end
  look.peek_json(row.item, row.item.title or row.kind)
end

local function yank()
  local item = (board.row() or {}).item or {}
  local text = item.callId or item.name or item.title or item.text or vim.api.nvim_get_current_line()
  look.yank(text)
  client.say("yanked " .. text)
end

local function revoke_or_test()
  if (board.row() or {}).kind == "grant" then
    return each("grant", function(grant) and_load("mcp.grant.revoke", { id = grant.id }) end)()
  end
  each("server", function(server) require("mcp_sidecar.ui.result").test({ server = server.name }) end)()
end

local function call()
  local row = board.row() or {}
  if row.kind == "tool" then return obvious.tool(row.item) end
  require("mcp_sidecar.ui.call").pick({ server = row.kind == "server" and row.item.name or nil })
end

local function start_sidecar()
  client.ensure(function(_, problem)
    client.complain(problem)
    board.redraw()
  end)
end

local fold_each = each("server", fold)
local distrust = on_servers("mcp.server.trust", { trusted = false })
local sign_out = on_servers("mcp.server.auth", { signOut = true })
local toggle = on_servers("mcp.server.toggle", function(server) return { enabled = not server.enabled } end)
local enable = on_servers(
  "mcp.server.enable",
  function(server) return { enabled = server.status == "disabled", scope = server.scope } end
)
local trust = each("server", function(server) require("mcp_sidecar.ui.approval").trust(server.name) end)
local remove = each("server", function(server) require("mcp_sidecar.manage").remove(server.name) end)
local move = each("server", function(server) require("mcp_sidecar.manage").move(server.name) end)
local show_log = each("server", function(server) require("mcp_sidecar.ui.logs").open(server.name) end)

-- One table is the maps and the help. Those marked `x` also work on a visual selection.
M.keys = {
  { "<CR>", enter, "the obvious thing" },
  { "<Tab>", fold_each, "unfold or fold", x = true },
  { "za", fold_each, "the same" },
  { "s", start_or_stop, "start or stop", x = true },
  { "r", on_servers("mcp.server.restart"), "restart", x = true },
  { "e", toggle, "its tools on or off for now", x = true },
  { "t", trust, "trust (shows what will run)" },
  { "T", distrust, "withdraw trust", x = true },
  { "i", on_servers("mcp.server.auth"), "sign in", x = true },
  { "O", sign_out, "sign out", x = true },
  { "a", set_level, "set the level of a tool", x = true },
  { "A", function() require("mcp_sidecar.manage").add() end, "add a server" },
  { "D", remove, "remove from its file", x = true },
  { "M", move, "move to another file" },
  { "E", enable, "on or off in its file", x = true },
  { "c", call, "call a tool" },
  { ".", function() require("mcp_sidecar.ui.call").again() end, "the last call again" },
  { "l", show_log, "log of the server" },
  { "x", revoke_or_test, "revoke; on a server: test", x = true },
  { "gf", to_config, "to its place in the file" },
  { "K", details, "all about it" },
  { "y", yank, "yank the name" },
  { "gs", on_all("mcp.server.start"), "start all" },
  { "gS", on_all("mcp.server.stop"), "stop all" },
  { "gr", on_all("mcp.server.restart"), "restart all" },
  { "gx", function() and_load("mcp.grant.revoke", { all = true }) end, "revoke all grants" },
  { "u", start_sidecar, "start the sidecar" },
  { "<C-l>", function() and_load("mcp.config.reload") end, "read the config files again" },
  { "q", look.close, "close" },
}

return M
