--- The sidecar changes open config files in their buffers. These buffers are saved afterwards, unless they had unsaved
--- changes of the user before.

local M = {}

---The buffers that have unsaved changes now.
---@return table<integer, boolean>
function M.now()
  local modified = {}
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    modified[buffer] = vim.bo[buffer].modified or nil
  end
  return modified
end

---@param paths string[] from the response of the sidecar
---@param before table<integer, boolean> buffers with unsaved changes before the request
---@return string? message for the user about the files that are not saved
function M.save(paths, before)
  local left = {}
  for _, path in ipairs(paths) do
    local buffer = vim.fn.bufnr(vim.fn.fnameescape(path))
    local saved = buffer ~= -1
      and not before[buffer]
      and pcall(vim.api.nvim_buf_call, buffer, function() vim.cmd("silent update") end)
    if not saved then table.insert(left, vim.fn.fnamemodify(path, ":~:.")) end
  end
  if #left > 0 then
    return ("%s was changed but not saved; save it to apply the change"):format(table.concat(left, ", "))
  end
end

return M
