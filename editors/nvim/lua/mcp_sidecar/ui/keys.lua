--- What each key of the dashboard does: to the row under the cursor, a visual selection, or everything.

local client = require("mcp_sidecar.client")
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
function M.attach(dashboard)
  board = dashboard
end

---Runs `act` on each distinct server, tool or grant of the cursor's row or the visual selection.
local function each(kind, act)
  local first, last = vim.fn.line("v"), vim.fn.line(".")
  if vim.fn.mode() == "n" then
    first = last
  else
    vim.api.nvim_feedkeys(vim.keycode("<Esc>"), "nx", false)
  end
  local seen = {}
  for place = math.min(first, last), math.max(first, last) do
    local row = board.rows()[place]
    local item = row and row.item
    local key = nil
    if row and kind == "server" and (row.kind == "server" or row.kind == "tool") then
      key = row.kind == "tool" and item.server or item.name
      item = client.picture().servers[key]
    elseif row and row.kind == kind then
      key = row.id
    end
    if key and item and not seen[key] then
      seen[key] = true
      act(item)
    end
  end
  if next(seen) == nil then
    client.say("there is no " .. kind .. " here")
  end
end

local function command(name, params)
  if not client.knows(name) then
    return client.say(("this sidecar has no `%s` yet"):format(name), vim.log.levels.WARN)
  end
  client.command(name, params)
end

local function on_servers(name, extra)
  return function()
    each("server", function(server)
      command(name, vim.tbl_extend("force", { server = server.name }, extra or {}))
    end)
  end
end

local function start_or_stop()
  each("server", function(server)
    local runs = server.status == "connected" or server.status == "pending"
    command(runs and "mcp.server.stop" or "mcp.server.start", { server = server.name })
  end)
end

local function on_off()
  each("server", function(server)
    command("mcp.server.toggle", { server = server.name, enabled = not server.enabled })
  end)
end

local function fold(server)
  board.unfolded[server.name] = not board.unfolded[server.name] or nil
  if board.unfolded[server.name] then
    board.load_tools(server.name)
  end
  board.redraw()
end

---The obvious thing.
local function enter()
  local row = board.row()
  if not row or not row.kind then
    return
  elseif row.kind == "approval" then
    require("mcp_sidecar.ui.approval").focus(row.item.id)
  elseif row.kind == "tool" then
    require("mcp_sidecar.ui.form").start(row.item.name)
  elseif row.kind == "call" then
    local call = row.item
    look.peek(
      vim.list_extend({ "```json" }, vim.list_extend(require("mcp_sidecar.json").lines(call), { "```" })),
      { title = call.server .. "/" .. call.tool }
    )
  elseif row.kind == "server" then
    local server = row.item
    if server.needsTrust then
      require("mcp_sidecar.ui.approval").trust(server.name)
    elseif server.status == "needs-auth" then
      command("mcp.server.auth", { server = server.name })
    elseif server.status == "stopped" then
      command("mcp.server.start", { server = server.name })
    else
      fold(server)
    end
  end
end

local levels = { "disable", "deny", "require-approval", "allow-once", "allow-session", "allow-project", "allow-always" }

