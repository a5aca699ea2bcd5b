-- lazy.nvim runs this file when it installs or updates the plugin: it downloads the binary, unless there is one that fits.
local root = vim.fs.dirname(vim.fs.normalize(vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p")))

-- The plugin is not loaded yet, and must not be: its manager does that, with the options of the user. After an update, an
-- older version of these modules is loaded.
local modules, before = { "mcp_sidecar.binary", "mcp_sidecar.config", "mcp_sidecar.install" }, {}
for _, name in ipairs(modules) do
  before[name], package.loaded[name] = package.loaded[name], nil
  package.preload[name] = assert(loadfile(("%s/editors/nvim/lua/%s.lua"):format(root, name:gsub("%.", "/"))))
end
local install = require("mcp_sidecar.install")
for _, name in ipairs(modules) do
  package.loaded[name], package.preload[name] = before[name], nil
end

install.build()
