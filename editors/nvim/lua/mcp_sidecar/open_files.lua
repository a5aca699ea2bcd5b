--- Open files: what they contain before a call or a command changes them, and what happens to them afterwards.

local M = {}

---The loaded buffers of files.
function M.list()
  local function is_file(buffer) return vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].buftype == "" end
  return vim.tbl_filter(is_file, vim.api.nvim_list_bufs())
end

---Those that have unsaved changes.
function M.modified()
  return vim.tbl_filter(function(buffer) return vim.bo[buffer].modified end, M.list())
end

---The text of an open file, if it has unsaved changes.
---@param file string
---@return { text?: string }
function M.unsaved(file)
  for _, buffer in ipairs(M.modified()) do
    if vim.uv.fs_realpath(vim.api.nvim_buf_get_name(buffer)) == file then
      local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
      return { text = vim.bo[buffer].endofline and text .. "\n" or text }
    end
  end
  return vim.empty_dict()
end

---Reloads the files that changed on disk, unless they have unsaved changes. Runs after every call, whatever its tool says
---about itself: checking a file that did not change is cheap.
function M.reload()
  -- Neovim asks before it reloads a file unless 'autoread' is set.
  local answer = vim.api.nvim_create_autocmd("FileChangedShell", {
    callback = function() vim.v.fcs_choice = vim.v.fcs_reason == "deleted" and "" or "reload" end,
  })
  for _, buffer in ipairs(M.list()) do
    if not vim.bo[buffer].modified then vim.cmd.checktime({ args = { buffer }, mods = { silent = true } }) end
  end
  vim.api.nvim_del_autocmd(answer)
end

---Saves config files that the sidecar has changed in their buffers, except those that had unsaved changes before.
---@param paths string[] from the response of the sidecar
---@param before integer[] buffers with unsaved changes before the request
---@return string? message for the user about the files that are not saved
function M.save(paths, before)
  local left = vim.tbl_filter(function(path)
    local buffer = vim.fn.bufnr(vim.fn.fnameescape(path))
    return buffer == -1
      or vim.list_contains(before, buffer)
      or not pcall(vim.api.nvim_buf_call, buffer, function() vim.cmd("silent update") end)
  end, paths)
  local names = vim.tbl_map(function(path) return vim.fn.fnamemodify(path, ":~:.") end, left)
  if #names > 0 then
    return ("%s was changed but not saved; save it to apply the change"):format(table.concat(names, ", "))
  end
end

return M