---Chooses a level and where it is written, then sets it for every tool that is selected.
local function set_level()
  if not client.knows("mcp.tool.policy") then
    return client.say("this sidecar cannot set levels yet: write it under `tools` in mcp.json", vim.log.levels.WARN)
  end
  local tools = {}
  each("tool", function(tool)
    table.insert(tools, tool)
  end)
  if #tools == 0 then
    return
  end
  vim.ui.select(
    levels,
    { prompt = ("Level of %s: "):format(#tools == 1 and tools[1].tool or #tools .. " tools") },
    function(level)
      if not level then
        return
      end
      vim.ui.select({ "local", "project", "user", "session" }, { prompt = "Written to: " }, function(scope)
        for _, tool in ipairs(scope and tools or {}) do
          client.command(
            "mcp.tool.policy",
            { server = tool.server, tool = tool.tool, level = level, scope = scope },
            function(err)
              client.complain(err)
              board.load_tools(tool.server)
            end
          )
        end
      end)
    end
  )
end

local function to_config()
  local row = board.row()
  local server = row
    and row.item
    and (row.kind == "server" and row.item or client.picture().servers[row.item.server or ""])
  if not (server and server.file) then
    return client.say("no config file stands behind this line")
  end
  vim.cmd.wincmd("p")
  if vim.bo.buftype ~= "" then
    vim.cmd.split()
  end
  vim.cmd.edit({ args = { server.file }, magic = { file = false } })
  vim.api.nvim_win_set_cursor(0, { math.min((server.line or 0) + 1, vim.api.nvim_buf_line_count(0)), 0 })
end

---A server in words, with its definition as written.
---@param server mcp_sidecar.Server
local function describe(server)
  local lines = {}
  local function tell(label, value)
    if value ~= nil and value ~= "" then
      vim.list_extend(lines, vim.split(("**%s** %s"):format(label, value), "\n"))
    end
  end
  local info = server.serverInfo or {}
  tell("status", server.status .. (server.reason and ", " .. server.reason or ""))
  tell("error", server.error)
  tell("changed", server.trustDiff)
  tell("server", info.name and ("%s %s, MCP %s"):format(info.name, info.version or "", server.protocolVersion or "?"))
  tell("says", server.instructions)
  tell("has", ("%d tools, %d resources, %d prompts"):format(server.toolCount, server.resourceCount, server.promptCount))
  tell("process", server.pid and ("%d, since %s"):format(server.pid, look.clock(server.startedAt)))
  tell("answers in", server.latencyMs and look.duration(server.latencyMs))
  tell("restarts", server.restarts > 0 and server.restarts or nil)
  for _, warning in ipairs(server.warnings or {}) do
    tell("warning", warning)
  end
  tell("from", server.file and ("%s:%d (%s)"):format(server.file, (server.line or 0) + 1, server.scope))
  for _, hidden in ipairs(server.hides or {}) do
    tell("hides", ("%s (%s)"):format(hidden.file or "", hidden.scope))
  end
  vim.list_extend(lines, { "", "```json" })
  vim.list_extend(lines, require("mcp_sidecar.json").lines(server.config))
  table.insert(lines, "```")
  look.peek(lines, { title = server.name })
end

local function details()
  local row = board.row()
  if not row or not row.item then
    return
  elseif row.kind == "tool" then
    return require("mcp_sidecar.ui.form").describe(row.item)
  elseif row.kind == "server" then
    return describe(row.item)
  end
  look.peek(
    vim.list_extend({ "```json" }, vim.list_extend(require("mcp_sidecar.json").lines(row.item), { "```" })),
    { title = row.item.title or row.kind }
  )
end

local function yank()
  local row = board.row()
  local text = row and row.item and (row.item.callId or row.item.name or row.item.title)
    or vim.api.nvim_get_current_line()
  vim.fn.setreg('"', text)
  pcall(vim.fn.setreg, "+", text)
  client.say("yanked " .. text)
end

local function revoke_or_test()
  local row = board.row()
  if row and row.kind == "grant" then
    return each("grant", function(grant)
      client.command("mcp.grant.revoke", { id = grant.id }, function(err)
        client.complain(err)
        board.load()
      end)
    end)
  end
  each("server", function(server)
    require("mcp_sidecar.ui.result").test({ server = server.name })
  end)
end

local function reload()
  client.command("mcp.config.reload", nil, function(err)
    client.complain(err)
    board.load()
  end)
end

local function fold_each()
  each("server", fold)
end

local function trust()
  each("server", function(server)
    require("mcp_sidecar.ui.approval").trust(server.name)
  end)
end

local function call()
  local row = board.row() or {}
  local form = require("mcp_sidecar.ui.form")
  if row.kind == "tool" then
    form.start(row.item.name)
  else
    form.pick({ server = row.kind == "server" and row.item.name or nil })
  end
end

---Operations that change config files, where the sidecar has them.
local function manage(name, act)
  return function()
    if client.knows(name) then
      return act(require("mcp_sidecar.manage"))
    end
    client.say(("this sidecar has no `%s`: change the file itself, gf goes there"):format(name), vim.log.levels.WARN)
  end
end

local add = manage("mcp.server.add", function(files)
  files.add()
end)

local remove = manage("mcp.server.remove", function(files)
  each("server", function(server)
    files.remove(server.name)
  end)
end)

local enable = manage("mcp.server.enable", function(files)
  each("server", files.enable)
end)

local function show_log()
  each("server", function(server)
    require("mcp_sidecar.ui.logs").open(server.name)
  end)
end

local function on_all(name)
  return function()
    command(name, { all = true })
  end
end

local function revoke_all()
  client.command("mcp.grant.revoke", { all = true }, function(err)
    client.complain(err)
    board.load()
  end)
end

local function start_sidecar()
  client.ensure(function(_, problem)
    client.complain(problem and { message = problem })
    board.redraw()
  end)
end

local function again()
  require("mcp_sidecar.ui.form").again()
end

-- One table is the maps and the help. Those marked `x` also work on a visual selection.
M.keys = {
  { "<CR>", enter, "the obvious thing" },
  { "<Tab>", fold_each, "unfold or fold", x = true },
  { "za", fold_each, "the same" },
  { "s", start_or_stop, "start or stop", x = true },
  { "r", on_servers("mcp.server.restart"), "restart", x = true },
  { "e", on_off, "its tools on or off for now", x = true },
  { "t", trust, "trust (shows what will run)" },
  { "T", on_servers("mcp.server.trust", { trusted = false }), "withdraw trust", x = true },
  { "i", on_servers("mcp.server.auth"), "sign in", x = true },
  { "O", on_servers("mcp.server.auth", { signOut = true }), "sign out", x = true },
  { "a", set_level, "set the level of a tool", x = true },
  { "A", add, "add a server" },
  { "D", remove, "remove from its file", x = true },
  { "E", enable, "on or off in its file", x = true },
  { "c", call, "call a tool" },
  { ".", again, "the last call again" },
  { "l", show_log, "log of the server" },
  { "x", revoke_or_test, "revoke; on a server: test", x = true },
  { "gf", to_config, "to its place in the file" },
  { "K", details, "all about it" },
  { "y", yank, "yank the name" },
  { "gs", on_all("mcp.server.start"), "start all" },
  { "gS", on_all("mcp.server.stop"), "stop all" },
  { "gr", on_all("mcp.server.restart"), "restart all" },
  { "gx", revoke_all, "revoke all grants" },
  { "u", start_sidecar, "start the sidecar" },
  { "<C-l>", reload, "read the config files again" },
  { "q", look.close, "close" },
}

return M
