--- Asks for the fields of a flat JSON Schema, one after another. Used where there is no room for a buffer:
--- elicitations, inputs, arguments of prompts.

local M = {}

---Required fields first, then by name.
---@param schema table
---@return string[]
function M.order(schema)
  local properties = type(schema.properties) == "table" and schema.properties or {}
  local required, names = {}, {}
  for _, name in ipairs(type(schema.required) == "table" and schema.required or {}) do
    if properties[name] and not required[name] then
      required[name] = true
      table.insert(names, name)
    end
  end
  local others = vim.tbl_filter(function(name)
    return not required[name]
  end, vim.tbl_keys(properties))
  table.sort(others)
  return vim.list_extend(names, others), required
end

---@param name string
---@param field table
local function label(name, field, required)
  local text = field.title ~= vim.NIL and field.title or name
  if type(field.description) == "string" then
    text = text .. " (" .. field.description .. ")"
  end
  return (tostring(text):gsub("%c+", " ")) .. (required and ": " or ", optional: ")
end

---What was typed, as the schema's type; nil and why when it does not fit.
local function convert(text, field)
  if field.type == "number" or field.type == "integer" then
    local number = tonumber(text)
    if not number or (field.type == "integer" and number % 1 ~= 0) then
      return nil, ("`%s` is not %s"):format(text, field.type == "integer" and "a whole number" or "a number")
    end
    return number
  end
  return text
end

local function values(field)
  if field.type == "boolean" then
    return { true, false }, { "yes", "no" }
  end
  local list = field.enum or (field.type == "array" and type(field.items) == "table" and field.items.enum) or nil
  if type(list) == "table" then
    return list, type(field.enumNames) == "table" and field.enumNames or list
  end
  for _, kind in ipairs({ "oneOf", "anyOf" }) do
    if type(field[kind]) == "table" and field[kind][1] and field[kind][1].const then
      local consts, titles = {}, {}
      for _, option in ipairs(field[kind]) do
        table.insert(consts, option.const)
        table.insert(titles, option.title or option.const)
      end
      return consts, titles
    end
  end
end

---@param schema table
---@param done fun(content?: table) nil when the user gave up
function M.ask(schema, done)
  local names, required = M.order(schema)
  local content = {}
  local function step(place)
    local name = names[place]
    if not name then
      return done(content)
    end
    local field = schema.properties[name]
    local question = label(name, field, required[name])
    local options, titles = values(field)
    if options then
      local places = {}
      for index in ipairs(options) do
        places[index] = index
      end
      return vim.ui.select(places, {
        prompt = question,
        kind = "mcp_field",
        format_item = function(index)
          return tostring(titles[index])
        end,
      }, function(index)
        if index then
          content[name] = field.type == "array" and { options[index] } or options[index]
        elseif required[name] then
          return done(nil)
        end
        step(place + 1)
      end)
    end
    local default = field.default ~= nil and field.default ~= vim.NIL and tostring(field.default) or ""
    local function take(text)
      if text == nil then
        return done(nil)
      elseif text == "" and not required[name] then
        return step(place + 1)
      end
      local value, problem = convert(text, field)
      if problem then
        vim.notify(problem, vim.log.levels.WARN, { title = "mcp-sidecar" })
        return step(place)
      end
      content[name] = value
      step(place + 1)
    end
    if schema.password == true or field.format == "password" then
      local ok, secret = pcall(vim.fn.inputsecret, question)
      return take(ok and secret ~= "" and secret or nil)
    end
    vim.ui.input({ prompt = question, default = default }, take)
  end
  step(1)
end

return M
