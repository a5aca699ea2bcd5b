--- The dashboard: every server, tool, question, call and grant of the workspace, and a key for each thing to do.
--- Draws what the sidecar last said; only the lines that differ are touched, and the cursor stays on its row.

local client = require("mcp_sidecar.client")
local keys = require("mcp_sidecar.ui.keys")
local look = require("mcp_sidecar.ui.look")
local pictures = require("mcp_sidecar.pictures")
local rows = require("mcp_sidecar.ui.rows")

local M = {}

local namespace = vim.api.nvim_create_namespace("mcp_sidecar_dashboard")

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
}

---@return integer?
local function window()
  local found = state.buffer and vim.fn.bufwinid(state.buffer) or -1
  return found ~= -1 and found or nil
end

---The row that the cursor belongs on: one that was asked for, else the one that it was on.
local function find_row(under)
  for place, row in ipairs(state.rows) do
    if state.wanted and (row.id == "server:" .. state.wanted or (state.wanted == "" and row.kind)) then
      state.wanted = nil
      return place
    end
  end
  for place, row in ipairs(state.rows) do
    if under and row.id == under.id then return place end
  end
end

local function draw()
  state.drawing = false
  local target = window()
  if not (target and state.buffer) then return end
  local width, cursor = vim.api.nvim_win_get_width(target), vim.api.nvim_win_get_cursor(target)
  local under = state.rows[cursor[1]]
  local known = vim.tbl_extend("force", state, {
    running = client.current() ~= nil,
    servers = client.picture().servers,
    approvals = pictures.approvals(),
  })
  state.rows = rows.build(state.view, known, width)
  local lines, marks = {}, {}
  for place, row in ipairs(state.rows) do
    lines[place] = row.text
    for _, span in ipairs(row.spans) do
      table.insert(marks, { place - 1, span[3], span[1], span[2] })
    end
  end
  look.set_lines(state.buffer, lines)
  look.colour(state.buffer, namespace, marks)
  local place = find_row(under)
  if place then vim.api.nvim_win_set_cursor(target, { place, cursor[2] }) end
  local bar = rows.winbar(state.view, known, width)
  if vim.wo[target].winbar ~= bar then vim.wo[target].winbar = bar end
end

---Several changes in one go are one redraw.
local function redraw()
  if not state.drawing then
    state.drawing = true
    vim.schedule(draw)
  end
end

-- What the picture does not hold is asked for when it is looked at. --------------------------------------------------

---@param server? string
local function load_tools(server)
  client.command("mcp.tools", { server = server, all = true }, function(_, result)
    state.tools = server and vim.tbl_extend("force", state.tools, { [server] = {} }) or {}
    for _, tool in ipairs(result and result.tools or {}) do
      state.tools[tool.server] = state.tools[tool.server] or {}
      table.insert(state.tools[tool.server], tool)
    end
    redraw()
  end)
end

local function load_log()
  local lines, waiting = {}, vim.tbl_count(client.picture().servers)
  for name in pairs(client.picture().servers) do
    client.command("mcp.server.logs", { server = name, limit = 200 }, function(_, result)
      for _, line in ipairs(result and result.lines or {}) do
        table.insert(lines, vim.tbl_extend("force", line, { server = name }))
      end
      waiting = waiting - 1
      if waiting == 0 then
        table.sort(lines, function(one, other) return one.time > other.time end)
        state.log = lines
        redraw()
      end
    end)
  end
end

local function load_list(command, field)
  return function()
    client.fetch(command, { limit = field == "calls" and 200 or nil }, function(result)
      state[field] = result[field]
      redraw()
    end)
  end
end

local loaders = {
  servers = client.refresh,
  tools = load_tools,
  calls = load_list("mcp.calls", "calls"),
  grants = load_list("mcp.grants", "grants"),
  log = load_log,
}

local function load()
  if client.current() and loaders[state.view] then loaders[state.view]() end
end

---@param view string
function M.view(view)
  state.view = view
  load()
  redraw()
end

keys.attach({
  rows = function() return state.rows end,
  row = function() return state.rows[vim.api.nvim_win_get_cursor(0)[1]] end,
  unfolded = state.unfolded,
  load = load,
  load_tools = load_tools,
  redraw = redraw,
})

---Two columns where they fit, so that all of it is seen on a small screen.
local function help()
  local entries, selectable = {}, {}
  for _, key in ipairs(keys.keys) do
    table.insert(entries, ("`%s`%s %s"):format(key[1], (" "):rep(6 - #key[1]), key[3]))
    if key.x then table.insert(selectable, "`" .. key[1] .. "`") end
  end
  local half, lines = math.ceil(#entries / 2), vim.o.columns < 76 and entries or {}
  for place = 1, #lines == 0 and half or 0 do
    -- The ticks are not seen, but they count.
    table.insert(lines, look.pad(entries[place], 38) .. "  " .. (entries[place + half] or ""))
  end
  vim.list_extend(lines, { "", "Also on a visual selection: " .. table.concat(selectable, " ") })
  table.insert(lines, ("`1` … `%d` %s"):format(#rows.views, table.concat(rows.views, ", ")))
  look.peek(lines, "keys")
end

---What makes the dashboard ask or draw again, for as long as it is there.
local function listen(buffer)
  local function in_view(view)
    return function()
      if state.view == view then load() end
    end
  end
  local offs = {
    client.on("servers", redraw),
    client.on("approvals", redraw),
    client.on("exit", redraw),
    client.on("ready", load),
    client.on("call", in_view("calls")),
    client.on("call", in_view("servers")),
    client.on("log", in_view("log")),
    client.on("tools", function(change)
      if state.view == "tools" or state.unfolded[change.server] then load_tools(change.server) end
    end),
  }
  local resized = vim.api.nvim_create_autocmd({ "VimResized", "WinResized" }, { callback = redraw })
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buffer,
    callback = function()
      vim.api.nvim_del_autocmd(resized)
      vim.iter(offs):each(function(off) off() end)
      state.buffer, state.rows = nil, {}
    end,
  })
end

local function make_buffer()
  local buffer = look.buffer("mcp-dashboard://workspace", "mcp-dashboard")
  for _, key in ipairs(keys.keys) do
    look.map(buffer, key.x and { "n", "x" } or "n", key[1], key[2], key[3])
  end
  for place, view in ipairs(rows.views) do
    look.map(buffer, "n", tostring(place), function() M.view(view) end, view)
  end
  look.map(buffer, "n", "g?", help, "help")
  look.map(buffer, "n", "?", help, "help")
  listen(buffer)
  return buffer
end

---@param view? string
---@param mods? table
---@param server? string to unfold
function M.open(view, mods, server)
  if not (state.buffer and vim.api.nvim_buf_is_valid(state.buffer)) then state.buffer = make_buffer() end
  state.view = view or state.view
  if server then state.unfolded[server] = true end
  state.wanted = server or (window() == nil and "" or nil)
  vim.wo[look.show(state.buffer, { mods = mods })].cursorline = true
  draw()
  client.ensure(function(_, problem)
    client.complain(problem)
    load()
    vim.iter(vim.tbl_keys(state.unfolded)):each(load_tools)
    redraw()
  end)
end

return M
