--- The dashboard as rows of text: (state, view, width) → rows. Pure functions.

local style = require("mcp_sidecar.ui.style")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

---@class mcp_sidecar.Row: mcp_sidecar.Line
---@field id string stays the same when the view is redrawn
---@field kind? "server"|"tool"|"approval"|"call"|"grant"|"log"
---@field item? any

---@class mcp_sidecar.ServerLogLine: mcp_sidecar.LogLine
---@field server string

---@class mcp_sidecar.Known the data of the rows
---@field running boolean
---@field servers table<string, mcp_sidecar.ServerStatus>
---@field approvals mcp_sidecar.Approval[]
---@field unfolded table<string, boolean?>
---@field tools table<string, mcp_sidecar.ToolInfo[]?>
---@field calls mcp_sidecar.Call[]
---@field grants mcp_sidecar.Grant[]
---@field log mcp_sidecar.ServerLogLine[]

---@alias mcp_sidecar.Cell { [1]: string, [2]?: string, most?: integer, rest?: boolean } text, group, width

---@param id string
---@param chunks mcp_sidecar.Chunk[]
---@param kind? string
---@param item? any
---@return mcp_sidecar.Row
local function row(id, chunks, kind, item)
  local shown = chunks --[[@as mcp_sidecar.Row]]
  shown.id, shown.kind, shown.item = id, kind, item
  return shown
end

local function title(text) return row("title:" .. text, { { " " .. text, "McpTitle" } }) end
local function note(text) return row("note:" .. text, { { "   " .. text, "McpMuted" } }) end

---Items as rows with aligned columns. Each column is as wide as its widest cell, except the one that takes the rest of
---the width. Empty columns are left out.
---@param kind string
---@param items any[]
---@param width integer
---@param cells fun(item: any): mcp_sidecar.Chunk[], mcp_sidecar.Cell[] the prefix and the columns
---@return mcp_sidecar.Row[]
local function columns(kind, items, width, cells)
  local rows, widths, rest, taken = {}, {}, nil, 0 ---@type mcp_sidecar.Row[], integer[], integer?, integer
  local drawn = {} ---@type { front: mcp_sidecar.Chunk[], cells: mcp_sidecar.Cell[] }[]
  for place, item in ipairs(items) do
    local front, line = cells(item)
    drawn[place], taken = { front = front, cells = line }, vim.api.nvim_strwidth(style.text(front)) + 2
    for column, cell in ipairs(line) do
      local wanted = math.min(cell.most or width, vim.api.nvim_strwidth(cell[1]))
      widths[column] = math.max(widths[column] or 0, wanted)
      rest = cell.rest and column or rest
    end
  end
  for column, each in ipairs(widths) do
    if column ~= rest and each > 0 then taken = taken + each + 2 end
  end
  if rest then widths[rest] = math.max(10, width - taken) end
  for place, line in ipairs(drawn) do
    local item = items[place]
    local shown = row(("%s:%s"):format(kind, item.id or item.callId or item.name or place), line.front, kind, item)
    for column, cell in ipairs(line.cells) do
      local wide = widths[column] or 0
      if wide > 0 then table.insert(shown, { style.pad(cell[1], wide) .. "  ", cell[2] }) end
    end
    rows[place] = shown
  end
  return rows
end

---The text next to a server: why it is not connected, or what it has.
---@param server mcp_sidecar.ServerStatus
---@return string text, string? group
local function summary(server)
  if server.status == "disabled" then return "in its config file", "McpMuted" end
  if server.status == "failed" then return server.error or "failed", "McpError" end
  if server.status == "needs-auth" then return "sign in with i", "McpWarn" end
  if server.needsTrust or server.reason == "awaiting-trust" then
    return server.trustDiff and "changed since you trusted it: review with t" or "not trusted yet: review with t",
      "McpWarn"
  end
  if server.status == "pending" then return server.reason or "starting", "McpWarn" end
  if server.status ~= "connected" then return server.config.description or "", "McpMuted" end
  local parts = {}
  local has = { { server.toolCount, "tool" }, { server.resourceCount, "resource" }, { server.promptCount, "prompt" } }
  for _, part in ipairs(has) do
    if part[1] > 0 then table.insert(parts, ("%d %s%s"):format(part[1], part[2], part[1] == 1 and "" or "s")) end
  end
  return table.concat(parts, "  ")
