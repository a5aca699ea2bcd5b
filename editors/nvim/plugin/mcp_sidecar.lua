-- Defines `:Mcp`, the <Plug> mappings and two autocommands. Loads no module before one of them is used.
if vim.g.loaded_mcp_sidecar then return end
vim.g.loaded_mcp_sidecar = true

vim.api.nvim_create_user_command("Mcp", function(command) require("mcp_sidecar.commands").run(command) end, {
  nargs = "*",
  bang = true,
  range = true,
  desc = "MCP servers, tools and approvals",
  complete = function(lead, line) return require("mcp_sidecar.commands").complete(lead, line) end,
})

vim.keymap.set("n", "<Plug>(mcp-dashboard)", "<Cmd>Mcp<CR>", { desc = "MCP dashboard" })
vim.keymap.set("n", "<Plug>(mcp-approve)", "<Cmd>Mcp approve<CR>", { desc = "Go to the open MCP question" })
vim.keymap.set("n", "<Plug>(mcp-deny)", "<Cmd>Mcp deny<CR>", { desc = "Deny the MCP call that is shown, once" })
vim.keymap.set("n", "<Plug>(mcp-later)", "<Cmd>Mcp later<CR>", { desc = "Hide the MCP question that is shown" })
vim.keymap.set("n", "<Plug>(mcp-call)", "<Cmd>Mcp call<CR>", { desc = "Call an MCP tool" })
vim.keymap.set("x", "<Plug>(mcp-call)", ":Mcp call<CR>", { silent = true, desc = "Call an MCP tool with this text" })

local group = vim.api.nvim_create_augroup("mcp_sidecar", {})

vim.api.nvim_create_autocmd("BufReadCmd", {
  group = group,
  pattern = "mcp://*",
  callback = function(event) require("mcp_sidecar.resources").fill(event.buf, event.match) end,
})

-- Loading vim.lsp is slow, so it waits for a file of a workspace that has servers.
vim.api.nvim_create_autocmd("FileType", {
  group = group,
  callback = function(event)
    if vim.bo[event.buf].buftype ~= "" or vim.api.nvim_buf_get_name(event.buf) == "" then return end
    if not require("mcp_sidecar.config").root(event.buf) then return end
    vim.api.nvim_del_autocmd(event.id)
    require("mcp_sidecar.client").enable()
  end,
})
