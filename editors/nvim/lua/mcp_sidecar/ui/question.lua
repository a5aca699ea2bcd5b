--- A question to the user as text, its answers and their keys. Opens no window.

local client = require("mcp_sidecar.client")
local json = require("mcp_sidecar.json")
local style = require("mcp_sidecar.ui.style")

local M = {}

---@class mcp_sidecar.Answer
---@field keys string one key for an answer to this question only, two for one that lasts or grants several
---@field answer mcp_sidecar.ApprovalAnswer
---@field label string
---@field hint? string a short label
---@field note? boolean the user is asked why
---@field edit? boolean the user changes the arguments first

---The keys of each decision.
---@type table<string, string?>
local keys = {
  ["allow-once"] = "y",
  accept = "y",
  deny = "n",
  decline = "n",
  cancel = "c",
  ["allow-session"] = "as",
  ["allow-read-only"] = "ar",
  ["allow-project"] = "ap",
  ["allow-always"] = "aa",
  disable = "ad",
}

---The answers that this question takes, with their keys. A single key never grants anything that outlives the session,
---nor several things.
---@param approval mcp_sidecar.Question
---@param marked? boolean whether some questions of a group are marked
---@return mcp_sidecar.Answer[]
function M.choices(approval, marked)
  local choices = {}
  for _, answer in ipairs(approval.answers) do
    local session = approval.kind == "trust" and answer.decision == "allow-session" and not approval.members
    local key = session and "y" or keys[answer.decision]
    if approval.members and key == "y" then key = "ay" end
    local label = marked and answer.selectedLabel or answer.label
    if key then table.insert(choices, { keys = key, answer = answer, label = label }) end
    if key == "n" and approval.kind == "tool" then
      table.insert(choices, { keys = "N", answer = answer, label = label .. " and say why", note = true })
    elseif key == "y" and approval.kind == "tool" and not (approval.resource or approval.prompt) then
      label = "Edit the arguments, then " .. answer.label:lower()
      table.insert(choices, { keys = "e", answer = answer, label = label, hint = "Edit", edit = true })
    end
  end
  return choices
end

---What the user reads after an answer that lasts: one line, so that Neovim does not ask for <Enter>.
---@param result mcp_sidecar.Resolved|mcp_sidecar.ApprovalAnswer
---@param grants boolean whether the answer lets something happen
function M.confirmation(result, grants)
  if not result.effect then return nil end
  local undo = ""
  if result.undo then
    local typed = client.typed(result.undo)
    -- It is undone for one server at a time. Without a name, the commands let the user choose one.
    if result.undo.command == "mcp.servers" then typed = grants and "`:Mcp distrust`" or "`:Mcp trust`" end
    undo = " Undo: " .. typed
  end
  -- The ruler of the prompt is in the same line.
  local room = math.max(20, vim.o.columns - 19 - vim.api.nvim_strwidth(undo))
  local fits = vim.api.nvim_strwidth(result.effect) <= room
  local effect = fits and result.effect or result.shortEffect or result.effect
  local names, rest = effect:match("^(.*`)(.*)$")
  -- Long names are cut first: what comes after them could get another meaning.
  local for_names = room - vim.api.nvim_strwidth(rest or "")
  if names and for_names >= 12 then return style.fit(names, for_names) .. rest .. undo end
  return style.fit(effect, room) .. undo
end

---How questions ended, one line for those that ended in the same way.
---@param ended mcp_sidecar.ClosedApproval[]
---@return string[]
function M.endings(ended)
  local titles = vim.defaulttable(function() return {} end)
  for _, each in ipairs(ended) do
    table.insert(titles[each.message], each.title)
  end
  local function line(message, of)
    local title = #of > 1 and ("%d questions"):format(#of) or of[1]
    -- The title may be cut, but not how it ended.
    local room = math.max(12, vim.o.columns - 21 - vim.api.nvim_strwidth(message))
    return ("%s: %s"):format(style.fit(title, room), message)
  end
  return vim.iter(vim.spairs(titles)):map(line):totable()
end

---@alias mcp_sidecar.Add fun(text: string, group?: string, label?: string) adds one line per line of the text

