--- Completion (`<C-x><C-o>`) in a form: its fields, the values that its schema names, and files.

local forms = require("mcp_sidecar.ui.form")
local schemas = require("mcp_sidecar.ui.schema")

local M = {}

local PATHS = { "path", "file", "dir", "folder", "uri" }

---@alias mcp_sidecar.CompleteItem { word: string, abbr?: string, menu?: string, info?: string }

---The suggested values of a field, as JSON.
---@param name string
---@param field mcp_sidecar.Schema
---@param typed string
---@return mcp_sidecar.CompleteItem[]
local function values(name, field, typed)
  local found, fixed = {}, schemas.values(field)
  local function offer(value, menu) table.insert(found, { word = vim.json.encode(value):gsub("\\/", "/"), menu = menu }) end
  for _, option in ipairs(fixed or {}) do
    offer(option.value, option.title ~= option.value and tostring(option.title) or nil)
  end
  if field.default ~= nil and field.default ~= vim.NIL then offer(field.default, "default") end
  local text = typed:match('^"(.*)$') or ""
  local is_path = vim.iter(PATHS):any(function(word) return name:lower():find(word, 1, true) ~= nil end)
  if field.type == "string" and not fixed and (is_path or text:find("/", 1, true)) then
    for _, path in ipairs(vim.fn.getcompletion(text, "file")) do
      offer(path, "file")
    end
  end
  return found
end

---The missing fields with initial values.
---@param form mcp_sidecar.Form
---@return mcp_sidecar.CompleteItem[]
local function names(form)
  local _, required = schemas.order(form.schema)
  return vim.tbl_map(function(name)
    local field = schemas.field(form.schema, name)
    return {
      word = ("%s: %s"):format(vim.json.encode(name), vim.json.encode(schemas.example(field))),
      abbr = name,
      menu = (required[name] and "required " or "") .. schemas.constraint(field),
      info = type(field.description) == "string" and field.description or nil,
    }
  end, forms.missing(form))
end

---For 'omnifunc': first returns where the word starts, then its completions.
---@param first integer 1 or 0
---@param base string
---@return integer|mcp_sidecar.CompleteItem[]
function M.omni(first, base)
  local line = vim.api.nvim_get_current_line():sub(1, vim.api.nvim_win_get_cursor(0)[2])
  if first == 1 then return #(line:match('^(%s*"[^"]+"%s*:%s*)') or line:match("^%s*")) end
  local form = forms.of(vim.api.nvim_get_current_buf())
  if not form then return {} end
  local name = line:match('^%s*"([^"]+)"%s*:')
  local list = name and values(name, schemas.field(form.schema, name), base) or names(form)
  local typed = base:gsub('^"', ""):lower()
  return vim.tbl_filter(function(item) return vim.startswith(item.word:gsub('^"', ""):lower(), typed) end, list)
end

return M
