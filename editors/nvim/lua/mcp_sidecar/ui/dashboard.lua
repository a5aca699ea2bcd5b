--- The dashboard: every server, tool, question, call, agent and grant of the workspace, with keys for each action.
--- It shows the last known state. Only lines that differ are written, and the cursor stays on its row.

local client = require("mcp_sidecar.client")
local keys = require("mcp_sidecar.ui.keys")
local workspaces = require("mcp_sidecar.workspaces")
local rows = require("mcp_sidecar.ui.rows")
local style = require("mcp_sidecar.ui.style")
local windows = require("mcp_sidecar.ui.windows")

---@class mcp_sidecar.Dashboard
local M = {}

local NAME = "mcp-dashboard://workspace"

local state = {
  view = "servers",
  rows = {}, ---@type mcp_sidecar.Row[]
  unfolded = {}, ---@type table<string, boolean?>
  tools = {}, ---@type table<string, mcp_sidecar.ToolInfo[]?>
  resources = {}, ---@type table<string, mcp_sidecar.ResourceInfo[]?>
  prompts = {}, ---@type table<string, mcp_sidecar.PromptInfo[]?>
  files = {}, ---@type mcp_sidecar.ConfigFile[]
  calls = {}, ---@type mcp_sidecar.Call[]
  agents = {}, ---@type mcp_sidecar.AgentStatus[]
  grants = {}, ---@type mcp_sidecar.Grant[]
  log = {}, ---@type mcp_sidecar.ServerLogLine[]
  drawing = false,
  wanted = nil, ---@type string? where the cursor should go: a server, or "" for the first row with an item
}

---@return mcp_sidecar.Row[]
function M.rows() return state.rows end

---The row for the cursor: the requested one, else the one it was on.
---@param under? mcp_sidecar.Row
local function find_row(under)
  local wanted, found = state.wanted, nil
  for place, row in ipairs(state.rows) do
    if wanted and (row.id == "server:" .. wanted or (wanted == "" and row.kind)) then
      state.wanted = nil
      return place
    end
    found = found or (under and row.id == under.id and place) or nil
  end
  return found
end

---The servers, what needs the user first.
---@return mcp_sidecar.ServerStatus[]
local function sorted_servers()
  local servers = require("mcp_sidecar").servers()
  local function order(server) return style.tones[server.summary.tone].order end
  table.sort(servers, function(one, other)
    if order(one) ~= order(other) then return order(one) < order(other) end
    return one.name < other.name
  end)
  return servers
end

local function draw()
  state.drawing = false
  local window = windows.window_of(NAME)
  if not window then return end
  local width, cursor = vim.api.nvim_win_get_width(window), vim.api.nvim_win_get_cursor(window)
  local under = state.rows[cursor[1]]
  local known = vim.tbl_extend("force", state, {
    running = client.current() ~= nil,
    servers = sorted_servers(),
    approvals = workspaces.approvals(),
  }) --[[@as mcp_sidecar.Known]]
  state.rows = rows.build[state.view](known, width)
  windows.paint(vim.api.nvim_win_get_buf(window), state.rows)
  local place = find_row(under)
  if place then vim.api.nvim_win_set_cursor(window, { place, cursor[2] }) end
  local bar = rows.winbar(state.view, known, width)
  if vim.wo[window].winbar ~= bar then vim.wo[window].winbar = bar end
end

---Redraws soon. Several changes at once cause one redraw.
function M.redraw()
  if not state.drawing then
    state.drawing = true
    vim.schedule(draw)
  end
end

-- Data that is not in notifications is loaded when its view is shown. ------------------------------------------------

---@param server? string
function M.load_tools(server)
  client.command("mcp.tools", { server = server, all = true }, function(_, result)
    state.tools = server and vim.tbl_extend("force", state.tools, { [server] = {} }) or {}
    for _, tool in ipairs(result and result.tools or {}) do
      state.tools[tool.server] = state.tools[tool.server] or {}
      table.insert(state.tools[tool.server], tool)
    end
    M.redraw()
  end)
end

