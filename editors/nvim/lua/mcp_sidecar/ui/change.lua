--- What a call would make of a file of the workspace, as far as its arguments tell: a diff against what is on disk.
--- Only for looking: the arguments themselves are always shown beside it, and they are what is allowed.

local M = {}

local LARGEST = 1024 * 1024

---The first of some keys that holds text.
local function text_of(arguments, keys)
  for _, key in ipairs(keys) do
    if type(arguments[key]) == "string" then return arguments[key] end
  end
end

---The text after one replacement; nil when it cannot be told.
local function replaced(before, old, new)
  local from, to = before:find(old, 1, true)
  if not from or old == "" then return nil end
  return before:sub(1, from - 1) .. new .. before:sub(to + 1)
end

---What the file would hold; nil when the arguments do not say so in a way that many servers share.
---@param before string
---@return string?
local function after(before, arguments)
  local edits = type(arguments.edits) == "table" and arguments.edits or { arguments }
  local old_keys, new_keys =
    { "oldText", "old_string", "old_text", "old_str" }, { "newText", "new_string", "new_text", "new_str" }
  if not text_of(edits[1] or {}, old_keys) then
    return text_of(arguments, { "content", "contents", "text", "file_text", "new_content" })
  end
  local result = before
  for _, edit in ipairs(edits) do
    local old, new = text_of(edit, old_keys), text_of(edit, new_keys)
    result = result and old and new and replaced(result, old, new) or nil
  end
  return result
end

---@param approval mcp_sidecar.Approval
---@param root? string the workspace
---@return string[]? diff, string? path as seen from the workspace
function M.of(approval, root)
  local arguments = approval.arguments
  if type(arguments) ~= "table" or not root or (approval.annotations or {}).readOnly then return end
  local named = text_of(arguments, { "path", "file_path", "filePath", "filename", "file", "uri" })
  if not named then return end
  named = vim.startswith(named, "file://") and vim.uri_to_fname(named) or named
  local path = vim.fs.normalize(named:match("^[/~]") and named or root .. "/" .. named)
  -- Where it really is, so that `..` and links do not make a file of elsewhere look like one of here.
  local folder = vim.uv.fs_realpath(vim.fs.dirname(path))
  local real = vim.uv.fs_realpath(path) or (folder and folder .. "/" .. vim.fs.basename(path))
  local inside = vim.fs.normalize(vim.uv.fs_realpath(root) or root) .. "/"
  if not real or not vim.startswith(real, inside) then return end
  local stat = vim.uv.fs_stat(real)
  if stat and (stat.type ~= "file" or stat.size > LARGEST) then return end
  local file = stat and io.open(real, "rb")
  local before = file and file:read("*a") or ""
  if file then file:close() end
  local text = after(before, arguments)
  if not text or text == before or before:find("\0", 1, true) then return end
  local diff = (vim.text and vim.text.diff or vim.diff)(before, text, { ctxlen = 2 })
  return vim.split(vim.trim(diff --[[@as string]]), "\n"), real:sub(#inside + 1) .. (stat and "" or " (new)")
end

return M
