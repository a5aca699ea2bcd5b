--- A question to the user as text, its answers and their keys. Opens no window.

local json = require("mcp_sidecar.json")
local style = require("mcp_sidecar.ui.style")

local M = {}

---@class mcp_sidecar.Answer
---@field keys string one key for an answer to this question only, two for one that lasts
---@field decision string
---@field kind? string the only kind of question that it answers
---@field label string
---@field help string
---@field note? boolean the user is asked why
---@field done? string what to confirm afterwards, about `%s`
---@field undo? string the command that takes it back

---Every answer and its keys. A single key never grants anything that outlives the session.
---@type mcp_sidecar.Answer[]
M.answers = {
  { keys = "y", decision = "allow-once", label = "allow once", help = "allow this call only" },
  {
    keys = "y",
    decision = "allow-session",
    kind = "trust",
    label = "trust this session",
    help = "trust this definition until the session ends",
    done = "trusted %s for this session",
    undo = ":Mcp distrust",
  },
  { keys = "y", decision = "accept", label = "accept", help = "accept" },
  {
    keys = "n",
    decision = "deny",
    kind = "trust",
    label = "do not trust",
    help = "do not trust this definition",
    done = "%s is not trusted",
    undo = ":Mcp trust",
  },
  { keys = "n", decision = "deny", kind = "tool", label = "deny", help = "deny this call" },
  {
    keys = "N",
    decision = "deny",
    kind = "tool",
    label = "deny, say why",
    help = "deny this call, say why",
    note = true,
  },
  { keys = "n", decision = "decline", label = "decline", help = "decline to answer" },
  { keys = "c", decision = "cancel", label = "cancel", help = "cancel the call that asks" },
  {
    keys = "as",
    decision = "allow-session",
    kind = "tool",
    label = "this session",
    help = "allow this tool until the session ends",
    done = "allowed %s for this session",
    undo = ":Mcp grants",
  },
  {
    keys = "ap",
    decision = "allow-project",
    kind = "tool",
    label = "this project",
    help = "allow this tool in this project",
    done = "allowed %s in this project",
    undo = ":Mcp grants",
  },
  {
    keys = "ap",
    decision = "allow-project",
    kind = "trust",
    label = "this project",
    help = "trust this definition in this project",
    done = "trusted %s in this project",
    undo = ":Mcp distrust",
  },
  {
    keys = "aa",
    decision = "allow-always",
    label = "everywhere",
    help = "allow this tool in every project",
    done = "allowed %s everywhere",
    undo = ":Mcp grants",
  },
  {
    keys = "ad",
    decision = "disable",
    label = "disable",
    help = "deny, and hide this tool in this project",
    done = "disabled %s in this project",
    undo = ":Mcp grants",
  },
}

---The answers that this question takes.
---@param approval mcp_sidecar.Approval
---@return mcp_sidecar.Answer[]
function M.choices(approval)
  return vim.tbl_filter(
    function(answer)
      return vim.tbl_contains(approval.options, answer.decision) and (answer.kind or approval.kind) == approval.kind
    end,
    M.answers
  )
end

---What the user reads after an answer that lasts: one line, so that Neovim does not ask for <Enter>.
---@param approval mcp_sidecar.Approval
---@param answer mcp_sidecar.Answer
---@return string?
function M.confirmation(approval, answer)
  if not answer.done then return nil end
  local name = approval.kind == "trust" and approval.server or approval.server .. "/" .. approval.tool
  local undo = ("; to undo: `%s`"):format(answer.undo)
  local room = vim.o.columns - 12 - #answer.done - #undo
  return answer.done:format("`" .. style.fit(name, math.max(8, room)) .. "`") .. undo
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
  for _, name in ipairs(names) do
    local text = long(name) and "\n    " .. given[name]:gsub("\n", "\n    ") or " " .. json.pretty(given[name], "  ")
    add(text, nil, ("  %s:"):format(name))
  end
end

---@param label string
---@param changes string[]
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

---@param approval mcp_sidecar.Approval
---@return mcp_sidecar.Line[]
function M.draw(approval)
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
  if approval.kind == "tool" then effect(approval.annotations or {}, add) end
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
      add(line, approval.kind == "tool" and "McpMuted" or line:match("^runs ") and "McpError" or nil)
    end
  end
  if approval.url then add("\nopens  " .. approval.url, "McpError") end
  if approval.diff then diff("what changed", vim.split(approval.diff, "\n"), add) end
  return lines
end

---The keys that the question takes now, for a footer or a winbar.
---@param approval mcp_sidecar.Approval
---@param first? string the first key of an answer that takes two, when it was pressed
---@return { [1]: string, [2]: string }[] keys each with its label
function M.hints(approval, first)
  local keys, longer = {}, {}
  for _, answer in ipairs(M.choices(approval)) do
    local rest = answer.keys:match("^a(.)$")
    if rest then
      table.insert(longer, { first and rest or answer.keys, answer.label })
    elseif answer.decision == "accept" and approval.schema then
      table.insert(keys, { "f", "fill in" })
    elseif not answer.note then
      table.insert(keys, { answer.keys, answer.label })
    end
  end
  if first then return vim.list_extend({ { first, "then" } }, vim.list_extend(longer, { { "<Esc>", "back" } })) end
  if #longer > 1 then longer = { { "a-", "for longer" } } end
  return vim.list_extend(vim.list_extend(keys, longer), { { "q", "later" }, { "?", "help" } })
end

---The answers and the other keys, for a popup.
---@param approval mcp_sidecar.Approval
---@return string[]
function M.help(approval)
  local lines = vim.tbl_map(
    function(answer) return ("`%-2s`  %s"):format(answer.keys, answer.help) end,
    M.choices(approval)
  )
  if approval.schema then table.insert(lines, "`f `  fill in the form") end
  return vim.list_extend(lines, { "`v `  open it in a tab page", "`q `  hide it: the question keeps waiting" })
end

return M
