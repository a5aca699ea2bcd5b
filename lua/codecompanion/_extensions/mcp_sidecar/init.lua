-- Plugin managers look for modules at the root of a repository; the plugin is in editors/nvim.
local root, module = vim.fs.normalize(debug.getinfo(1, "S").source:sub(2)):match("^(.*)/lua/(.*)$")
dofile(root .. "/plugin/mcp_sidecar.lua")
return dofile(root .. "/editors/nvim/lua/" .. module)
