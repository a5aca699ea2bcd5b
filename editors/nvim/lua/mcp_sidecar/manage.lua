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

---@param name? string
function M.add(name)
  local function take(server)
    if not server or server == "" then
      return
    end
    vim.ui.input({ prompt = "Program with arguments, or address: " }, function(text)
      if not text or text == "" then
        return
      end
      local words = vim.split(vim.trim(text), "%s+")
      local config = text:match("^https?://") and { url = words[1] }
        or { command = words[1], args = #words > 1 and vim.list_slice(words, 2) or nil }
      scope(function(chosen)
        client.command("mcp.server.add", { server = server, config = config, scope = chosen })
      end)
    end)
  end
  if name then
    return take(name)
  end
  vim.ui.input({ prompt = "Name of the server: " }, take)
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
