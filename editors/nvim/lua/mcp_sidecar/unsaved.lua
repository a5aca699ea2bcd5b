--- Config files that are open here are changed in their buffers, and count when they are saved: so they are saved,
--- unless they held other changes of the user before.

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

---@param paths string[] as the sidecar names them in its answer
---@param before table<integer, boolean> what was unsaved before it was asked
---@return string? what is left to do
function M.save(paths, before)
  local left = {}
  for _, path in ipairs(paths) do
    local buffer = vim.fn.bufnr(vim.fn.fnameescape(path))
    local saved = buffer ~= -1
      and not before[buffer]
      and pcall(vim.api.nvim_buf_call, buffer, function() vim.cmd("silent update") end)
    if not saved then table.insert(left, vim.fn.fnamemodify(path, ":~:.")) end
  end
  if #left > 0 then return ("%s is changed but not saved: `:w` makes it count"):format(table.concat(left, ", ")) end
end

return M
