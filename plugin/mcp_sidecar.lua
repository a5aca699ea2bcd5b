-- Plugin managers add the root of a repository to 'runtimepath'; the plugin is in editors/nvim.
local root = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h:h")
local plugin = root .. "/editors/nvim"
if not vim.g.loaded_mcp_sidecar and vim.uv.fs_stat(plugin) then
  vim.opt.runtimepath:append(plugin)
  vim.cmd.source({ args = { plugin .. "/plugin/mcp_sidecar.lua" }, magic = { file = false } })
end
