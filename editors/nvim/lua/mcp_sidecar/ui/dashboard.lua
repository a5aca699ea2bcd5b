--- The dashboard: every server, tool, question, call and grant of the workspace, and a key for each thing to do.
--- Draws what the sidecar last said; only the lines that differ are touched, and the cursor stays on its row.

local client = require("mcp_sidecar.client")
local keys = require("mcp_sidecar.ui.keys")
local look = require("mcp_sidecar.ui.look")
local pictures = require("mcp_sidecar.pictures")
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
  wanted = nil, ---@type string? where the cursor is to go: a server, or "" for the first row of any use
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
    approvals = pictures.approvals(),
  })
end

---Puts the cursor, once there is something to put it on: on a server that was asked for, else on the first row that
---something can be done with.
local function settle(target)
  for place, row in ipairs(state.rows) do
    if state.wanted and (row.id == "server:" .. state.wanted or (state.wanted == "" and row.kind)) then
      vim.api.nvim_win_set_cursor(target, { place, 0 })
      state.wanted = nil
    end
  end
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
  settle(target)
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

keys.attach({
  rows = function()
    return state.rows
  end,
  row = function()
    return state.rows[vim.api.nvim_win_get_cursor(0)[1]]
  end,
  unfolded = state.unfolded,
  load = load,
  load_tools = load_tools,
  redraw = redraw,
})

---Two columns, so that all of it fits a small screen.
local function help()
  local entries, selectable = {}, {}
  for _, key in ipairs(keys.keys) do
    table.insert(entries, ("`%s`%s %s"):format(key[1], (" "):rep(6 - #key[1]), key[3]))
    if key.x then
      table.insert(selectable, "`" .. key[1] .. "`")
    end
  end
  local half, lines = math.ceil(#entries / 2), {}
  for place = 1, half do
    -- The ticks are not seen, but they count.
    table.insert(lines, look.pad(entries[place], 38) .. "  " .. (entries[place + half] or ""))
  end
  vim.list_extend(lines, { "", "Also on a visual selection: " .. table.concat(selectable, " ") })
  table.insert(lines, ("`1` … `%d` %s"):format(#rows.views, table.concat(rows.views, ", ")))
  look.peek(lines, { title = "keys" })
end

local function make_buffer()
  local buffer = look.buffer(NAME, "mcp-dashboard")
  for _, key in ipairs(keys.keys) do
    look.map(buffer, key.x and { "n", "x" } or "n", key[1], key[2], key[3])
  end
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
---@param server? string to unfold
function M.open(view, mods, server)
  if not (state.buffer and vim.api.nvim_buf_is_valid(state.buffer)) then
    state.buffer = make_buffer()
  end
  state.view = view or state.view
  if server then
    state.unfolded[server] = true
  end
  local fresh = window() == nil
  local target = look.show(state.buffer, mods)
  vim.wo[target].cursorline = true
  vim.wo[target].wrap = false
  state.wanted = server or (fresh and "" or nil)
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
