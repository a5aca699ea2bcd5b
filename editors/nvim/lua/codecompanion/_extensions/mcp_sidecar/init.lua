--- Extension of CodeCompanion (v19): `extensions = { mcp_sidecar = {} }`. Each server is a group of tools.

local tools = require("mcp_sidecar.bridges.tools")

local M = { exports = {} }

---@param tool mcp_sidecar.Tool
local function definition(tool, name)
  return {
    name = name,
    schema = {
      type = "function",
      ["function"] = { name = name, description = tool.description, parameters = tool.inputSchema },
    },
    cmds = {
      function(_, arguments, opts)
        tools.call(
          tool,
          arguments or {},
          "CodeCompanion",
          function(text, err) opts.output_cb({ status = err and "error" or "success", data = err or text }) end
        )
      end,
    },
    output = {
      success = function(self, output, meta)
        meta.tools.chat:add_tool_output(self, table.concat(vim.iter({ output }):flatten(math.huge):totable(), "\n"))
      end,
      error = function(self, output, meta)
        local text = table.concat(vim.iter({ output }):flatten(math.huge):totable(), "\n")
        meta.tools.chat:add_tool_output(self, "error: " .. text)
      end,
    },
  }
end

function M.setup()
  local ok, config = pcall(require, "codecompanion.config")
  local chat = ok and (config.interactions or {}).chat
  if not chat then
    vim.notify("the extension mcp_sidecar needs CodeCompanion v18 or later", vim.log.levels.WARN)
    return
  end
  local ours = {}
  tools.follow(function(list)
    for name in pairs(ours) do
      chat.tools[name] = nil
    end
    ours = {}
    local groups = {}
    for _, tool in ipairs(list) do
      local name = tools.name(tool)
      ours[name] = true
      chat.tools[name] = {
        description = tool.description,
        visible = true,
        -- The sidecar asks where it has to.
        opts = { require_approval_before = false },
        callback = function() return definition(tool, name) end,
      }
      groups[tool.server] = groups[tool.server] or {}
      table.insert(groups[tool.server], name)
    end
    chat.tools.groups = chat.tools.groups or {}
    for server, names in pairs(groups) do
      chat.tools.groups["mcp_" .. server] = {
        description = "Tools of the MCP server " .. server,
        tools = names,
        opts = { collapse_tools = true },
      }
    end
  end)
end

return M
