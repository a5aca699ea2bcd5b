--- The border of the prompt: what kind of question it holds, and which keys answer it or lead to it.

local question = require("mcp_sidecar.ui.question")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

local HEAVY = { "┏", "━", "┓", "┃", "┛", "━", "┗", "┃" }

---The key that the user has mapped to a <Plug> or to its command.
local function mapped_key(plug, command)
  for _, map in ipairs(vim.list_extend(vim.api.nvim_buf_get_keymap(0, "n"), vim.api.nvim_get_keymap("n"))) do
    local lhs, rhs = map.lhsraw or map.lhs or "", (map.rhs or ""):lower()
    local key = vim.fn.keytrans(lhs)
    local matches = rhs == plug:lower() or rhs == ("<cmd>%s<cr>"):format(command):lower()
    if matches and not vim.startswith(key, "<Plug>") then return key end
  end
end

---@class mcp_sidecar.FrameOptions
---@field focused boolean
---@field replaced boolean the question before it was shown to a user who had the focus here
---@field dead boolean its keys do not work yet
---@field first? string the first key of an answer that takes two, when it was pressed
---@field marked boolean some questions of a group are marked
---@field more integer number of other questions that wait
---@field cut integer rows that do not fit

local function more_lines(cut) return cut == 1 and "1 more line" or ("%d more lines"):format(cut) end

---The first parts that fit into a width.
---@param parts mcp_sidecar.Chunk[][]
local function fitting(parts, width)
  local chunks = {}
  for _, part in ipairs(parts) do
    for _, chunk in ipairs(part) do
      width = width - vim.api.nvim_strwidth(chunk[1])
    end
    if width < 0 then break end
    vim.list_extend(chunks, part)
  end
  return chunks
end

---A key and its label.
---@param key { [1]: string, [2]: string }
local function hint(key, group) return { { " " .. key[1], group or "McpKey" }, { (" %s "):format(key[2]), "McpMuted" } } end

---@param approval mcp_sidecar.Question
---@param opts mcp_sidecar.FrameOptions
---@return mcp_sidecar.Chunk[][]
local function title(approval, opts)
  local call = approval.resource and "resource" or approval.prompt and "prompt" or "tool call"
  local kind = ({ tool = call, trust = ("trust `%s`"):format(approval.server) })[approval.kind] or "question"
  if approval.members then
    kind = (approval.kind == "trust" and "trust %d servers" or "%d tool calls"):format(#approval.members)
  end
  local parts = { { { (" %s "):format(kind), "McpTitle" } } }
  local function add(group, text, ...) table.insert(parts, { { ("· %s "):format(text:format(...)), group } }) end
  if not opts.focused then add("McpMuted", "waiting for you") end
  if opts.focused and opts.replaced then add("McpNext", "next question") end
  -- Before the keys, which may not fit: the user must not take a part for the whole.
  if opts.focused and opts.cut > 0 then
    add("McpWarn", "%s: scroll%s", more_lines(opts.cut), approval.members and "" or ", or v for a tab page")
  end
  if opts.focused and approval.members then
    local marks = vim.list_extend({ { "·", "McpMuted" } }, hint({ "<Space>", "marks" }))
    vim.list_extend(parts, { marks, hint({ "v", "shows all of one" }) })
  end
  if opts.more > 0 then add("McpMuted", "%d more waiting", opts.more) end
  return parts
end

---@param approval mcp_sidecar.Question
---@param opts mcp_sidecar.FrameOptions
---@return mcp_sidecar.Chunk[][]
local function footer(approval, opts)
  if opts.focused then
    local keys = question.hints(approval, nil, opts.marked)
    return vim.tbl_map(function(key) return hint(key, opts.dead and "McpMuted" or nil) end, keys)
  end
  local parts = { hint({ mapped_key("<Plug>(mcp-approve)", "Mcp approve") or ":Mcp approve", "to answer" }) }
  if opts.cut > 0 then table.insert(parts, { { ("· cut: %s "):format(more_lines(opts.cut)), "McpWarn" } }) end
  local deny = approval.kind == "tool" and not approval.members and mapped_key("<Plug>(mcp-deny)", "Mcp deny")
  if deny then table.insert(parts, hint({ deny, "to deny once" })) end
  local later = mapped_key("<Plug>(mcp-later)", "Mcp later")
  if later then table.insert(parts, hint({ later, "to hide" })) end
  return parts
end

---The parts of a window's config that show what the prompt is and whether it has the focus.
---@param approval mcp_sidecar.Question
---@param opts mcp_sidecar.FrameOptions
---@param width integer
---@return vim.api.keyset.win_config
function M.of(approval, opts, width)
  local above, below = title(approval, opts), footer(approval, opts)
  if opts.first then
    -- The answers that last do not fit into one line.
    local keys = vim.tbl_map(function(key) return hint(key) end, question.hints(approval, opts.first, opts.marked))
    local half = math.ceil(#keys / 2)
    above = vim.list_extend({ { { (" %s then "):format(opts.first), "McpTitle" } } }, vim.list_slice(keys, 1, half))
    below = vim.list_slice(keys, half + 1)
  end
  return {
    border = windows.border(opts.focused and HEAVY or "rounded"),
    title = fitting(above, width),
    footer = fitting(below, width),
  }
end

return M
