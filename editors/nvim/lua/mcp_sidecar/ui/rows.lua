--- The dashboard as rows of text: (state, view, width) → rows. Pure functions.

local style = require("mcp_sidecar.ui.style")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

-- The errors of a config file that are listed.
local MOST_ERRORS = 3
-- The width of a file with a line.
local LONGEST_PLACE = 32

---@class mcp_sidecar.Row: mcp_sidecar.Line
---@field id string stays the same when the view is redrawn
---@field kind? "server"|"tool"|"resource"|"prompt"|"approval"|"call"|"agent"|"grant"|"log"|"file"
---@field item? any

---@class mcp_sidecar.ServerLogLine: mcp_sidecar.LogLine
---@field server string

---@class mcp_sidecar.Known the data of the rows
---@field running boolean
---@field servers mcp_sidecar.ServerStatus[]
---@field approvals mcp_sidecar.Approval[]
---@field unfolded table<string, boolean?>
---@field tools table<string, mcp_sidecar.ToolInfo[]?>
---@field resources table<string, mcp_sidecar.ResourceInfo[]?> with templates
---@field prompts table<string, mcp_sidecar.PromptInfo[]?>
---@field files mcp_sidecar.ConfigFile[]
---@field calls mcp_sidecar.Call[]
---@field agents mcp_sidecar.AgentStatus[]
---@field grants mcp_sidecar.Grant[]
---@field log mcp_sidecar.ServerLogLine[]

---@alias mcp_sidecar.Cell { [1]: string, [2]?: string, most?: integer, rest?: boolean } text, group, width

---@param chunks mcp_sidecar.Chunk[]
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
---@param cells fun(item: any): mcp_sidecar.Chunk[], mcp_sidecar.Cell[] the prefix and the columns
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

---@param servers mcp_sidecar.ServerStatus[]
---@param unfolded table<string, boolean?>
local function server_rows(servers, unfolded, width)
  return columns("server", servers, width, function(server)
    local tone, fold = style.tones[server.summary.tone], unfolded[server.name] and " ▾ " or " ▸ "
    return { { fold, "McpMuted" }, { tone.icon .. " ", tone.group } }, {
      { server.name, "McpServer", most = 28 },
      { server.summary.text, tone.group, rest = true },
      { width >= 110 and server.tokens > 0 and style.tokens(server.tokens) .. " tokens" or "", "McpMuted" },
      { style.duration(server.latencyMs), "McpMuted" },
      { width >= 100 and server.transport or "", "McpMuted" },
      -- In a narrow window, what is wrong with a server matters more than where it is defined.
      { width >= 90 and server.scope or "", "McpMuted" },
    }
  end)
end

---@param tools mcp_sidecar.ToolInfo[]
local function tool_rows(tools, indent, width)
  return columns("tool", tools, width, function(tool)
    local word, group = style.effect(tool.annotations)
    return { { (" "):rep(indent) } }, {
      { tool.tool, "McpTool", most = 28 },
      { tool.level, style.level_group(tool.level) },
      { word, group },
      { tool.changed and "changed since you allowed it" or tool.description, tool.changed and "McpWarn", rest = true },
      { width >= 80 and style.tokens(tool.tokens) or "", "McpMuted" },
      -- What a tool does matters more; `K` also says what decided its level.
      { width >= 130 and tool.source or "", "McpMuted", most = 28 },
    }
  end)
end

---What a server offers besides tools.
---@param server string
---@param known mcp_sidecar.Known
local function offer_rows(server, known, width)
  local items = {} ---@type { id: string, kind: "resource"|"prompt", name: string, item: any }[]
  local function add(kind, item)
    local name = item.uri or item.uriTemplate or item.name
    table.insert(items, { id = ("%s:%s"):format(server, name), kind = kind, name = name, item = item })
  end
  vim.iter(known.resources[server] or {}):each(function(item) add("resource", item) end)
  vim.iter(known.prompts[server] or {}):each(function(item) add("prompt", item) end)
  local rows = columns(
    "offer",
    items,
    width,
    function(each)
      return { { (" "):rep(7) } }, {
        { each.name, "McpTool", most = math.max(28, math.floor(width / 2) - 8) },
        { each.kind, "McpMuted" },
        { each.item.description or each.item.title or "", rest = true },
      }
    end
  )
  for place, shown in ipairs(rows) do
    shown.kind, shown.item = items[place].kind, items[place].item
  end
  return rows
