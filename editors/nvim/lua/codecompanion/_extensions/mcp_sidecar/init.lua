--- Extension of CodeCompanion (v18 and later): `extensions = { mcp_sidecar = {} }`. Each server is a group of tools, each
--- prompt a slash command, and `/mcp_resource` adds a resource to the chat.

local offers = require("mcp_sidecar.bridges.offers")
local tools = require("mcp_sidecar.bridges.tools")

local M = { exports = {} }

---Gives a result to the chat. The arguments are (self, output, meta) since v19, (self, tools, command, output) before.
local function report(prefix)
  return function(self, first, second, third)
    local is_new = type(second) == "table" and second.tools ~= nil
    local chat, output = (is_new and second.tools or first).chat, is_new and first or third
    chat:add_tool_output(self, prefix .. table.concat(vim.iter({ output }):flatten(math.huge):totable(), "\n"))
  end
end

---@param tool mcp_sidecar.ToolInfo
---@param name string
local function definition(tool, name)
  return {
    name = name,
    schema = {
      type = "function",
      ["function"] = { name = name, description = tool.description, parameters = tool.inputSchema },
    },
    cmds = {
      -- The callback is in the options since v19, and a separate argument before.
      ---@param arguments? table
      function(_, arguments, opts, callback)
        local done = type(opts) == "table" and opts.output_cb or callback
        local function report_to(text, err) done({ status = err and "error" or "success", data = err or text }) end
        tools.call(tool, arguments or {}, "CodeCompanion", report_to)
      end,
    },
    output = { success = report(""), error = report("error: ") },
  }
end

---@param list mcp_sidecar.ToolInfo[]
---@return table<string, { description: string, tools: string[], opts: table }>
local function groups(list)
  local found = {}
  for _, tool in ipairs(list) do
    local name, text = "mcp_" .. tool.server, "Tools of the MCP server " .. tool.server
    found[name] = found[name] or { description = text, tools = {}, opts = { collapse_tools = true } }
    table.insert(found[name].tools, tools.name(tool))
  end
  return found
end

---Slash commands: the user picks what goes into the chat.
---@param offered mcp_sidecar.Offers
local function slash_commands(offered)
  local commands = {}
  for _, prompt in ipairs(offered.prompts) do
    commands[offers.name(prompt.server, prompt.name)] = {
      description = prompt.description or prompt.title or ("Prompt of the MCP server " .. prompt.server),
      callback = function(chat)
        offers.fill_prompt(prompt, function(text) chat:add_buf_message({ role = "user", content = text }) end)
      end,
    }
  end
  if #offered.resources > 0 then
    commands.mcp_resource = {
      description = "Add a resource of an MCP server",
      callback = function(chat)
        offers.pick_resource(function(text, name)
          local id = ("<mcp>%s</mcp>"):format(name)
          chat:add_context({ role = "user", content = ("Resource %s:\n\n%s"):format(name, text) }, "mcp_sidecar", id)
        end)
      end,
    }
  end
  return commands
end

function M.setup()
  local ok, config = pcall(require, "codecompanion.config")
  local chat = ok and (config.interactions or {}).chat
  if not chat then
    vim.notify("the extension mcp_sidecar needs CodeCompanion v18 or later", vim.log.levels.WARN)
    return
  end
  local function entry(tool, name)
    return {
      description = tool.description,
      visible = true,
      -- The sidecar asks where necessary.
      opts = { require_approval_before = false },
      callback = function() return definition(tool, name) end,
    }
  end
  chat.tools.groups = chat.tools.groups or {}
  tools.keep(chat.tools, tools.each(entry))
  tools.keep(chat.tools.groups, groups)
  chat.slash_commands = chat.slash_commands or {}
  tools.keep(chat.slash_commands, slash_commands, offers.follow)
end

return M
