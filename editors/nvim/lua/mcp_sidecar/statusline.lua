--- Text for a statusline. Reads one variable and loads nothing else.

local M = {}

---@return string such as `mcp 3 ✗1 ?2`, `mcp down` or `mcp no servers`; empty before the sidecar has started
function M.get()
  local status = vim.g.mcp_sidecar_status
  if not status then return "" end
  if not status.running then return "mcp down" end
  local parts = { status.servers == 0 and "mcp no servers" or "mcp " .. status.connected }
  for _, part in ipairs({
    { "✗", status.failed },
    { "…", status.pending },
    { "?", status.approvals },
    { "⟳", status.busy },
  }) do
    if part[2] > 0 then table.insert(parts, part[1] .. part[2]) end
  end
  return table.concat(parts, " ")
end

return M