end

---An item for each line of a message: how to fix an error is at its end.
---@param items { id: string, name: string, message: string }[]
local function wrapped(items, width)
  local function wider(most, item) return math.max(most, vim.api.nvim_strwidth(item.name)) end
  local lines = {}
  local room = math.max(20, width - 9 - math.min(LONGEST_PLACE, vim.iter(items):fold(0, wider))) --[[@as integer]]
  for _, item in ipairs(items) do
    for number, text in ipairs(style.wrap(item.message, room)) do
      local id = number == 1 and item.id or ("%s:%d"):format(item.id, number)
      table.insert(lines, vim.tbl_extend("force", item, { id = id, first = number == 1, shown = text }))
    end
  end
  return lines
end

---The errors in config files.
---@param files mcp_sidecar.ConfigFile[]
local function file_rows(files, width)
  local items = {}
  for _, file in ipairs(files) do
    local name = vim.fn.fnamemodify(file.path, ":~:.")
    for number, each in ipairs(vim.list_slice(file.errors, 1, MOST_ERRORS)) do
      local place, more = ("%s:%d"):format(name, each.line + 1), #file.errors - MOST_ERRORS
      local rest = file.valid and "" or " (the last valid version stays in effect)"
      if number == MOST_ERRORS and more > 0 then rest = (" (and %d more)"):format(more) end
      table.insert(items, {
        id = ("%s:%s"):format(place, each.message),
        file = file.path,
        line = each.line,
        name = place,
        message = each.message .. rest,
      })
    end
  end
  return columns(
    "file",
    wrapped(items, width),
    width,
    function(item)
      return { { item.first and "   ✗ " or "     ", "McpError" } }, {
        { item.first and item.name or "", "McpServer", most = LONGEST_PLACE },
        { item.shown, "McpError", rest = true },
      }
    end
  )
end

---The rows of an unfolded server: errors, what it offers, where it is defined.
---@param server mcp_sidecar.ServerStatus
---@param known mcp_sidecar.Known
local function details(server, known, width)
  local tools = known.tools[server.name]
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
  vim.list_extend(rows, offer_rows(server.name, known, width))
  detail("runs", server.launch)
  local place = server.file and vim.fn.fnamemodify(server.file, ":~:.")
  detail("from", place and place .. (server.line and ":" .. server.line + 1 or ""))
  return rows
end

