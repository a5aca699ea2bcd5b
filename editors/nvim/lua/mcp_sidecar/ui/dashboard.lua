--- The dashboard: every server, tool, question, call and grant of the workspace, and a key for each thing to do.
--- Draws what the sidecar last said; only the lines that differ are touched, and the cursor stays on its row.

local client = require("mcp_sidecar.client")
local look = require("mcp_sidecar.ui.look")
local rows = require("mcp_sidecar.ui.rows")

local M = {}

local namespace = vim.api.nvim_create_namespace("mcp_sidecar_dashboard")
local NAME = "mcp-dashboard://workspace"

local state = {
  buffer = nil, ---@type integer?
  view = "servers",
  rows = {}, ---@type mcp_sidecar.Row[]
  unfolded = {}, ---@type table<string, boolean>
  tools = {}, ---@type table<string, mcp_sidecar.Tool[]>
  calls = {},
  grants = {},
  log = {},
  drawing = false,
  offs = {}, ---@type fun()[]
}

local function window()
  local found = state.buffer and vim.fn.bufwinid(state.buffer) or -1
  return found ~= -1 and found or nil
end

local function data()
  local picture = client.picture()
  return vim.tbl_extend("force", state, {
    running = client.current() ~= nil,
    servers = picture.servers,
    approvals = picture.approvals,
  })
end

---The row that the cursor is on, and those of a visual selection.
local function row_here()
  return state.rows[vim.api.nvim_win_get_cursor(0)[1]]
end

local function draw()
  state.drawing = false
  local target = window()
  if not target then
    return
  end
  local width = vim.api.nvim_win_get_width(target)
  local cursor = vim.api.nvim_win_get_cursor(target)
  local under = state.rows[cursor[1]]
  local now = data()
  state.rows = rows.build(state.view, now, width)
  local lines = vim.tbl_map(function(row)
    return row.text
  end, state.rows)
  look.set_lines(state.buffer, lines)
  vim.api.nvim_buf_clear_namespace(state.buffer, namespace, 0, -1)
  for place, row in ipairs(state.rows) do
    for _, span in ipairs(row.spans) do
      vim.api.nvim_buf_set_extmark(state.buffer, namespace, place - 1, math.min(span[1], #row.text), {
        end_col = math.min(span[2], #row.text),
        hl_group = span[3],
      })
    end
  end
  for place, row in ipairs(state.rows) do
    if under and row.id == under.id then
      vim.api.nvim_win_set_cursor(target, { place, cursor[2] })
      break
    end
  end
  local bar = rows.winbar(state.view, now, width)
  if vim.wo[target].winbar ~= bar then
    vim.wo[target].winbar = bar
  end
end

---Several changes in one go are one redraw.
local function redraw()
  if not state.drawing then
    state.drawing = true
    vim.schedule(draw)
  end
end

-- What the picture does not hold is asked for when it is looked at. --------------------------------------------------

local function load_tools(server)
  client.command("mcp.tools", { server = server, all = true }, function(_, result)
    if not server then
      state.tools = {}
    else
      state.tools[server] = {}
    end
    for _, tool in ipairs(result and result.tools or {}) do
      state.tools[tool.server] = state.tools[tool.server] or {}
      table.insert(state.tools[tool.server], tool)
    end
    redraw()
  end)
end

local function load_log()
  local lines, waiting = {}, 0
  for name in pairs(client.picture().servers) do
    waiting = waiting + 1
    client.command("mcp.server.logs", { server = name, limit = 200 }, function(_, result)
      for _, line in ipairs(result and result.lines or {}) do
        line.server = name
        table.insert(lines, line)
      end
      waiting = waiting - 1
      if waiting == 0 then
        table.sort(lines, function(one, other)
          return one.time > other.time
        end)
        state.log = lines
        redraw()
      end
    end)
  end
end

local loaders = {
  tools = function()
    load_tools()
  end,
  calls = function()
    client.command("mcp.calls", { limit = 200 }, function(err, result)
      client.complain(err)
      state.calls = result and result.calls or state.calls
      redraw()
    end)
  end,
  grants = function()
    client.command("mcp.grants", nil, function(err, result)
      client.complain(err)
      state.grants = result and result.grants or state.grants
      redraw()
    end)
  end,
  log = load_log,
}

local function load()
  if loaders[state.view] then
    loaders[state.view]()
  end
end

---@param view string
function M.view(view)
  state.view = view
  load()
  redraw()
end

-- Doing things --------------------------------------------------------------------------------------------------------

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
    local row = state.rows[place]
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
  state.unfolded[server.name] = not state.unfolded[server.name] or nil
  if state.unfolded[server.name] then
    load_tools(server.name)
  end
  redraw()
end

---The obvious thing.
local function enter()
  local row = row_here()
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
              load_tools(tool.server)
            end
          )
        end
      end)
    end
  )
end

local function to_config()
  local row = row_here()
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

local function details()
  local row = row_here()
  if not row or not row.item then
    return
  elseif row.kind == "tool" then
    return require("mcp_sidecar.ui.form").describe(row.item)
  end
  look.peek(
    vim.list_extend({ "```json" }, vim.list_extend(require("mcp_sidecar.json").lines(row.item), { "```" })),
    { title = row.item.name or row.item.title or row.kind }
  )
end

