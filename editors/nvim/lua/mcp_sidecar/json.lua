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
---@return string
function M.pretty(value, indent)
  indent = indent or ""
  if type(value) ~= "table" then return scalar(value) end
  local inner, parts = indent .. "  ", {}
  if vim.islist(value) and getmetatable(value) == nil then
    for _, item in ipairs(value) do
      table.insert(parts, inner .. M.pretty(item, inner))
    end
    return #parts == 0 and "[]" or "[\n" .. table.concat(parts, ",\n") .. "\n" .. indent .. "]"
  end
  local keys = vim.tbl_keys(value)
  table.sort(keys, function(one, other) return tostring(one) < tostring(other) end)
  for _, key in ipairs(keys) do
    table.insert(parts, inner .. scalar(tostring(key)) .. ": " .. M.pretty(value[key], inner))
  end
  return #parts == 0 and "{}" or "{\n" .. table.concat(parts, ",\n") .. "\n" .. indent .. "}"
end

---@param value any
---@return string[]
function M.lines(value) return vim.split(M.pretty(value), "\n") end

return M
