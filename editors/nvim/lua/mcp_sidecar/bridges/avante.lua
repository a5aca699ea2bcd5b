--- Tools for avante.nvim: `custom_tools = function() return require("mcp_sidecar.bridges.avante").tools() end`.

local schemas = require("mcp_sidecar.ui.schema")
local tools = require("mcp_sidecar.bridges.tools")

local M = {}

---The properties of a JSON Schema in the format of avante.
---@param schema mcp_sidecar.Schema
---@return table[]
local function fields(schema)
  local names, required = schemas.order(schema)
  return vim.tbl_map(function(name)
    local field = schemas.field(schema, name)
    local kind = type(field.type) == "table" and field.type[1] or field.type or "string"
    return {
      name = name,
      description = field.description or field.title or name,
      type = kind == "number" and "integer" or kind,
      optional = not required[name],
      choices = type(field.enum) == "table" and field.enum or nil,
      fields = kind == "object" and fields(field) or nil,
    }
  end, names)
end

---@return table[]
function M.tools()
  return vim.tbl_map(function(tool)
    return {
      name = tools.name(tool),
      description = tool.description,
      param = { type = "table", fields = fields(tool.inputSchema) },
      returns = {
        { name = "result", description = "The result of the tool", type = "string" },
        { name = "error", description = "The error", type = "string", optional = true },
      },
      -- The callback is in the options; before mid-2025 it was the third argument.
      func = function(input, opts, callback)
        tools.call(tool, input, "avante", type(opts) == "table" and opts.on_complete or callback)
      end,
    }
  end, tools.known())
end

return M