local function yank()
  local row = row_here()
  local text = row and row.item and (row.item.callId or row.item.name or row.item.title)
    or vim.api.nvim_get_current_line()
  vim.fn.setreg('"', text)
  pcall(vim.fn.setreg, "+", text)
  client.say("yanked " .. text)
end

local function revoke_or_test()
  local row = row_here()
  if row and row.kind == "grant" then
    return each("grant", function(grant)
      client.command("mcp.grant.revoke", { id = grant.id }, function(err)
        client.complain(err)
        load()
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
    load()
  end)
end

-- One table is the maps and the help. Those marked `x` also work on a visual selection.
local keys = {
  { "<CR>", enter, "the obvious thing: answer, call, trust, start, unfold" },
  {
    "<Tab>",
    function()
      each("server", fold)
    end,
    "unfold or fold",
    x = true,
  },
  { "s", start_or_stop, "start or stop", x = true },
  { "r", on_servers("mcp.server.restart"), "restart", x = true },
  { "e", on_off, "switch its tools on or off for now", x = true },
  {
    "t",
    function()
      each("server", function(server)
        require("mcp_sidecar.ui.approval").trust(server.name)
      end)
    end,
    "trust (shows what will run)",
  },
  { "T", on_servers("mcp.server.trust", { trusted = false }), "withdraw trust", x = true },
  { "i", on_servers("mcp.server.auth"), "sign in", x = true },
  { "O", on_servers("mcp.server.auth", { signOut = true }), "sign out", x = true },
  { "a", set_level, "set the level of a tool", x = true },
  {
    "c",
    function()
      local row = row_here()
      local item = row and row.item or {}
      if row and row.kind == "tool" then
        require("mcp_sidecar.ui.form").start(item.name)
      else
        require("mcp_sidecar.ui.form").pick({ server = row and row.kind == "server" and item.name or nil })
      end
    end,
    "call a tool",
  },
  {
    ".",
    function()
      require("mcp_sidecar.ui.form").again()
    end,
    "the last call again",
  },
  {
    "l",
    function()
      each("server", function(server)
        require("mcp_sidecar.ui.logs").open(server.name)
      end)
    end,
    "log of the server",
  },
  { "x", revoke_or_test, "revoke the grant; on a server: test it", x = true },
  { "gf", to_config, "to its place in the config file" },
  { "K", details, "all about it" },
  { "y", yank, "yank the name" },
  {
    "gs",
    function()
      command("mcp.server.start", { all = true })
    end,
    "start all",
  },
  {
    "gS",
    function()
      command("mcp.server.stop", { all = true })
    end,
    "stop all",
  },
  {
    "gr",
    function()
      command("mcp.server.restart", { all = true })
    end,
    "restart all",
  },
  {
    "gx",
    function()
      command("mcp.grant.revoke", { all = true })
      load()
    end,
    "revoke all grants",
  },
  {
    "u",
    function()
      client.ensure(function(_, problem)
        client.complain(problem and { message = problem })
        redraw()
      end)
    end,
    "start the sidecar, if it is down",
  },
  { "<C-l>", reload, "read the config files again" },
  { "q", "<Cmd>close<CR>", "close" },
}

local function help()
  local lines = {}
  for _, key in ipairs(keys) do
    table.insert(
      lines,
      ("`%s`%s %s%s"):format(key[1], (" "):rep(6 - #key[1]), key[3], key.x and " (also a selection)" or "")
    )
  end
  table.insert(lines, "`1`…`6` " .. table.concat(rows.views, ", "))
  look.peek(lines, { title = "keys" })
end

local function make_buffer()
  local buffer = look.buffer(NAME, "mcp-dashboard")
  for _, key in ipairs(keys) do
    look.map(buffer, key.x and { "n", "x" } or "n", key[1], key[2], key[3])
  end
  look.map(buffer, "n", "za", function()
    each("server", fold)
  end, "unfold or fold")
  for place, view in ipairs(rows.views) do
    look.map(buffer, "n", tostring(place), function()
      M.view(view)
    end, view)
  end
  look.map(buffer, "n", "g?", help, "help")
  look.map(buffer, "n", "?", help, "help")
  local function on(event, act)
    table.insert(state.offs, client.on(event, act))
  end
  on("servers", redraw)
  on("approvals", redraw)
  on("exit", redraw)
  on("ready", load)
  on("tools", function(change)
    if state.view == "tools" or state.unfolded[change.server] then
      load_tools(change.server)
    end
  end)
  on("call", function()
    if state.view == "calls" then
      load()
    end
  end)
  on("log", function()
    if state.view == "log" then
      load()
    end
  end)
  local resized = vim.api.nvim_create_autocmd({ "VimResized", "WinResized" }, { callback = redraw })
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buffer,
    callback = function()
      vim.api.nvim_del_autocmd(resized)
      for _, off in ipairs(state.offs) do
        off()
      end
      state.offs, state.buffer, state.rows = {}, nil, {}
    end,
  })
  return buffer
end

---@param view? string
---@param mods? table
function M.open(view, mods)
  if not (state.buffer and vim.api.nvim_buf_is_valid(state.buffer)) then
    state.buffer = make_buffer()
  end
  state.view = view or state.view
  local target = look.show(state.buffer, mods)
  vim.wo[target].cursorline = true
  vim.wo[target].wrap = false
  draw()
  client.ensure(function(_, problem)
    client.complain(problem and { message = problem })
    load()
    for name in pairs(state.unfolded) do
      load_tools(name)
    end
    redraw()
  end)
end

return M
