--- Changes to config files, made by the sidecar: add, remove, move, import, export.

local client = require("mcp_sidecar.client")
local windows = require("mcp_sidecar.ui.windows")

local M = {}

---The programs whose config files can be imported and exported.
M.programs = { "vscode", "claude", "claude-desktop", "cursor", "windsurf", "zed", "cline", "codex", "mcphub" }

local scopes =
  { project = "for everyone in this project", ["local"] = "for you in this project", user = "for you in every project" }

---@param done fun(scope: string)
---@param but? string a scope to leave out
local function pick_scope(done, but)
  local offered = vim.tbl_filter(function(scope) return scope ~= but end, { "project", "local", "user" })
  local function format(scope) return ("%-8s %s"):format(scope, scopes[scope]) end
  windows.choose(offered, { prompt = "Which file: ", format = format }, done)
end

---Asks for a text, and continues unless it is empty.
local function type_in(prompt, default, done)
  vim.ui.input({ prompt = prompt, default = default }, function(text)
    text = vim.trim(text or "")
    if text ~= "" then done(text) end
  end)
end

local function write(server, definition, inputs)
  pick_scope(function(scope)
    local params = { server = server, config = definition, inputs = inputs, scope = scope }
    client.fetch("mcp.server.add", params, function() client.info(("added `%s`"):format(server)) end)
  end)
end

---Asks for a command line or a URL.
local function describe(server)
  type_in("Command line or URL: ", nil, function(text)
    if text:match("^https?://") then return write(server, { url = text }) end
    local words = vim.split(text, "%s+")
    write(server, { command = table.remove(words, 1), args = #words > 0 and words or nil })
  end)
end

---Adds a server to a config file: from the template with this name, else from a command line or URL. Without a name,
---the user picks a template.
---@param name? string
function M.add(name)
  client.fetch("mcp.templates", nil, function(result)
    local named = vim.iter(result.templates):find(function(template) return template.id == name end)
    if named then return write(named.id, named.config, named.inputs) end
    if name then return describe(name) end
    local other = { title = "other", description = "a command line or a URL" }
    windows.choose(vim.list_extend({ other }, result.templates), {
      prompt = "Add: ",
      kind = "mcp_template",
      format = function(template) return ("%s  %s"):format(template.title, template.description or "") end,
    }, function(template)
      type_in("Name of the server: ", template.id, function(server)
        if template == other then return describe(server) end
        write(server, template.config, template.inputs)
      end)
    end)
  end)
end

---@param server mcp_sidecar.ServerStatus
function M.remove(server)
  local question = ("Remove `%s` from the %s file?"):format(server.name, server.scope)
  if vim.fn.confirm(question, "&Keep\n&Remove", 1) == 2 then
    client.command("mcp.server.remove", { server = server.name, scope = server.scope })
  end
end

---Moves the definition of a server to another file.
---@param server mcp_sidecar.ServerStatus
function M.move(server)
  pick_scope(
    function(to) client.command("mcp.server.move", { server = server.name, from = server.scope, to = to }) end,
    server.scope
  )
end

---Continues with this program, or with one that the user picks.
local function with_program(program, prompt, done)
  if program then return done(program) end
  windows.choose(M.programs, { prompt = prompt }, done)
end

---The messages about each server, one per line.
---@param list? table<string, string|string[]>
---@param mark string
---@return string[]
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
        if #plan.imported == 0 then
          return windows.peek(#lines > 0 and lines or { "No servers found." }, "import from " .. program)
        end
        local names = table.concat(plan.imported, "`, `")
        local text = ("Import `%s`?\n%s"):format(names, table.concat(lines, "\n"))
        if vim.fn.confirm(text, "&No\n&Import", 1) ~= 2 then return end
        params.dryRun = nil
        client.fetch(
          "mcp.config.import",
          params,
          function() client.info(("imported `%s` into %s"):format(names, plan.path)) end
        )
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
      vim.bo.filetype = program == "codex" and "toml" or "jsonc"
      vim.bo.modified = false
      local lines = notes(result.notes, "note")
      if #lines > 0 then windows.peek(lines, "export for " .. program) end
    end)
  end)
end

return M
