--- The fields of a form and its JSON text: initial values, rules, and which value of the text belongs to which field.

local M = {}

-- The titles of choices that fit next to a value. All of them are in the list to choose from.
local LONGEST_TITLE = 16

local empty = { integer = "0", number = "0", boolean = "false", list = "[]", choices = "[]" }

---The values to choose from; none if the field takes any value.
---@param field mcp_sidecar.Field
---@return mcp_sidecar.Choice[]
function M.choices(field)
  if field.kind == "boolean" then return { { value = true, title = "yes" }, { value = false, title = "no" } } end
  return field.choices or {}
end

---An initial value.
---@param field mcp_sidecar.Field
---@return any
function M.example(field)
  if field.default ~= nil then return field.default end
  if field.kind == "object" then return M.initial(field, {}) end
  if field.kind == "choice" then return (M.choices(field)[1] or {}).value end
  -- An object in a list has its own fields to fill in.
  if field.kind == "list" and field.item and field.item.kind == "object" then return { M.example(field.item) } end
  return vim.json.decode(empty[field.kind] or '""')
end

---The initial value of an object: fields that are required, known, or have a default.
---@param object mcp_sidecar.Field|mcp_sidecar.Form
---@param known table<string, any>
---@return table<string, any>
function M.initial(object, known)
  local values = vim.empty_dict()
  for _, field in ipairs(object.fields or {}) do
    if field.required or field.default ~= nil then values[field.name] = M.example(field) end
  end
  for name, value in pairs(known) do
    values[name] = value
  end
  return values
end

---What can be entered, in words.
---@param field mcp_sidecar.Field
---@return string
function M.rule(field)
  local words = vim.tbl_map(function(choice)
    local value = vim.json.encode(choice.value)
    local is_known = value == choice.title or choice.value == choice.title or #choice.title > LONGEST_TITLE
    return is_known and value or ("%s %s"):format(value, choice.title)
  end, field.choices or {})
  return #words > 0 and ("%s: %s"):format(field.rule, table.concat(words, ", ")) or field.rule
end

---Assigns a text to the first field that takes one.
---@param fields mcp_sidecar.Field[]
---@param text string
---@return table<string, string>
function M.with_text(fields, text)
  for _, field in ipairs(fields) do
    if field.kind == "text" or field.kind == "multiline" then return { [field.name] = text } end
  end
  return {}
end

-- The text ------------------------------------------------------------------------------------------------------------

---@class mcp_sidecar.Place a value in the text. Rows and columns count from 0; the last column is included
---@field pointer string
---@field name? string its key
---@field field? mcp_sidecar.Field
---@field parent? mcp_sidecar.Place
---@field is_list? boolean
---@field keys table<string, true?> of an object
---@field items integer of a list
---@field row integer
---@field column integer
---@field last_row integer
---@field last_column integer
---@field value_row integer where the value itself starts, after its key
---@field value_column integer

---@param name string
---@return string
function M.escape(name) return (name:gsub("~", "~0"):gsub("/", "~1")) end

---@param line string
---@param from integer where a string starts, from 1
---@return integer
local function end_of_string(line, from)
  local at = from + 1
  while at <= #line do
    local char = line:sub(at, at)
    if char == '"' then return at end
    at = at + (char == "\\" and 2 or 1)
  end
  return #line
end