---What the tool says that it does. The title says which tool it is, and who asks for it.
---@param annotations mcp_sidecar.Annotations
---@param add mcp_sidecar.Add
local function effect(annotations, add)
  local word, group = style.effect(annotations)
  local outside = annotations.openWorld and " and accesses the network or other external systems" or ""
  if word == "" then return add("The tool does not say whether it writes" .. outside, "McpWarn") end
  local phrase = ({ reads = "only reads", destroys = "may destroy data" })[word] or word
  add(("The tool says that it %s%s"):format(phrase, outside), group)
end

---Ranges of characters that are invisible or change how others are shown, besides those that Neovim shows itself.
local HIDDEN = {
  { 0x80, 0x9f },
  { 0xad, 0xad },
  { 0x34f, 0x34f },
  { 0x61c, 0x61c },
  { 0x115f, 0x1160 },
  { 0x180b, 0x180f },
  { 0x200b, 0x200f },
  { 0x2028, 0x202e },
  { 0x2060, 0x206f },
  { 0x2800, 0x2800 },
  { 0x3164, 0x3164 },
  { 0xfe00, 0xfe0e },
  { 0xfeff, 0xfeff },
  { 0xffa0, 0xffa0 },
  { 0xfff0, 0xfffb },
  { 0xe0000, 0xe0fff },
}

---Shows characters that would hide or reorder what the user is asked to allow.
---@param text string
---@return string
local function visible(text)
  local shown = text:gsub("[\194-\244][\128-\191]+", function(character)
    local code = vim.fn.char2nr(character, true)
    for _, range in ipairs(HIDDEN) do
      if code >= range[1] and code <= range[2] then return ("⟨U+%04X⟩"):format(code) end
    end
  end)
  return shown
end

---How much of the arguments is shown: Neovim is slow with more.
local MOST_BYTES = 1024 * 1024

