--- Asks for the fields of a flat JSON Schema, one after another. Used where there is no room for a buffer:
--- elicitations and inputs.

local M = {}

---Required fields first, then by name.
---@param schema table
---@return string[] names, table<string, boolean> required
function M.order(schema)
  local properties = type(schema.properties) == "table" and schema.properties or {}
  local required, names = {}, {}
  for _, name in ipairs(type(schema.required) == "table" and schema.required or {}) do
    if properties[name] and not required[name] then
      required[name] = true
      table.insert(names, name)
    end
  end
  local others = vim.tbl_filter(function(name) return not required[name] end, vim.tbl_keys(properties))
  table.sort(others)
  return vim.list_extend(names, others), required
end

---@param name string
---@param field table
---@param required? boolean
local function label(name, field, required)
  local text = field.title ~= vim.NIL and field.title or name
  if type(field.description) == "string" then text = text .. " (" .. field.description .. ")" end
  return (tostring(text):gsub("%c+", " ")) .. (required and ": " or ", optional: ")
end

---What was typed, as the schema's type; nil and why when it does not fit.
local function convert(text, field)
  if field.type ~= "number" and field.type ~= "integer" then return text end
  local number = tonumber(text)
  if number and (field.type == "number" or number % 1 == 0) then return number end
  return nil, ("`%s` is not %s"):format(text, field.type == "integer" and "a whole number" or "a number")
end

---The values that a field takes, each with its title; nil when anything may be typed.
---@param field table
---@return { value: any, title: string }[]?
function M.values(field)
  if field.type == "boolean" then return { { value = true, title = "yes" }, { value = false, title = "no" } } end
  local inner = field.type == "array" and type(field.items) == "table" and field.items or field
  local titled = inner.oneOf or inner.anyOf
  if type(titled) == "table" and titled[1] and titled[1].const ~= nil then
    return vim.tbl_map(function(one) return { value = one.const, title = one.title or one.const } end, titled)
  end
  if type(inner.enum) ~= "table" then return nil end
  local list = {}
  for place, value in ipairs(inner.enum) do
    list[place] =
      { value = value, title = (type(inner.enumNames) == "table" and inner.enumNames or {})[place] or value }
  end
  return list
end

---Lets the user choose one after another, until that is all.
local function several(question, options, needed, done, chosen)
  local all = { title = "that is all" }
  vim.ui.select(vim.list_extend(#chosen > 0 and { all } or {}, options), {
    prompt = #chosen > 0 and ("%s%s, "):format(question, table.concat(chosen, ", ")) or question,
    kind = "mcp_field",
    format_item = function(option) return tostring(option.title) end,
  }, function(option)
    if option == nil and #chosen == 0 then return done(nil, needed) end
    if option == nil or option == all then return done(chosen) end
    table.insert(chosen, option.value)
    local left = vim.tbl_filter(function(other) return other ~= option end, options)
    if #left == 0 then return done(chosen) end
    several(question, left, needed, done, chosen)
  end)
end

---Asks for one field. `done(value)`; without a value it was left out; `done(nil, true)` when the user gave up.
local function ask(question, field, needed, secret, done)
  local options = M.values(field)
  if options and field.type == "array" then return several(question, options, needed, done, {}) end
  if options then
    return vim.ui.select(options, {
      prompt = question,
      kind = "mcp_field",
      format_item = function(option) return tostring(option.title) end,
    }, function(option)
      if not option then return done(nil, needed) end
      done(option.value)
    end)
  end
  local function take(text)
    if text == nil then return done(nil, true) end
    if text == "" and not needed then return done(nil) end
    local value, problem = convert(text, field)
    if not problem then return done(value) end
    vim.notify(problem, vim.log.levels.WARN, { title = "mcp-sidecar" })
    ask(question, field, needed, secret, done)
  end
  if secret then
    local ok, text = pcall(vim.fn.inputsecret, question)
    return take(ok and text ~= "" and text or nil)
  end
  local default = field.default ~= nil and field.default ~= vim.NIL and tostring(field.default) or ""
  vim.ui.input({ prompt = question, default = default }, take)
end

---Whether a field, or any field, must not be seen while it is typed.
---@param schema table
---@param field? table
---@return boolean
function M.is_secret(schema, field)
  if schema.password == true then return true end
  local all = field and { field } or vim.tbl_values(schema.properties or {})
  return vim.iter(all):any(function(one) return one.format == "password" end)
end

---@param schema table
---@param done fun(content?: table) nil when the user gave up
function M.ask(schema, done)
  local names, required = M.order(schema)
  local content = {}
  local function step(place)
    local name = names[place]
    if not name then return done(content) end
    local field = schema.properties[name]
    local secret = M.is_secret(schema, field)
    ask(label(name, field, required[name]), field, required[name], secret, function(value, gave_up)
      if gave_up then return done(nil) end
      content[name] = value
      step(place + 1)
    end)
  end
  step(1)
end

return M
