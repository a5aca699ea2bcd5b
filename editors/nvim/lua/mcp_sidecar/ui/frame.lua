--- The border of the prompt: what kind of question it holds, and which keys answer it or lead to it.

local question = require("mcp_sidecar.ui.question")

local M = {}

local HEAVY = { "┏", "━", "┓", "┃", "┛", "━", "┗", "┃" }

---The key that the user has mapped to a <Plug> or to its command.
---@param plug string
---@param command string
---@return string?
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
---@field more integer number of other questions that wait
---@field cut integer rows that do not fit

---@param cut integer
---@return string
local function more_lines(cut) return cut == 1 and "1 more line" or ("%d more lines"):format(cut) end

---The first parts that fit into a width.
---@param parts mcp_sidecar.Chunk[][]
---@param width integer
---@return mcp_sidecar.Chunk[]
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

---@param approval mcp_sidecar.Approval
---@param opts mcp_sidecar.FrameOptions
---@return mcp_sidecar.Chunk[][]
local function title(approval, opts)
  local kind = ({ tool = "tool call", trust = ("trust `%s`"):format(approval.server) })[approval.kind] or "question"
  local parts = { { { (" %s "):format(kind), "McpTitle" } } }
  local function add(group, text, ...) table.insert(parts, { { ("· %s "):format(text:format(...)), group } }) end
  if not opts.focused then add("McpMuted", "waiting for you") end
  if opts.focused and opts.replaced then add("McpNext", "next question") end
  if opts.focused and opts.cut > 0 then add("McpWarn", "%s: scroll, or v for a tab page", more_lines(opts.cut)) end
  if opts.more > 0 then add("McpMuted", "%d more waiting", opts.more) end
  return parts
end

---@param approval mcp_sidecar.Approval
---@param opts mcp_sidecar.FrameOptions
---@return mcp_sidecar.Chunk[][]
local function footer(approval, opts)
  local group = opts.focused and opts.dead and "McpMuted" or "McpKey"
  local function hint(key) return { { " " .. key[1], group }, { (" %s "):format(key[2]), "McpMuted" } } end
  if opts.focused then return vim.tbl_map(hint, question.hints(approval, opts.first)) end
  local parts = { hint({ mapped_key("<Plug>(mcp-approve)", "Mcp approve") or ":Mcp approve", "to answer" }) }
  if opts.cut > 0 then table.insert(parts, { { ("· cut: %s "):format(more_lines(opts.cut)), "McpWarn" } }) end
  local deny = approval.kind == "tool" and mapped_key("<Plug>(mcp-deny)", "Mcp deny")
  if deny then table.insert(parts, hint({ deny, "to deny once" })) end
  local later = mapped_key("<Plug>(mcp-later)", "Mcp later")
  if later then table.insert(parts, hint({ later, "to hide" })) end
  return parts
end

---The parts of a window's config that show what the prompt is and whether it has the focus.
---@param approval mcp_sidecar.Approval
---@param opts mcp_sidecar.FrameOptions
---@param width integer
---@return vim.api.keyset.win_config
function M.of(approval, opts, width)
  return {
    border = opts.focused and HEAVY or "rounded",
    title = fitting(title(approval, opts), width),
    footer = fitting(footer(approval, opts), width),
  }
end

return M
