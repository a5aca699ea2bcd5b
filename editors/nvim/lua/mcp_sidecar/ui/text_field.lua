--- A long text of a form in its own window: line breaks are line breaks, and nothing has to be escaped.

local windows = require("mcp_sidecar.ui.windows")

local M = {}

---@class mcp_sidecar.TextField
---@field name string of the buffer
---@field title string
---@field text string
---@field store fun(text: string): boolean false when the form is gone

---@param field mcp_sidecar.TextField
function M.open(field)
  local buffer = windows.buffer(field.name, "text")
  vim.bo[buffer].buftype = "acwrite"
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(field.text, "\n"))
  vim.bo[buffer].modified = false
  local function store()
    if field.store(table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")) then
      vim.bo[buffer].modified = false
    end
  end
  local group = vim.api.nvim_create_augroup("mcp_sidecar_text_" .. buffer, {})
  vim.api.nvim_create_autocmd("BufWriteCmd", { group = group, buffer = buffer, callback = store })
  windows.keys(buffer, "text", {
    {
      "<CR>",
      function()
        store()
        windows.close()
      end,
      "(or `:wq`) put it into the form",
    },
  })
  local chunks = { { " " .. field.title, "McpTitle" } }
  local bar = windows.winbar(chunks, { { "<CR>", "into the form" }, { "q", "discard" }, { "?", "help" } })
  windows.show(buffer, { mods = { split = "belowright" }, winbar = bar, wrap = true })
end

return M
