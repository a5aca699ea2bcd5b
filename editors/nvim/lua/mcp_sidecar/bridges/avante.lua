--- Tools for avante.nvim: `custom_tools = function() return require("mcp_sidecar.bridges.avante").tools() end`. After its
--- setup, `require("mcp_sidecar.bridges.avante").setup()` adds a slash command for each prompt, and one for resources.

local offers = require("mcp_sidecar.bridges.offers")
local tools = require("mcp_sidecar.bridges.tools")

local M = {}

---The properties of a JSON Schema in the format of avante.
---@param schema mcp_sidecar.Schema
local function fields(schema)
  local function describe(name, field)
    local kind = type(field.type) == "table" and field.type[1] or field.type or "string"
    return {
      name = name,
      description = field.description or field.title or name,
      type = kind == "number" and "integer" or kind,
      optional = not vim.tbl_contains(schema.required or {}, name),
      choices = type(field.enum) == "table" and field.enum or nil,
      fields = kind == "object" and fields(field) or nil,
    }
  end
  return vim.iter(vim.spairs(schema.properties or {})):map(describe):totable()
end

---Puts a text into the input of the sidebar, where the user can read and change it before it is sent.
local function put(sidebar, text)
  local input = ((sidebar or {}).containers or {}).input
  local buffer = input and input.bufnr
  if not (buffer and vim.api.nvim_buf_is_valid(buffer)) then
    ---@diagnostic disable-next-line: unresolved-require avante calls this
    return require("avante.api").ask({ question = text })
  end
  vim.api.nvim_buf_set_lines(buffer, -1, -1, false, vim.split(text, "\n"))
end

---@param offered mcp_sidecar.Offers
local function slash_commands(offered)
  local commands = vim.tbl_map(function(prompt)
    local about = prompt.description or prompt.title or ("Prompt of the MCP server " .. prompt.server)
    return {
      name = offers.name(prompt.server, prompt.name),
      description = about,
      details = about,
      callback = function(sidebar)
        offers.fill_prompt(prompt, function(text) put(sidebar, text) end)
      end,
    }
  end, offered.prompts)
  if #offered.resources > 0 then
    local about = "Add a resource of an MCP server"
    table.insert(commands, {
      name = "mcp_resource",
      description = about,
      details = about,
      callback = function(sidebar)
        offers.pick_resource(function(text, name) put(sidebar, ("Resource %s:\n\n%s"):format(name, text)) end)
      end,
    })
  end
  return commands
end

---Adds the slash commands and keeps them up to date. Other commands stay.
function M.setup()
  ---@diagnostic disable-next-line: unresolved-require required by the caller
  local config = require("avante.config")
  local ours = {} ---@type table<table, true?>
  offers.follow(function(offered)
    local list = config.slash_commands
    for place = #list, 1, -1 do
      if ours[list[place]] then table.remove(list, place) end
    end
    ours = {}
    for _, command in ipairs(slash_commands(offered)) do
      ours[command] = true
      table.insert(list, command)
    end
  end)
end

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
