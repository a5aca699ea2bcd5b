-- The config of the LSP client. Change it with `vim.lsp.config("mcp_sidecar", { … })`.
return require("mcp_sidecar.client").config()