---@param text string
---@param room integer
---@return string
local function cut(text, room)
  if #text <= room then return text end
  -- Without a character that is cut in two.
  local start = text:sub(1, room):gsub("[\192-\255][\128-\191]*$", "")
  return ("%s…\n    (%d more bytes: `e` shows them)"):format(start, #text - #start)
end

---One argument per line, then those with several lines.
---@param given table<string, any>
---@param add mcp_sidecar.Add
local function arguments(given, add)
  add("\narguments", "McpMuted")
  local names = vim.tbl_keys(given)
  local function long(name) return type(given[name]) == "string" and given[name]:find("\n") ~= nil end
  table.sort(names, function(one, other)
    if long(one) ~= long(other) then return long(other) end
    return one < other
  end)
  if #names == 0 then add("  none") end
  local room = math.floor(MOST_BYTES / math.max(1, #names))
  for _, name in ipairs(names) do
    local text = long(name) and "\n    " .. given[name]:gsub("\n", "\n    ") or " " .. json.pretty(given[name], "  ")
    add(visible(cut(text, room)), nil, ("  %s:"):format((visible(name):gsub("\n", "⟨U+000A⟩"))))
  end
end

---@param add mcp_sidecar.Add
local function diff(label, changes, add)
  add("\n" .. label, "McpMuted")
  local groups = { ["+"] = "McpAdded", ["-"] = "McpRemoved", ["@"] = "McpMuted" }
  for _, line in ipairs(changes) do
    -- A hunk header as a line number.
    local text = line:gsub("^@@ .*%+(%d+).*@@", "line %1:")
    add(text, groups[line:sub(1, 1)])
  end
end

---@class mcp_sidecar.QuestionLine: mcp_sidecar.Line
---@field id? string the question of a group that the line is about

---Everything that one question is about.
---@param approval mcp_sidecar.Question
---@return mcp_sidecar.QuestionLine[]
local function draw_one(approval)
  local lines = {}
  local function add(text, group, label)
    local whole = group == "McpAdded" or group == "McpRemoved"
    for line in vim.gsplit(text, "\n") do
      local chunks = { { " " .. (label or ""), "McpKey" }, { line, group } }
      table.insert(lines, whole and { { " " .. line }, group = group } or chunks)
      label = nil
    end
  end
  add(approval.title, "McpTitle")
  if approval.tool then effect(approval.annotations or {}, add) end
  local change = approval.change
  if change then
    local path = change.path .. (change.isNew and " (new)" or "")
    diff("changes " .. path, vim.split(change.diff, "\n"), add)
  end
  if approval.arguments then arguments(approval.arguments, add) end
  if approval.detail ~= "" then
    add("")
    for line in vim.gsplit(approval.detail, "\n") do
      -- The description of a tool is the least important part; the command is the most important part of a definition.
      add(line, approval.tool and "McpMuted" or line:match("^runs ") and "McpError" or nil)
    end
  end
  if approval.url then add("\nopens  " .. approval.url, "McpError") end
  if approval.diff then diff("what changed", vim.split(approval.diff, "\n"), add) end
  return lines
end

---How far the rest of a long line is indented: as the values of a definition, or more than the line itself.
---@param approval mcp_sidecar.Question
---@return integer columns, string option for 'breakindentopt'
function M.indent(approval)
  if approval.kind == "trust" then return 11, "column:11" end
  local shift = approval.members and 4 or 0
  return shift, "shift:" .. shift
end

---The questions of a group: first a list with a box to mark each, then all of them in full, because one answer may grant
---them all.
---@param group mcp_sidecar.Question
---@param marked table<string, true?>
---@return mcp_sidecar.QuestionLine[]
local function draw_group(group, marked)
  local lines, in_full = { { { " " .. group.title, "McpTitle" } }, {} }, {}
  for _, member in ipairs(group.members or {}) do
    local box = marked[member.id] and { " [x] ", "McpWarn" } or { " [ ] ", "McpMuted" }
    local line = { box, { (member.summary:gsub("%c+", " ")) }, id = member.id }
    local function add(word, highlight)
      if word ~= "" then vim.list_extend(line, { { " · ", "McpMuted" }, { word, highlight } }) end
    end
    add(style.effect(member.annotations))
    add(member.diff and "changed" or "", "McpWarn")
    table.insert(lines, line)
    table.insert(in_full, {})
    for _, each in ipairs(draw_one(member)) do
      each.id = member.id
      table.insert(in_full, each)
    end
  end
  return vim.list_extend(lines, in_full)
end

---@param approval mcp_sidecar.Question
---@param marked? table<string, true?>
---@return mcp_sidecar.QuestionLine[]
function M.draw(approval, marked)
  if approval.members then return draw_group(approval, marked or {}) end
  return draw_one(approval)
end

---The keys that the question takes now, for a footer or a winbar.
---@param approval mcp_sidecar.Question
---@param first? string the first key of an answer that takes two, when it was pressed
---@param marked? boolean
---@return { [1]: string, [2]: string }[] keys each with its label
function M.hints(approval, first, marked)
  local short, longer = {}, {}
  for _, choice in ipairs(M.choices(approval, marked)) do
    local rest = choice.keys:match("^a(.)$")
    if rest then
      table.insert(longer, { first and rest or choice.keys, choice.label })
    elseif choice.answer.decision == "accept" and approval.form then
      table.insert(short, { "f", "Fill in" })
    elseif not choice.note then
      table.insert(short, { choice.keys, choice.hint or choice.label })
    end
  end
  if first then return vim.list_extend(longer, { { "<Esc>", "back" } }) end
  if #longer > 1 then longer = { { "a-", approval.members and longer[1][2] .. "…" or "for longer" } } end
  return vim.list_extend(vim.list_extend(short, longer), { { "q", "later" }, { "?", "help" } })
end

---The answers and the other keys, for a popup.
---@param approval mcp_sidecar.Question
---@param marked? boolean
---@return string[]
function M.help(approval, marked)
  local function line(choice) return ("`%-2s`  %s"):format(choice.keys, choice.label) end
  local lines = vim.tbl_map(line, M.choices(approval, marked))
  if approval.form then table.insert(lines, "`f `  Fill in the form") end
  if not approval.members then
    return vim.list_extend(lines, { "`v `  Open it in a tab page", "`q `  Hide it: the question keeps waiting" })
  end
  return vim.list_extend(lines, {
    "`<Space>`  Mark the question under the cursor: answers then apply only to the marked ones",
    "`v `  Open the question under the cursor in a tab page, and answer it alone",
    "`q `  Hide them: the questions keep waiting",
  })
end

return M