---Loads what a server offers besides tools.
---@param server string
local function load_offers(server)
  client.command("mcp.resources", { server = server }, function(_, result)
    state.resources[server] = result and vim.list_extend(result.resources, result.templates) or nil
    M.redraw()
  end)
  client.command("mcp.prompts", { server = server }, function(_, result)
    state.prompts[server] = result and result.prompts or nil
    M.redraw()
  end)
end

---@param server string
local function load_details(server)
  M.load_tools(server)
  load_offers(server)
end

local function load_files()
  client.command("mcp.config", nil, function(_, result)
    state.files = result and result.files or {}
    M.redraw()
  end)
end

local function load_servers()
  client.refresh()
  load_files()
end

local function load_log()
  local lines = {}
  for name in pairs(client.workspace().servers) do
    client.command("mcp.server.logs", { server = name, limit = 200 }, function(_, result)
      for _, line in ipairs(result and result.lines or {}) do
        table.insert(lines, vim.tbl_extend("force", line, { server = name }))
      end
      table.sort(lines, function(one, other) return one.time > other.time end)
      state.log = lines
      M.redraw()
    end)
  end
end

---@param view "calls"|"grants"|"agents"
local function load_list(view)
  client.fetch("mcp." .. view, { limit = view == "calls" and 200 or nil }, function(result)
    state[view] = result[view]
    M.redraw()
  end)
end

---@type table<string, fun()?>
local loaders = {
  servers = load_servers,
  tools = M.load_tools,
  calls = function() load_list("calls") end,
  agents = function() load_list("agents") end,
  grants = function() load_list("grants") end,
  log = load_log,
}

---Reloads the data of the current view, if the dashboard is visible.
function M.load()
  local load = windows.window_of(NAME) and client.current() and loaders[state.view]
  if load then load() end
end

---@param server mcp_sidecar.ServerStatus
function M.fold(server)
  state.unfolded[server.name] = not state.unfolded[server.name] or nil
  if state.unfolded[server.name] then load_details(server.name) end
  M.redraw()
end

keys.attach(M)

local function make_buffer()
  local buffer = windows.buffer(NAME, "mcp-dashboard")
  local selectable = vim.iter(keys.keys):map(function(key) return key.mode and ("`%s`"):format(key[1]) end):join(" ")
  windows.keys(buffer, "keys", keys.keys, {
    "",
    "On a selection: " .. selectable,
    ("`1` … `%d` %s"):format(#rows.views, table.concat(rows.views, ", ")),
  })
  for place, view in ipairs(rows.views) do
    windows.map(buffer, "n", tostring(place), function()
      state.view = view
      M.load()
      M.redraw()
    end, view)
  end
  return buffer
end

---@param view? string
---@param mods? table
---@param server? string to unfold
function M.open(view, mods, server)
  state.view = view or state.view
  if server then state.unfolded[server] = true end
  state.wanted = server or (not windows.window_of(NAME) and "" or nil)
  vim.wo[windows.show(windows.find(NAME) or make_buffer(), { mods = mods })].cursorline = true
  draw()
  client.ensure(function(_, problem)
    client.error(problem)
    M.load()
    vim.iter(vim.tbl_keys(state.unfolded)):each(load_details)
    M.redraw()
  end)
end

-- Events that reload or redraw the dashboard.
for _, event in ipairs({ "servers", "approvals", "exit" }) do
  client.on(event, M.redraw)
end
client.on("ready", M.load)
client.on("reload", function()
  if windows.window_of(NAME) then load_files() end
end)
client.on("servers", function(change)
  local server = change.server
  if server and state.unfolded[server.name] and windows.window_of(NAME) then load_offers(server.name) end
end)
client.on("call", function()
  if state.view == "calls" or state.view == "servers" then M.load() end
end)
for _, event in ipairs({ "agents", "approvals", "call" }) do
  client.on(event, function()
    if state.view == "agents" then M.load() end
  end)
end
client.on("log", function()
  if state.view == "log" then M.load() end
end)
client.on("tools", function(change)
  if state.view == "tools" or state.unfolded[change.server] then M.load_tools(change.server) end
end)
vim.api.nvim_create_autocmd({ "VimResized", "WinResized" }, {
  group = vim.api.nvim_create_augroup("mcp_sidecar_dashboard", {}),
  callback = M.redraw,
})

return M
