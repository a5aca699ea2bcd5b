--- What a form shows of a JSON Schema: the lines to begin with, and what each field wants.

local fields = require("mcp_sidecar.ui.fields")
local json = require("mcp_sidecar.json")

local M = {}

local empty = { string = "", number = 0, integer = 0, boolean = false, array = {} }

local function kind_of(field) return type(field.type) == "table" and field.type[1] or field.type end

---A value to begin with; an object has what it requires.
---@param field table
function M.example(field)
  if field.default ~= nil and field.default ~= vim.NIL then return field.default end
  if field.const ~= nil then return field.const end
  if type(field.enum) == "table" then return field.enum[1] end
  local kind = kind_of(field)
  if kind == "object" then
    local value, names, required = vim.empty_dict(), fields.order(field)
    for _, name in ipairs(names) do
      if required[name] then value[name] = M.example(field.properties[name]) end
    end
    return value
  end
  local least = type(field.minimum) == "number" and field.minimum or 0
  if (kind == "number" or kind == "integer") and least > 0 then return least end
  return empty[kind] == nil and "" or empty[kind]
end

---The lines of a new form: what is required, and what has a default.
---@param schema table
---@param given table
---@return string[]
function M.lines(schema, given)
  local names, required = fields.order(schema)
  local lines = {}
  for _, name in ipairs(names) do
    local field, value = schema.properties[name], given[name]
    local wanted = required[name] or (field.default ~= nil and field.default ~= vim.NIL)
    if value == nil and wanted then value = M.example(field) end
    if value ~= nil then table.insert(lines, ("  %s: %s"):format(vim.json.encode(name), json.pretty(value, "  "))) end
  end
  return vim.split(#lines == 0 and "{\n}" or "{\n" .. table.concat(lines, ",\n") .. "\n}", "\n")
end

local limits = {
  { "minimum", "≥ %s" },
  { "maximum", "≤ %s" },
  { "minLength", "at least %s long" },
  { "maxLength", "at most %s long" },
  { "pattern", "like %s" },
}

---What a value has to be, in a few words.
---@param field table
---@return string
function M.constraint(field)
  local parts = { type(field.type) == "table" and table.concat(field.type, " or ") or field.type }
  local options = field.type ~= "boolean" and fields.values(field)
  if options then
    local words = vim.tbl_map(function(option) return vim.json.encode(option.value) end, options)
    parts = { (field.type == "array" and "some of " or "") .. table.concat(words, " ") }
  end
  for _, limit in ipairs(limits) do
    local value = field[limit[1]]
    if type(value) == "number" or type(value) == "string" then table.insert(parts, limit[2]:format(value)) end
  end
  return table.concat(parts, ", ")
end

---Fills the first text field that is free.
---@param tool mcp_sidecar.Tool
---@param text string
---@return table
function M.with_text(tool, text)
  for _, name in ipairs((fields.order(tool.inputSchema))) do
    if tool.inputSchema.properties[name].type == "string" then return { [name] = text } end
  end
  return {}
end

return M
