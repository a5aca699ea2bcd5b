--- Prompts of servers: pick one, fill in its arguments with the server's own completion, insert what it says.

local client = require("mcp_sidecar.client")

local M = {}

local function insert(origin, result)
  local lines = {}
  for place, message in ipairs(result.messages) do
    if place > 1 then
      table.insert(lines, "")
    end
    local content = vim.islist(message.content) and message.content or { message.content }
    local rendered = require("mcp_sidecar.ui.result").render({ server = origin.server, content = content })
    vim.list_extend(lines, rendered)
  end
  if vim.bo[origin.buffer].modifiable and vim.bo[origin.buffer].buftype == "" then
    local row = vim.api.nvim_win_get_cursor(origin.window)[1]
    vim.api.nvim_buf_set_lines(origin.buffer, row, row, false, lines)
    vim.api.nvim_win_set_cursor(origin.window, { row + 1, 0 })
  else
    local buffer = vim.api.nvim_create_buf(true, true)
    vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
    vim.bo[buffer].filetype = "markdown"
    vim.cmd.split()
    vim.api.nvim_win_set_buf(0, buffer)
  end
end

---One argument: chosen where the server offers values, typed otherwise.
local function ask(prompt, argument, known, done)
  local label = argument.name .. (argument.required and ": " or ", optional: ")
  client.command("mcp.complete", {
    server = prompt.server,
    ref = { type = "ref/prompt", name = prompt.name },
    argument = { name = argument.name, value = "" },
    context = next(known) and { arguments = known } or nil,
  }, function(_, result)
    local values = result and result.values or {}
    if #values == 0 then
      return vim.ui.input({ prompt = label }, done)
    end
    local other = "something else…"
    vim.ui.select(vim.list_extend(values, { other }), { prompt = label, kind = "mcp_value" }, function(value)
      if value == other then
        vim.ui.input({ prompt = label }, done)
      else
        done(value)
      end
    end)
  end)
end

local function fill(prompt, origin)
  local arguments = {}
  local function step(place)
    local argument = (prompt.arguments or {})[place]
    if argument then
      return ask(prompt, argument, arguments, function(value)
        if value == nil and argument.required then
          return
        end
        arguments[argument.name] = value ~= "" and value or nil
        step(place + 1)
      end)
    end
    client.command("mcp.prompt.get", {
      server = prompt.server,
      name = prompt.name,
      arguments = next(arguments) and arguments or nil,
    }, function(err, result)
      if err then
        return client.complain(err)
      end
      insert(origin, result)
    end)
  end
  step(1)
end

---@param wanted? string `server/prompt`
function M.pick(wanted)
  local origin = { buffer = vim.api.nvim_get_current_buf(), window = vim.api.nvim_get_current_win() }
  client.command("mcp.prompts", nil, function(err, result)
    local prompts = result and result.prompts or {}
    if err or #prompts == 0 then
      return client.complain(err or { message = "no server offers prompts" })
    end
    for _, prompt in ipairs(prompts) do
      if wanted == prompt.server .. "/" .. prompt.name then
        origin.server = prompt.server
        return fill(prompt, origin)
      end
    end
    vim.ui.select(prompts, {
      prompt = "Insert: ",
      kind = "mcp_prompt",
      format_item = function(prompt)
        return ("%s/%s  %s"):format(prompt.server, prompt.name, prompt.description or "")
      end,
    }, function(prompt)
      if prompt then
        origin.server = prompt.server
        fill(prompt, origin)
      end
    end)
  end)
end

return M