end

---@param servers mcp_sidecar.ServerStatus[]
---@param unfolded table<string, boolean?>
local function server_rows(servers, unfolded, width)
  return columns("server", servers, width, function(server)
    local state, words, group = style.status[server.status], summary(server)
    local shown = server.enabled or server.status == "disabled"
    return {
      { unfolded[server.name] and " ▾ " or " ▸ ", "McpMuted" },
      { state.icon .. " ", state.group },
    }, {
      { server.name, server.enabled and "McpServer" or "McpMuted", most = 28 },
      { server.status .. (shown and "" or " off"), state.group },
      { words, group, rest = true },
      { style.duration(server.latencyMs), "McpMuted" },
      { width >= 100 and server.transport or "", "McpMuted" },
      { server.scope, "McpMuted" },
    }
  end)
end

---@param tools mcp_sidecar.ToolInfo[]
---@param indent integer
---@param width integer
local function tool_rows(tools, indent, width)
  return columns("tool", tools, width, function(tool)
    local word, group = style.effect(tool.annotations)
    return { { (" "):rep(indent) } }, {
      { tool.tool, "McpTool", most = 28 },
      { tool.level, style.level_group(tool.level) },
      { word, group },
      { tool.changed and "changed since you allowed it" or tool.description, tool.changed and "McpWarn", rest = true },
      { width >= 110 and tool.source or "", "McpMuted", most = 28 },
    }
  end)
end

---The rows of an unfolded server: errors, tools, where it is defined.
---@param server mcp_sidecar.ServerStatus
---@param tools? mcp_sidecar.ToolInfo[]
---@return mcp_sidecar.Row[]
local function details(server, tools, width)
  local rows = {}
  local function detail(label, text, group)
    for place, line in ipairs(text and text ~= "" and style.wrap(text, width - 18) or {}) do
      local chunks = { { "       " .. style.pad(place == 1 and label or "", 9), "McpMuted" }, { line, group } }
      table.insert(rows, row(("detail:%s:%s:%d"):format(server.name, label, place), chunks, "server", server))
    end
  end
  detail("error", server.error, "McpError")
  detail("changed", server.trustDiff, "McpWarn")
  detail("warning", table.concat(server.warnings, "\n"), "McpWarn")
  if server.toolCount > 0 and not tools then detail("tools", "…") end
  vim.list_extend(rows, tool_rows(tools or {}, 7, width))
  local definition = server.config
  if server.status ~= "connected" or #(tools or {}) == 0 then
    local words = vim.iter({ definition.command or definition.url or {}, definition.args or {} }):flatten(2)
    detail("runs", words:map(tostring):join(" "))
  end
  local place = server.file and vim.fn.fnamemodify(server.file, ":~:.")
  detail("from", place and place .. (server.line and ":" .. server.line + 1 or ""))
  return rows
end

