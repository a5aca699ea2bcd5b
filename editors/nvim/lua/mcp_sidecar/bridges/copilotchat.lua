--- Tools for CopilotChat.nvim: `require("mcp_sidecar.bridges.copilotchat").setup()` after its own setup.

local tools = require("mcp_sidecar.bridges.tools")

local M = {}

---Calls a tool and waits in a coroutine of plenary, as functions of CopilotChat do.
local function resolve(tool, input)
  ---@diagnostic disable-next-line: unresolved-require installed with CopilotChat
  local wait = require("plenary.async").wrap(function(done) tools.call(tool, input, "CopilotChat", done) end, 1)
  local text, err = wait()
  if err then error(err, 0) end
  -- Without a uri: CopilotChat treats entries with one as resources and sends them to the model only once.
  return { { data = text, mimetype = "text/plain" } }
end

---Adds every tool as a function and keeps the functions up to date.
function M.setup()
  ---@diagnostic disable-next-line: unresolved-require required by the caller
  local chat = require("CopilotChat")
  local function entry(tool)
    return {
      group = tool.server,
      description = tool.description,
      schema = tool.inputSchema,
      -- The sidecar asks where necessary. A second question would teach people not to read.
      trusted = true,
      resolve = function(input) return resolve(tool, input) end,
    }
  end
  tools.keep(chat.config.functions, tools.each(entry))
end

return M