---@param rows mcp_sidecar.Row[]
---@param none string shown when there are none
local function section(name, rows, none) return vim.list_extend({ title(name) }, #rows > 0 and rows or { note(none) }) end

---@type table<string, fun(known: mcp_sidecar.Known, width: integer): mcp_sidecar.Row[]>
local views = {}

function views.servers(known, width)
  local rows = {}
  for _, shown in ipairs(server_rows(known.servers, known.unfolded, width)) do
    local server = shown.item --[[@as mcp_sidecar.ServerStatus]]
    table.insert(rows, shown)
    if known.unfolded[server.name] then vim.list_extend(rows, details(server, known, width)) end
  end
  local broken = known.running and file_rows(known.files, width) or {}
  local empty = #broken > 0 and "no servers: fix the file above (<CR> goes there)"
    or "no servers yet: press A to add one, or define one in mcp.json"
  rows = section("Servers", rows, known.running and empty or "the sidecar is not running: press u to start it")
  local above = #known.approvals > 0 and views.approvals(known, width) or {}
  if #broken > 0 then
    if #above > 0 then table.insert(above, row("blank:approvals", {})) end
    vim.list_extend(above, section("Errors in config files", broken, ""))
  end
  if #above == 0 then return rows end
  return vim.list_extend(vim.list_extend(above, { row("blank", {}) }), rows)
end

function views.tools(known, width)
  local rows, all = {}, {}
  for _, server in ipairs(known.servers) do
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
  local function cells(approval)
    local shown = { { approval.title, rest = true }, { approval.kind, "McpMuted" }, { "<CR> answers", "McpKey" } }
    return { { "   ? ", "McpWarn" } }, shown
  end
  return section("Waiting for you", columns("approval", known.approvals, width, cells), "no questions")
end

function views.calls(known, width)
  local rows = columns("call", known.calls, width, function(call)
    local mark, group = style.outcome(call.success)
    local how = call.error or ("%s by %s"):format(call.decision, call.decidedBy)
    return { { "   " .. style.clock(call.time) .. " ", "McpMuted" }, { mark .. " ", group } }, {
      { call.server .. "/" .. call.tool, "McpTool", most = 28 },
      { style.duration(call.durationMs), "McpMuted" },
      { width >= 90 and style.tokens(call.resultTokens) or "", "McpMuted" },
      { call.requester.name or call.requester.kind, most = 12 },
      { call.folder and "in " .. vim.fs.basename(call.folder) or "", "McpMuted", most = 20 },
      { how, call.error and "McpError" or "McpMuted", rest = true },
    }
  end)
  return section("Calls", rows, "no tool has been called yet")
end

function views.agents(known, width)
  local rows = columns("agent", known.agents, width, function(agent)
    local waits = vim.iter(agent.calls):any(function(call) return call.question ~= nil end)
    local tone = (agent.paused or agent.problem or waits) and "attention" or #agent.calls > 0 and "busy" or "muted"
    local today, word = agent.today, agent.today.calls == 1 and "call" or "calls"
    local figures = ("%d %s, %d denied, %s tokens"):format(today.calls, word, today.denied, style.tokens(today.tokens))
    return { { "   " .. style.tones[tone].icon .. " ", style.tones[tone].group } }, {
      { agent.name ~= "" and agent.name or "(no name yet)", "McpServer", most = 24 },
      { agent.problem or agent.doing, style.tones[tone].group, rest = true },
      { agent.set and "set " .. agent.set or "", most = 20 },
      { figures, "McpMuted" },
      { width >= 100 and vim.fs.basename(agent.folder) or "", "McpMuted", most = 20 },
      { width >= 90 and "since " .. style.clock(agent.since) or "", "McpMuted" },
    }
  end)
  return section("Agents", rows, "no agent is connected: `mcp-sidecar setup` configures one")
end

function views.grants(known, width)
  local function cells(grant)
    return { { "   " } }, {
      { grant.server .. "/" .. grant.tool, "McpTool", most = 36 },
      { grant.level, style.level_group(grant.level) },
      { grant.scope },
      { "since " .. grant.since:sub(1, 10), "McpMuted" },
      { "x revokes", "McpKey" },
    }
  end
  return section("Your lasting answers", columns("grant", known.grants, width, cells), "no lasting answers")
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

M.views = { "servers", "tools", "approvals", "calls", "grants", "log", "agents" }

M.build = views

---The winbar: counts and views.
---@param view string
---@param known mcp_sidecar.Known
---@param width integer
function M.winbar(view, known, width)
  local function name(of) return (of:gsub("^%l", string.upper)) end
  local count, chunks, keys = {}, { { width >= 90 and " MCP " or "", "McpTitle" } }, {}
  for _, server in ipairs(known.servers) do
    count[server.summary.tone] = (count[server.summary.tone] or 0) + 1
  end
  local function count_chunk(number, icon, group)
    if (number or 0) > 0 then table.insert(chunks, { (" %s %d "):format(icon, number), group }) end
  end
  for _, tone in ipairs({ "good", "bad", "attention", "busy" }) do
    count_chunk(count[tone], style.tones[tone].icon, style.tones[tone].group)
  end
  count_chunk(#known.approvals, "?", "McpWarn")
  for place, each in ipairs(M.views) do
    keys[place] = { tostring(place), name(each), each == view and "McpTitle" or nil }
  end
  return windows.winbar(chunks, vim.list_extend(keys, { { "?", "help" } }))
end

return M
