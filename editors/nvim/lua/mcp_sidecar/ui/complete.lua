--- Completion (`<C-x><C-o>`) in a form: its fields, their choices, and files.

local fields = require("mcp_sidecar.ui.fields")
local forms = require("mcp_sidecar.ui.form")

local M = {}

local PATHS = { "path", "file", "dir", "folder", "uri" }

---@alias mcp_sidecar.CompleteItem { word: string, abbr?: string, menu?: string, info?: string }

---The suggested values of a field, as JSON.
---@param field mcp_sidecar.Field
---@param typed string
---@return mcp_sidecar.CompleteItem[]
local function values(field, typed)
  local found = {}
  local function offer(value, menu) table.insert(found, { word = vim.json.encode(value):gsub("\\/", "/"), menu = menu }) end
  for _, choice in ipairs(fields.choices(field)) do
    offer(choice.value, choice.title ~= choice.value and choice.title or nil)
  end
  if field.default ~= nil then offer(field.default, "default") end
  local text = typed:match('^"(.*)$') or ""
  local is_path = vim.iter(PATHS):any(function(word) return field.name:lower():find(word, 1, true) ~= nil end)
  if field.kind == "text" and (is_path or text:find("/", 1, true)) then
    for _, path in ipairs(vim.fn.getcompletion(text, "file")) do
      offer(path, "file")
    end
  end
  return found
end

---A missing field with its initial value.
---@param field mcp_sidecar.Field
---@return mcp_sidecar.CompleteItem
local function name(field)
  return {
    word = ("%s: %s"):format(vim.json.encode(field.name), vim.json.encode(fields.example(field))),
    abbr = field.name,
    menu = (field.required and "required " or "") .. fields.rule(field),
    info = field.help,
  }
end

---For 'omnifunc': first returns where the word starts, then its completions.
---@param first integer 1 or 0
---@param base string
---@return integer|mcp_sidecar.CompleteItem[]
function M.omni(first, base)
  local line = vim.api.nvim_get_current_line():sub(1, vim.api.nvim_win_get_cursor(0)[2])
  local key = line:match('^%s*"[^"]+"%s*:%s*')
  if first == 1 then return #(key or line:match("^%s*")) end
  local form = forms.of(vim.api.nvim_get_current_buf())
  local place = form and form:at_cursor()
  local list = {}
  if place and key then
    list = place.field and values(place.field, base) or {}
  elseif place then
    -- A name that is being typed is not a value yet, so this is the object around it.
    list = vim.tbl_map(name, fields.missing(place))
  end
  local typed = base:gsub('^"', ""):lower()
  return vim.tbl_filter(function(item) return vim.startswith(item.word:gsub('^"', ""):lower(), typed) end, list)
end

return M
