--- The parts of JSON Schema that a form needs: fields, values, constraints and initial text.

local json = require("mcp_sidecar.json")

local M = {}

local empty = { string = "", number = 0, integer = 0, boolean = false, array = {} }

---@param value any
---@return any? nil for null
local function given(value)
  if value ~= vim.NIL then return value end
end

---A list of the server, or an empty one.
---@return any[]
local function list(value) return type(value) == "table" and value or {} end

---Required fields first, then by name.
---@param schema mcp_sidecar.Schema
---@return string[] names, table<string, boolean?> required
function M.order(schema)
  local properties, required, names = list(schema.properties), {}, {}
  for _, name in ipairs(list(schema.required)) do
    if properties[name] and not required[name] then
      required[name] = true
      table.insert(names, name)
    end
  end
  local others = vim.tbl_filter(function(name) return not required[name] end, vim.tbl_keys(properties))
  table.sort(others)
  return vim.list_extend(names, others), required
end

---@param schema mcp_sidecar.Schema
---@param name string
---@return mcp_sidecar.Schema
function M.field(schema, name) return (schema.properties or {})[name] or {} end

---@class mcp_sidecar.Value an allowed value of a field
---@field value any
---@field title any

---The allowed values of a field; nil if it takes any value.
---@param field mcp_sidecar.Schema
---@return mcp_sidecar.Value[]?
function M.values(field)
  if field.type == "boolean" then return { { value = true, title = "yes" }, { value = false, title = "no" } } end
  local inner = field.type == "array" and type(field.items) == "table" and field.items or field
  local titled = list(inner.oneOf or inner.anyOf)
  if titled[1] and titled[1].const ~= nil then
    return vim.tbl_map(function(one) return { value = one.const, title = one.title or one.const } end, titled)
  end
  if type(inner.enum) ~= "table" then return nil end
  local values = {}
  for place, value in ipairs(inner.enum) do
    values[place] = { value = value, title = list(inner.enumNames)[place] or value }
  end
  return values
end

---An initial value; an object has its required fields.
---@param field mcp_sidecar.Schema
---@return any
function M.example(field)
  local value = given(field.default)
  if value == nil then value = field.const end
  if value == nil then value = list(field.enum)[1] end
  if value ~= nil then return value end
  local kind = type(field.type) == "table" and field.type[1] or field.type
  if kind == "object" then
    local object, names, required = vim.empty_dict(), M.order(field)
    for _, name in ipairs(names) do
      if required[name] then object[name] = M.example(M.field(field, name)) end
    end
    return object
  end
  local least = type(field.minimum) == "number" and field.minimum or 0
  if (kind == "number" or kind == "integer") and least > 0 then return least end
  return empty[kind] == nil and "" or empty[kind]
end

---The lines of a new form: fields that are required, known, or have a default.
---@param schema mcp_sidecar.Schema
---@param known table<string, any> known values
---@return string[]
function M.lines(schema, known)
  local names, required = M.order(schema)
  local lines = {}
  for _, name in ipairs(names) do
    local field, value = M.field(schema, name), known[name]
    if value == nil and (required[name] or given(field.default) ~= nil) then value = M.example(field) end
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

---A short description of the allowed values.
---@param field mcp_sidecar.Schema
---@return string
function M.constraint(field)
  local parts = { type(field.type) == "table" and table.concat(field.type, " or ") or field.type }
  local options = field.type ~= "boolean" and M.values(field)
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

---Assigns a text to the first string field.
---@param schema mcp_sidecar.Schema
---@param text string
---@return table<string, string>
function M.with_text(schema, text)
  for _, name in ipairs((M.order(schema))) do
    if M.field(schema, name).type == "string" then return { [name] = text } end
  end
  return {}
end

return M