---@param name string
---@param rows mcp_sidecar.Row[]
---@param none string shown when there are none
local function section(name, rows, none) return vim.list_extend({ title(name) }, #rows > 0 and rows or { note(none) }) end

---@param servers table<string, mcp_sidecar.ServerStatus>
---@return mcp_sidecar.ServerStatus[]
local function sorted(servers)
  local found = vim.tbl_values(servers)
  table.sort(found, function(one, other) return one.name < other.name end)
  return found
end

---@type table<string, fun(known: mcp_sidecar.Known, width: integer): mcp_sidecar.Row[]>
local views = {}

function views.servers(known, width)
  local rows = {}
  for _, shown in ipairs(server_rows(sorted(known.servers), known.unfolded, width)) do
    local server = shown.item --[[@as mcp_sidecar.ServerStatus]]
    table.insert(rows, shown)
    if known.unfolded[server.name] then vim.list_extend(rows, details(server, known.tools[server.name], width)) end
  end
  local empty = "no servers yet: press A to add one, or define one in mcp.json"
  rows = section("Servers", rows, known.running and empty or "the sidecar is not running: press u to start it")
  if #known.approvals == 0 then return rows end
  return vim.list_extend(vim.list_extend(views.approvals(known, width), { row("blank", {}) }), rows)
end

function views.tools(known, width)
  local rows, all = {}, {}
  for _, server in ipairs(sorted(known.servers)) do
    vim.list_extend(all, known.tools[server.name] or {})
  end
  -- The tools of all servers share their columns.
  for place, shown in ipairs(tool_rows(all, 3, width)) do
    local server = all[place].server
    local above = (all[place - 1] or {}).server
    if above and above ~= server then table.insert(rows, row("blank:" .. server, {})) end
    if above ~= server then table.insert(rows, title(server)) end
    table.insert(rows, shown)
  end
  return #rows > 0 and rows or { note("no tools: no server is connected") }
end

function views.approvals(known, width)
  local rows = columns("approval", known.approvals, width, function(approval)
    local kind = approval.kind == "trust" and approval.diff and "changed" or approval.kind
    return { { "   ? ", "McpWarn" } }, {
      { approval.title, rest = true },
      { kind, "McpMuted" },
      { "<CR> answers", "McpKey" },
    }
  end)
  return section("Waiting for you", rows, "no questions")
end

function views.calls(known, width)
  local rows = columns("call", known.calls, width, function(call)
    local mark, group = style.outcome(call.success)
    return { { "   " .. style.clock(call.time) .. " ", "McpMuted" }, { mark .. " ", group } }, {
      { call.server .. "/" .. call.tool, "McpTool", most = 28 },
      { style.duration(call.durationMs), "McpMuted" },
      { call.requester.name or call.requester.kind, most = 12 },
      {
        call.error or ("%s by %s"):format(call.decision, call.decidedBy),
        call.error and "McpError" or "McpMuted",
        rest = true,
      },
    }
  end)
  return section("Calls", rows, "no tool has been called yet")
end

function views.grants(known, width)
  local rows = columns(
    "grant",
    known.grants,
    width,
    function(grant)
      return { { "   " } }, {
        { grant.server .. "/" .. grant.tool, "McpTool", most = 36 },
        { grant.level, style.level_group(grant.level) },
        { grant.scope },
        { "since " .. grant.since:sub(1, 10), "McpMuted" },
        { "x revokes", "McpKey" },
      }
    end
  )
  return section("Your lasting answers", rows, "no lasting answers")
end

function views.log(known, width)
  local rows = columns("log", known.log, width, function(line)
    local group = require("mcp_sidecar.ui.logs").group(line)
    return { { "   " .. style.clock(line.time) .. " ", "McpMuted" } }, {
      { line.server, "McpServer", most = 20 },
      { line.level, group },
      { line.text, group, rest = true },
    }
  end)
  return section("Log", rows, "no log lines yet")
end

M.views = { "servers", "tools", "approvals", "calls", "grants", "log" }

---@param view string
---@param known mcp_sidecar.Known
---@param width integer
---@return mcp_sidecar.Row[]
function M.build(view, known, width) return views[view](known, width) end

---The winbar: counts and views.
---@param view string
---@param known mcp_sidecar.Known
---@param width integer
---@return string
function M.winbar(view, known, width)
  local function name(of) return (of:gsub("^%l", string.upper)) end
  local count, chunks, keys = {}, { { width >= 90 and " MCP " or "", "McpTitle" } }, {}
  for _, server in pairs(known.servers) do
    count[server.status] = (count[server.status] or 0) + 1
  end
  local function count_chunk(number, icon, word, group)
    local text = (" %s %d %s"):format(icon, number or 0, width >= 110 and word .. " " or "")
    if (number or 0) > 0 then table.insert(chunks, { text, group }) end
  end
  for _, status in ipairs({ "connected", "failed", "needs-auth", "pending" }) do
    count_chunk(count[status], style.status[status].icon, status, style.status[status].group)
  end
  count_chunk(#known.approvals, "?", "waiting", "McpWarn")
  for place, each in ipairs(M.views) do
    keys[place] = { tostring(place), name(each), each == view and "McpTitle" or nil }
  end
  return windows.winbar(chunks, vim.list_extend(keys, { { "?", "help" } }))
end

return M
