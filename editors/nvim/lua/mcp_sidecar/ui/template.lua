--- What a form shows of a JSON Schema: the lines to begin with, and what each field wants.

local fields = require("mcp_sidecar.ui.fields")
local json = require("mcp_sidecar.json")

local M = {}

---A value to begin with.
function M.example(field)
  if field.default ~= nil and field.default ~= vim.NIL then
    return field.default
  elseif field.const ~= nil then
    return field.const
  elseif type(field.enum) == "table" then
    return field.enum[1]
  end
  local kind = type(field.type) == "table" and field.type[1] or field.type
  local empty = { string = "", number = 0, integer = 0, boolean = false, array = {}, object = vim.empty_dict() }
  if (kind == "number" or kind == "integer") and type(field.minimum) == "number" and field.minimum > 0 then
    return field.minimum
  end
  return empty[kind] == nil and "" or empty[kind]
end

---The lines of a new form: what is required, and what has a default.
function M.lines(schema, given)
  local names, required = fields.order(schema)
  local lines = {}
  for _, name in ipairs(names) do
    local field = schema.properties[name]
    local has_default = field.default ~= nil and field.default ~= vim.NIL
    if given[name] ~= nil or required[name] or has_default then
      local value = given[name]
      if value == nil then
        value = M.example(field)
      end
      table.insert(lines, ("  %s: %s"):format(vim.json.encode(name), json.pretty(value, "  ")))
    end
  end
  local text = "{\n" .. table.concat(lines, ",\n") .. "\n}"
  return vim.split(#lines == 0 and "{\n}" or text, "\n")
end

---What a value has to be, in a few words.
function M.constraint(field)
  local parts = { type(field.type) == "table" and table.concat(field.type, " or ") or field.type }
  if type(field.enum) == "table" then
    parts = { table.concat(vim.tbl_map(vim.json.encode, field.enum), " ") }
  end
  for key, text in pairs({
    minimum = "≥ %s",
    maximum = "≤ %s",
    minLength = "at least %s long",
    maxLength = "at most %s long",
    pattern = "like %s",
  }) do
    if type(field[key]) == "number" or type(field[key]) == "string" then
      table.insert(parts, text:format(field[key]))
    end
  end
  return table.concat(parts, ", ")
end

---Fills the first text field that is free.
function M.with_text(tool, text)
  for _, name in ipairs((fields.order(tool.inputSchema))) do
    if tool.inputSchema.properties[name].type == "string" then
      return { [name] = text }
    end
  end
  return {}
end

return M
