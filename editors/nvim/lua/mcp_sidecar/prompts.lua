--- Prompts of servers: pick one, fill in its arguments with completion from the server, insert its text.

local client = require("mcp_sidecar.client")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

---@param prompt mcp_sidecar.PromptInfo
---@param origin mcp_sidecar.Origin
---@param result mcp_sidecar.Prompt
local function insert(prompt, origin, result)
  local lines = {}
  for place, message in ipairs(result.messages) do
    if place > 1 then table.insert(lines, "") end
    local shown = { server = prompt.server, content = { message.content } }
    vim.list_extend(lines, (require("mcp_sidecar.ui.result").render(shown)))
  end
  local buffer = origin.buffer
  if vim.api.nvim_buf_is_valid(buffer) and vim.bo[buffer].modifiable and vim.bo[buffer].buftype == "" then
    local row = vim.api.nvim_win_get_cursor(origin.window)[1]
    vim.api.nvim_buf_set_lines(buffer, row, row, false, lines)
    return vim.api.nvim_win_set_cursor(origin.window, { row + 1, 0 })
  end
  vim.cmd.new()
  vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
  windows.set_filetype(0, "markdown")
end

---Asks for one argument: the user picks one of the values that the server suggests, or types one.
---@param server string
---@param ref table the MCP reference that the argument belongs to
---@param argument mcp_sidecar.PromptArgument
---@param known table<string, string> arguments that already have a value
---@param done fun(value?: string)
function M.ask(server, ref, argument, known, done)
  local label = argument.name .. (argument.required and ": " or ", optional: ")
  client.command("mcp.complete", {
    server = server,
    ref = ref,
    argument = { name = argument.name, value = "" },
    context = next(known) and { arguments = known } or nil,
  }, function(_, result)
    local values, other = result and result.values or {}, "other…"
    if #values == 0 then return vim.ui.input({ prompt = label }, done) end
    vim.ui.select(vim.list_extend(values, { other }), { prompt = label, kind = "mcp_value" }, function(value)
      if value ~= other then return done(value) end
      vim.ui.input({ prompt = label }, done)
    end)
  end)
end

---Asks for the arguments of a prompt, one after the other. Stops if a required one is not given.
---@param prompt mcp_sidecar.PromptInfo
---@param done fun(arguments?: table<string, string>)
function M.ask_arguments(prompt, done)
  local arguments, ref = {}, { type = "ref/prompt", name = prompt.name }
  local function step(place)
    local argument = (prompt.arguments or {})[place]
    if argument then
      return M.ask(prompt.server, ref, argument, arguments, function(value)
        if value == nil and argument.required then return end
        arguments[argument.name] = value ~= "" and value or nil
        step(place + 1)
      end)
    end
    done(next(arguments) and arguments or nil)
  end
  step(1)
end

---@param prompt mcp_sidecar.PromptInfo
---@param origin mcp_sidecar.Origin
local function fill(prompt, origin)
  M.ask_arguments(prompt, function(arguments)
    local params = { server = prompt.server, name = prompt.name, arguments = arguments }
    client.fetch("mcp.prompt.get", params, function(result) insert(prompt, origin, result) end)
  end)
end

---@param wanted? string `server/prompt`
function M.pick(wanted)
  local origin = { buffer = vim.api.nvim_get_current_buf(), window = vim.api.nvim_get_current_win() }
  client.fetch("mcp.prompts", nil, function(result)
    local function full(prompt) return prompt.server .. "/" .. prompt.name end
    local named = vim.iter(result.prompts):find(function(prompt) return full(prompt) == wanted end)
    if named then return fill(named, origin) end
    windows.choose(result.prompts, {
      prompt = "Insert: ",
      kind = "mcp_prompt",
      none = "no server has prompts",
      format = function(prompt) return full(prompt), prompt.description or "" end,
    }, function(prompt) fill(prompt, origin) end)
  end)
end

return M
