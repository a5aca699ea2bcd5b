--- Completion (`<C-x><C-o>`) in the form of a tool: its fields, the values that its schema names, and files.

local fields = require("mcp_sidecar.ui.fields")
local form = require("mcp_sidecar.ui.form")
local template = require("mcp_sidecar.ui.template")

local M = {}

local PATHS = { "path", "file", "dir", "folder", "uri" }

---What may stand as the value of a field, as JSON.
---@return { word: string, menu?: string }[]
local function values(name, field, typed)
  local found = {}
  local function offer(value, menu) table.insert(found, { word = vim.json.encode(value):gsub("\\/", "/"), menu = menu }) end
  for _, option in ipairs(fields.values(field) or {}) do
    offer(option.value, option.title ~= option.value and tostring(option.title) or nil)
  end
  if field.default ~= nil and field.default ~= vim.NIL then offer(field.default, "default") end
  local text = typed:match('^"(.*)$')
  local is_path = vim.iter(PATHS):any(function(word) return name:lower():find(word, 1, true) ~= nil end)
  if field.type == "string" and not fields.values(field) and (is_path or (text or ""):find("/", 1, true)) then
    for _, path in ipairs(vim.fn.getcompletion(text or "", "file")) do
      offer(path, "file")
    end
  end
  return found
end

---The fields that are not there yet, with a value to begin with.
local function names(schema, found)
  local list, required = {}, select(2, fields.order(schema))
  for _, name in ipairs((fields.order(schema))) do
    if not found[name] then
      local field = schema.properties[name]
      table.insert(list, {
        word = ("%s: %s"):format(vim.json.encode(name), vim.json.encode(template.example(field))),
        abbr = name,
        menu = (required[name] and "required " or "") .. template.constraint(field),
        info = type(field.description) == "string" and field.description or nil,
      })
    end
  end
  return list
end

---What 'omnifunc' asks for: first where the word begins, then what it may become.
---@param first integer 1 or 0
---@param base string
function M.omni(first, base)
  local line = vim.api.nvim_get_current_line():sub(1, vim.api.nvim_win_get_cursor(0)[2])
  if first == 1 then return #(line:match('^(%s*"[^"]+"%s*:%s*)') or line:match("^%s*")) end
  local here = form.of(vim.api.nvim_get_current_buf())
  if not here then return {} end
  local schema = here.schema
  local name = line:match('^%s*"([^"]+)"%s*:')
  local field = name and (schema.properties or {})[name]
  local list = field and values(name, field, base) or not name and names(schema, form.places(0)) or {}
  local typed = base:gsub('^"', ""):lower()
  return vim.tbl_filter(function(item) return vim.startswith(item.word:gsub('^"', ""):lower(), typed) end, list)
end

return M
