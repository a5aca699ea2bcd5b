--- Changes to the text of a form by keys: choose a value, add and remove fields and items, edit a text in its own window.

local call = require("mcp_sidecar.ui.call")
local client = require("mcp_sidecar.client")
local fields = require("mcp_sidecar.ui.fields")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

---Suggestions for a field: its choices, else the selection and the file that the form was opened from.
---@param field mcp_sidecar.Field
---@param origin mcp_sidecar.Origin
local function offers(field, origin)
  local list, takes_text = fields.choices(field), field.kind == "text" or field.kind == "multiline"
  if not takes_text or not vim.api.nvim_buf_is_valid(origin.buffer) then return list end
  local text = call.text(origin)
  local path = vim.bo[origin.buffer].buftype == "" and vim.api.nvim_buf_get_name(origin.buffer) or ""
  list = text and { { title = "the selection: " .. text, value = text } } or {}
  if path ~= "" then
    local all = table.concat(vim.api.nvim_buf_get_lines(origin.buffer, 0, -1, false), "\n")
    table.insert(list, { title = "the file's name: " .. vim.fn.fnamemodify(path, ":~:."), value = path })
    table.insert(list, { title = "the file's text: " .. all, value = all })
  end
  return list
end

---Where a value is: what holds it, and its key there.
---@param values table<string, any>
---@param pointer string
---@return any holder, string|integer key
local function locate(values, pointer)
  local holder, key = { [""] = values }, "" ---@type any, string|integer
  for token in pointer:gmatch("/([^/]*)") do
    holder = holder[key]
    key = vim.islist(holder) and (tonumber(token) or 0) + 1 or token:gsub("~1", "/"):gsub("~0", "~")
  end
  return holder, key
end

---The text of a value; empty if it is no text.
---@param form mcp_sidecar.OpenForm
---@param pointer string
---@return string
local function text_at(form, pointer)
  local values = form:read()
  if not values then return "" end
  local holder, key = locate(values, pointer)
  return type(holder[key]) == "string" and holder[key] or ""
end

---Changes one value and moves the cursor there.
---@param form mcp_sidecar.OpenForm
---@param pointer string
---@param change fun(before: any): any
local function set(form, pointer, change)
  local values = form:read()
  if not values then return end
  local holder, key = locate(values, pointer)
  holder[key] = change(holder[key])
  form:write(values)
  local window, place = windows.window_of(form.name), fields.find(form:places(), pointer)
  if window and place then vim.api.nvim_win_set_cursor(window, { place.row + 1, place.column }) end
end

---Opens the text at the cursor in its own window, where line breaks are line breaks.
---@param form mcp_sidecar.OpenForm
function M.edit_text(form)
  local place = form:at_cursor()
  local kind = place and place.field and place.field.kind
  if not place or (kind ~= "text" and kind ~= "multiline") then return client.info("no text at the cursor") end
  require("mcp_sidecar.ui.text_field").open({
    name = form.name:gsub("^mcp%-%l+://", "mcp-text://") .. place.pointer,
    title = place.pointer:sub(2),
    text = text_at(form, place.pointer),
    store = function(text)
      if not form:is_open() then return false end
      set(form, place.pointer, function() return text end)
      form:changed()
      return true
    end,
  })
end

---Sets the field at the cursor to one of the suggestions. A choice is added to a list of choices.
---@param form mcp_sidecar.OpenForm
function M.choose(form)
  local place, list = form:at_cursor(), {}
  while place do
    list = place.field and offers(place.field, form.origin) or {}
    if #list > 0 then break end
    place = place.parent
  end
  if not (place and place.field) then return client.info("no suggestions for this field") end
  local several = place.field.kind == "choices"
  local opts = { prompt = place.pointer:sub(2) .. ": ", kind = "mcp_value" }
  opts.format = function(choice) return choice.title end
  windows.choose(list, opts, function(choice)
    set(form, place.pointer, function(before)
      if not several then return choice.value end
      before = vim.islist(before) and before or {}
      return vim.tbl_contains(before, choice.value) and before or vim.list_extend(before, { choice.value })
    end)
  end)
end

---Adds a field to the object at the cursor, or an item to the list.
---@param form mcp_sidecar.OpenForm
function M.add(form)
  local place = form:at_cursor()
  while place and not fields.addable(place) do
    if place.is_list and place.field and place.field.kind == "choices" then return M.choose(form) end
    place = place.parent
  end
  if not place then return client.info("the form already has every field") end
  local function add_to(at, name, field)
    set(form, at.pointer .. "/" .. fields.escape(name), function() return fields.example(field) end)
  end
  local function add_item(list) add_to(list, tostring(list.items), list.field.item) end
  if place.is_list then return add_item(place) end
  local missing, list = fields.missing(place), place.parent
  if list and list.is_list and fields.addable(list) then table.insert(missing, { title = "one more item" }) end
  local opts =
    { prompt = "Add a field: ", kind = "mcp_field", format = function(field) return field.name or field.title end }
  windows.choose(missing, opts, function(field)
    if not field.name then return add_item(list) end
    add_to(place, field.name, field)
  end)
end

---Removes the optional field or the item at the cursor.
---@param form mcp_sidecar.OpenForm
function M.remove(form)
  local place = form:at_cursor()
  while place and (place.field and place.field.required and place.name) do
    place = place.parent
  end
  local values = place and place.parent and form:read()
  if not (place and values) then return client.info("this field is required") end
  local holder, key = locate(values, place.pointer)
  if type(key) == "number" then
    table.remove(holder, key)
  else
    holder[key] = nil
  end
  form:write(values)
  local around = fields.find(form:places(), place.pointer)
  if around then vim.api.nvim_win_set_cursor(0, { around.row + 1, around.column }) end
end

return M
