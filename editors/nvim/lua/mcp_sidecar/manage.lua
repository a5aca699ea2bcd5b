--- Changes to config files that the sidecar makes: adding, removing, taking over from other programs.

local client = require("mcp_sidecar.client")

local M = {}

local scopes = { "project", "local", "user" }

local function scope(done)
  vim.ui.select(scopes, { prompt = "Which file: " }, function(chosen)
    if chosen then
      done(chosen)
    end
  end)
end

local function write(server, definition)
  scope(function(chosen)
    client.command("mcp.server.add", { server = server, config = definition, scope = chosen })
  end)
end

---Asks for a program or an address.
local function describe(server)
  vim.ui.input({ prompt = "Program with arguments, or address: " }, function(text)
    local words = vim.split(vim.trim(text or ""), "%s+")
    if words[1] == "" then
      return
    elseif words[1]:match("^https?://") then
      return write(server, { url = words[1] })
    end
    write(server, { command = words[1], args = #words > 1 and vim.list_slice(words, 2) or nil })
  end)
end

local function ask_name(default, done)
  vim.ui.input({ prompt = "Name of the server: ", default = default }, function(name)
    if name and name ~= "" then
      done(name)
    end
  end)
end

---Adds a server to a config file: by name, or from the templates of the sidecar where it has some.
---@param name? string
function M.add(name)
  if name then
    return describe(name)
  elseif not client.knows("mcp.templates") then
    return ask_name(nil, describe)
  end
  client.command("mcp.templates", nil, function(err, result)
    if err then
      return client.complain(err)
    end
    local other = { title = "another", description = "a program or an address of your own" }
    vim.ui.select(vim.list_extend(result.templates, { other }), {
      prompt = "Add: ",
      kind = "mcp_template",
      format_item = function(template)
        return ("%s  %s"):format(template.title, template.description or "")
      end,
    }, function(template)
      if template == other then
        ask_name(nil, describe)
      elseif template then
        ask_name(template.id, function(server)
          write(server, template.config)
        end)
      end
    end)
  end)
end

---Switches a server on or off in the file that defines it.
---@param server mcp_sidecar.Server
function M.enable(server)
  client.command(
    "mcp.server.enable",
    { server = server.name, enabled = server.status == "disabled", scope = server.scope }
  )
end

---@param name string
function M.remove(name)
  local server = client.picture().servers[name]
  local from = server and server.scope or "project"
  if vim.fn.confirm(("Remove %s from the %s file?"):format(name, from), "&Remove\n&Keep", 2) == 1 then
    client.command("mcp.server.remove", { server = name, scope = from })
  end
end

---@param from? string
function M.import(from)
  if not from then
    return client.say("usage: :Mcp import {program}", vim.log.levels.WARN)
  end
  scope(function(chosen)
    client.command("mcp.config.import", { from = from, scope = chosen }, function(err, result)
      if err then
        return client.complain(err)
      end
      client.say(("imported %d, skipped %d"):format(#result.imported, vim.tbl_count(result.skipped)))
    end)
  end)
end

---@param to? string
function M.export(to)
  if not to then
    return client.say("usage: :Mcp export {program}", vim.log.levels.WARN)
  end
  client.command("mcp.config.export", { to = to }, function(err, result)
    if err then
      return client.complain(err)
    end
    vim.cmd.new()
    vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(result.text, "\n"))
    vim.bo.filetype = "json"
  end)
end

return M
