--- Changes to config files, made by the sidecar: add, remove, move, import, export.

local client = require("mcp_sidecar.client")
local form = require("mcp_sidecar.ui.server_form")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

local scopes =
  { project = "for everyone in this project", ["local"] = "for you in this project", user = "for you in every project" }

---@param done fun(scope: string)
local function pick_scope(done)
  local function format(scope) return scope, scopes[scope] end
  windows.choose({ "project", "local", "user" }, { prompt = "Which file: ", format = format }, done)
end

---Asks for a command line or a URL, which the sidecar reads.
---@param server? string
local function describe(server)
  vim.ui.input({ prompt = "Command line or URL: " }, function(text)
    text = vim.trim(text or "")
    if text ~= "" then form.open({ commandLine = text, values = { name = server } }) end
  end)
end

---Searches the MCP registry, and opens the form of the server that the user picks.
---@param query? string
function M.search(query)
  if not query then
    return vim.ui.input({ prompt = "Search the MCP registry: " }, function(text)
      if vim.trim(text or "") ~= "" then M.search(text) end
    end)
  end
  client.fetch("mcp.registry.search", { query = query }, function(result)
    vim.iter(result.notes or {}):each(client.info)
    windows.choose(result.servers, {
      prompt = "Add: ",
      kind = "mcp_registry",
      none = ("the registry has no server for `%s`"):format(query),
      format = function(server)
        local about = server.warning and ("%s (%s)"):format(server.description, server.warning) or server.description
        return server.name .. " " .. server.version, about
      end,
    }, function(server) form.open({ registry = { name = server.name } }) end)
  end)
end

---Adds a server to a config file: from the template with this name, else from a command line or URL. Without a name,
---the user picks a template.
---@param name? string
function M.add(name)
  client.fetch("mcp.templates", nil, function(result)
    local named = vim.iter(result.templates):find(function(template) return template.id == name end)
    if named then return form.open({ template = named.id }) end
    if name then return describe(name) end
    local other = { id = "", title = "other", description = "a command line or a URL", inputs = {} }
    local registry = { id = "", title = "registry", description = "search the MCP registry", inputs = {} }
    windows.choose(vim.list_extend({ other, registry }, result.templates), {
      prompt = "Add: ",
      kind = "mcp_template",
      format = function(template) return template.title, template.description or "" end,
    }, function(template)
      if template == other then return describe() end
      if template == registry then return M.search() end
      form.open({ template = template.id })
    end)
  end)
end

---Continues with this program, or with one that the user picks.
local function with_program(program, prompt, done)
  if program then return done(program) end
  windows.choose(require("mcp_sidecar.lists").dialects, { prompt = prompt }, done)
end

---The messages about each server, one per line.
---@param list? table<string, string|string[]>
local function notes(list, mark)
  local lines = {}
  for name, reasons in vim.spairs(list or {}) do
    for _, reason in ipairs(type(reasons) == "table" and reasons or { reasons }) do
      table.insert(lines, ("- %s **%s**: %s"):format(mark, name, reason))
    end
  end
  return lines
end

---Imports servers after showing which ones.
---@param from? string
function M.import(from)
  with_program(from, "Import from: ", function(program)
    pick_scope(function(scope)
      local params = { from = program, scope = scope, dryRun = true }
      client.fetch("mcp.config.import", params, function(plan)
        local lines = vim.list_extend(notes(plan.skipped, "skipped"), notes(plan.notes, "note"))
        if #plan.imported == 0 then return windows.peek(lines, "import from " .. program, "No servers found.") end
        local names = table.concat(plan.imported, "`, `")
        local text = ("Import `%s`?\n%s"):format(names, table.concat(lines, "\n"))
        if vim.fn.confirm(text, "&No\n&Import", 1) ~= 2 then return end
        params.dryRun = nil
        local done = ("imported `%s` into %s"):format(names, plan.path)
        client.fetch("mcp.config.import", params, function() client.info(done) end)
      end)
    end)
  end)
end

---Shows the servers in the format of another program, in a new buffer.
---@param to? string
function M.export(to)
  with_program(to, "Export for: ", function(program)
    client.fetch("mcp.config.export", { to = program }, function(result)
      vim.cmd.new()
      vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(result.text, "\n"))
      vim.bo.filetype = result.syntax == "json" and "jsonc" or result.syntax
      vim.bo.modified = false
      local lines = notes(result.notes, "note")
      if #lines > 0 then windows.peek(lines, "export for " .. program) end
    end)
  end)
end

return M
