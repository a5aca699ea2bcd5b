--- Pretty-printed JSON: indented, with sorted keys.

local M = {}

-- Older versions escape `/` as `\/`.
local escapes_slashes = vim.json.encode("/") ~= '"/"'

local function scalar(value)
  local text = vim.json.encode(value)
  return escapes_slashes and (text:gsub("\\/", "/")) or text
end

---@param value any
---@param indent? string prefix of each line but the first
---@param field? mcp_sidecar.Field its fields come first, in their order
function M.pretty(value, indent, field)
  indent = indent or ""
  if type(value) ~= "table" then return scalar(value) end
  local inner, parts = indent .. "  ", {}
  if vim.islist(value) and getmetatable(value) == nil then
    for _, item in ipairs(value) do
      table.insert(parts, inner .. M.pretty(item, inner, field and field.item))
    end
    return #parts == 0 and "[]" or "[\n" .. table.concat(parts, ",\n") .. "\n" .. indent .. "]"
  end
  local keys, fields, places = vim.tbl_keys(value), {}, {}
  for place, each in ipairs(field and field.fields or {}) do
    fields[each.name], places[each.name] = each, place
  end
  table.sort(keys, function(one, other)
    local first, second = places[one] or math.huge, places[other] or math.huge
    if first ~= second then return first < second end
    return tostring(one) < tostring(other)
  end)
  for _, key in ipairs(keys) do
    table.insert(parts, inner .. scalar(tostring(key)) .. ": " .. M.pretty(value[key], inner, fields[key]))
  end
  return #parts == 0 and "{}" or "{\n" .. table.concat(parts, ",\n") .. "\n" .. indent .. "}"
end

---@param value any
function M.lines(value) return vim.split(M.pretty(value), "\n") end

return M