---Finds every value, in the order of the text. The text may be incomplete, as it is while the user types.
---@param root mcp_sidecar.Field
---@param lines string[]
---@return mcp_sidecar.Place[]
function M.places(root, lines)
  local places = {} ---@type mcp_sidecar.Place[]
  local open, key, ended ---@type mcp_sidecar.Place?, mcp_sidecar.Place?, mcp_sidecar.Place?
  local row = 0

  ---@param pointer string
  ---@param field? mcp_sidecar.Field
  ---@param name? string
  ---@param from integer
  ---@return mcp_sidecar.Place
  local function add(pointer, field, name, from)
    local place = { pointer = pointer, field = field, name = name, parent = open, keys = {}, items = 0 }
    place.row, place.column, place.last_row, place.last_column = row, from - 1, row, #lines[row + 1]
    place.value_row, place.value_column = row, from - 1
    table.insert(places, place)
    return place
  end
  ---@param name string
  ---@param from integer
  local function add_key(name, from)
    local object = open --[[@as mcp_sidecar.Place]]
    object.keys[name] = true
    local fields = object.field and object.field.fields or {}
    local field = vim.iter(fields):find(function(each) return each.name == name end)
    key = add(object.pointer .. "/" .. M.escape(name), field, name, from)
  end
  ---A value belongs to the key before it, or is an item, or the whole text.
  ---@param from integer
  ---@param to integer
  ---@return mcp_sidecar.Place
  local function add_value(from, to)
    local item = open and open.is_list and open.field and open.field.item
    local pointer = open and open.is_list and open.pointer .. "/" .. open.items or ""
    local place = key or add(pointer, open and item or not open and root or nil, nil, from)
    if open and place ~= key then open.items = open.items + 1 end
    place.value_row, place.value_column = row, from - 1
    place.last_row, place.last_column = row, to - 1
    key, ended = nil, place
    return place
  end

  for number, line in ipairs(lines) do
    row = number - 1
    local from = line:find("%S")
    while from do
      local char, to = line:sub(from, from), from
      if char == '"' then
        to = end_of_string(line, from)
        local _, colon = line:find("^%s*:", to + 1)
        if colon and open and not open.is_list then
          local ok, name = pcall(vim.json.decode, line:sub(from, to))
          add_key(ok and tostring(name) or "", from)
        elseif key or not open or open.is_list then
          add_value(from, to)
        end
        to = colon or to
      elseif char == "{" or char == "[" then
        local container = add_value(from, to)
        open, container.is_list = container, char == "["
      elseif char == "}" or char == "]" then
        if open then
          open.last_row, open.last_column = row, from - 1
          open, key, ended = open.parent, nil, open
        end
      elseif char == "," then
        -- The cursor is often on the comma after a value.
        if ended and ended.last_row == row then ended.last_column = from - 1 end
        key = nil
      else
        to = select(2, line:find('^[^%s,%[%]{}"]+', from)) or from
        if key or (open and open.is_list) then add_value(from, to) end
      end
      from = line:find("%S", to + 1)
    end
  end
  while open do
    open.last_row, open.last_column, open = #lines - 1, #lines[#lines], open.parent
  end
  return places
end

---The innermost value at a position, or right before it.
---@param places mcp_sidecar.Place[]
---@param row integer
---@param column integer
---@return mcp_sidecar.Place?
function M.at(places, row, column)
  local found = places[1]
  for _, place in ipairs(places) do
    local starts = row > place.row or (row == place.row and column >= place.column)
    local ends = row < place.last_row or (row == place.last_row and column <= place.last_column + 1)
    if starts and ends then found = place end
  end
  return found
end

---The fields that an object does not have.
---@param place mcp_sidecar.Place
---@return mcp_sidecar.Field[]
function M.missing(place)
  local fields = place.field and place.field.fields or {}
  return vim.tbl_filter(function(field) return not place.keys[field.name] end, fields)
end

---What `+` adds to an object or a list.
---@param place mcp_sidecar.Place
function M.addable(place)
  if place.is_list and place.field and place.field.item then return "one more" end
  local names = vim.tbl_map(function(field) return field.name end, M.missing(place))
  return #names > 0 and table.concat(names, ", ") or nil
end

---A value, or what should contain it.
---@param places mcp_sidecar.Place[]
---@param pointer string
---@return mcp_sidecar.Place?
function M.find(places, pointer)
  local found = vim.iter(places):find(function(place) return place.pointer == pointer end)
  if found or pointer == "" then return found end
  return M.find(places, (pointer:gsub("/[^/]*$", "")))
end

return M
