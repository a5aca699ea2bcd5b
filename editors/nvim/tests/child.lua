--- A separate Neovim for each test, with a new workspace, the plugin and the built binary.
--- Tests wait for conditions, never for time.

---@class mcp_sidecar.Child
---@field place string
---@field workspace string
---@field channel? integer
local M = {}
M.__index = M

local plugin = vim.fs.dirname(vim.fs.dirname(vim.fn.fnamemodify(assert(debug.getinfo(1, "S")).source:sub(2), ":p")))
local binary = assert(vim.env.MCP_SIDECAR_BINARY, "MCP_SIDECAR_BINARY must be the path of the binary")

local function write(path, text)
  vim.fn.mkdir(vim.fs.dirname(path), "p")
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

-- Trusted, because it is the config file of the user.
M.user_config = [[{
  "servers": { "demo": { "command": "mcp-sidecar", "args": ["demo-server"] } },
  "policy": { "readOnly": "allow-session" }
}]]

M.binary, M.repository = binary, vim.fs.dirname(vim.fs.dirname(plugin))

---`beside` uses the workspace of another child. With `by_agent`, a known agent starts Neovim. `init` replaces the whole
---init.lua, and the binary is then not on the PATH.
---@param opts? { beside?: mcp_sidecar.Child, by_agent?: boolean, init?: (fun(place: string): string), user?: string, project?: string, options?: string, files?: table<string, string>, args?: string[] }
function M.new(opts)
  opts = opts or {}
  local place = opts.beside and opts.beside.place or vim.fn.tempname()
  for _, folder in ipairs({ "bin", "config", "state", "run", "xdg", "ws" }) do
    vim.fn.mkdir(place .. "/" .. folder, "p", "0700")
  end
  if not opts.init then vim.uv.fs_symlink(binary, place .. "/bin/mcp-sidecar") end
  if not opts.beside then write(place .. "/config/mcp.json", opts.user or "{}") end
  if opts.project then write(place .. "/ws/mcp.json", opts.project) end
  for path, text in pairs(opts.files or {}) do
    write(place .. "/ws/" .. path, text)
  end
  local notes = [[
    notes = {}
    vim.notify = function(text, level) table.insert(notes, text) end
    vim.notify_once = vim.notify
  ]]
  local usual = ([[
    vim.opt.runtimepath:prepend(%q)
    vim.g.mcp_sidecar = vim.tbl_extend("force", { cmd = "mcp-sidecar" }, %s)
  ]]):format(plugin, opts.options or "{}")
  write(place .. "/init.lua", notes .. (opts.init and opts.init(place) or usual))
  local self = setmetatable({ place = place, workspace = place .. "/ws" }, M)
  ---@type string[]
  local command = { vim.v.progpath, "--embed", "--headless", "-u", place .. "/init.lua", "-i", "NONE", "-n" }
  if opts.by_agent then
    write(place .. "/claude", '"$@"\nexit $?\n')
    command = vim.list_extend({ "sh", place .. "/claude" }, command)
  end
  self.channel = vim.fn.jobstart(vim.list_extend(command, opts.args or {}), {
    rpc = true,
    cwd = place .. "/ws",
    env = {
      PATH = place .. "/bin:" .. vim.env.PATH,
      MCP_SIDECAR_CONFIG_DIR = place .. "/config",
      MCP_SIDECAR_STATE_DIR = place .. "/state",
      MCP_SIDECAR_RUNTIME_DIR = place .. "/run",
      XDG_CONFIG_HOME = place .. "/xdg",
      XDG_DATA_HOME = place .. "/xdg",
      XDG_STATE_HOME = place .. "/xdg",
      XDG_CACHE_HOME = place .. "/xdg",
    },
  })
  self:request("nvim_ui_attach", 100, 30, vim.empty_dict())
  return self
end

---Copies what a plugin manager clones: no build is in it.
---@param to string
function M.copy_repository(to)
  vim.fn.mkdir(to .. "/editors", "p")
  for _, part in ipairs({ "plugin", "lua", "build.lua", "editors/nvim" }) do
    local done = vim.system({ "cp", "-R", M.repository .. "/" .. part, to .. "/" .. part }):wait()
    assert(done.code == 0, done.stderr)
  end
end

---@return any
function M:request(method, ...) return vim.rpcrequest(assert(self.channel), method, ...) end

---Runs Lua in the child.
---@return any
function M:lua(code, ...) return self:request("nvim_exec_lua", code, { ... }) end

function M:command(text) self:request("nvim_command", text) end

function M:keys(text) self:request("nvim_input", text) end

---Waits until an expression is true in the child, and returns its value.
function M:wait(expression, what)
  local value
  local ok = vim.wait(15000, function()
    value = self:lua("local ok, value = pcall(function() return " .. expression .. " end) return ok and value or nil")
    return value ~= nil and value ~= vim.NIL and value ~= false
  end, 20)
  if not ok then
    local screen = table.concat(self:lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"), "\n")
    local notes = table.concat(self:lua("return vim.tbl_map(tostring, notes)"), "\n")
    error(("never true: %s\n--- buffer\n%s\n--- messages\n%s"):format(what or expression, screen, notes), 2)
  end
  return value
end

---The text of the current buffer, or of the one with this name.
function M:text(name)
  local lines = self:lua("return vim.api.nvim_buf_get_lines(... and vim.fn.bufnr(...) or 0, 0, -1, false)", name)
  return table.concat(lines, "\n")
end

function M:sees(text)
  return self:wait(
    ("table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n'):find(%q, 1, true)"):format(text),
    text
  )
end

---The text of the screen, including virtual text and floats.
---@return string
function M:screen()
  return self:lua([[
    vim.cmd.redraw()
    local rows = {}
    for row = 1, vim.o.lines do
      local cells = {}
      for column = 1, vim.o.columns do
        table.insert(cells, vim.fn.screenstring(row, column))
      end
      table.insert(rows, table.concat(cells))
    end
    return table.concat(rows, "\n")
  ]])
end

---Waits until a text is on the screen.
function M:shows(text)
  local shown = vim.wait(15000, function() return self:screen():find(text, 1, true) ~= nil end, 20)
  if not shown then error(("`%s` is not on the screen:\n%s"):format(text, self:screen()), 2) end
end

---Waits for a message to the user.
function M:hears(text)
  return self:wait(
    ("table.concat(vim.tbl_map(tostring, notes), '\\n'):find(%q, 1, true)"):format(text),
    "message: " .. text
  )
end

---Waits until the server is connected.
function M:connected(server)
  self:wait(("require('mcp_sidecar.client').workspace().servers[%q].status == 'connected'"):format(server))
end

---The text of the approval prompt, when there is one.
function M:prompt()
  self:wait("require('mcp_sidecar.ui.approval').state().window ~= nil", "an approval prompt")
  return table.concat(
    self:lua("return vim.api.nvim_buf_get_lines(require('mcp_sidecar.ui.approval').state().buffer, 0, -1, false)"),
    "\n"
  )
end

---Waits until the keys of the prompt are alive, then presses one.
function M:answer(key)
  self:wait("require('mcp_sidecar.ui.approval').state().armed < vim.uv.now()")
  self:keys(key)
end

---Waits until the keys of the form are alive, then sends it.
function M:submit()
  self:wait("require('mcp_sidecar.ui.form').of(vim.api.nvim_get_current_buf()).ready < vim.uv.now()")
  self:keys("<CR>")
end

---The process of the sidecar. Not every version of the LSP client knows its id, so it is searched among the child
---processes.
function M:sidecar()
  local parent = self:lua("return vim.uv.os_getpid()")
  for _, process in ipairs(vim.api.nvim_get_proc_children(parent)) do
    local info = vim.api.nvim_get_proc(process)
    if info and info.name:find("mcp-sidecar", 1, true) then return process end
  end
  error("no sidecar is running")
end

---A file about a process; empty if the process has ended.
local function read(process, what)
  local file = io.open(("/proc/%s/%s"):format(process, what), "rb")
  local text = file and file:read("*a") or ""
  if file then file:close() end
  return text
end

---The process of the engine. Its guardians are copies of it, by another name.
---@return integer?
function M:engine()
  for process, line in pairs(self:processes()) do
    if line:find("^[^%z]*%zengine%z") and read(process, "comm") ~= "mcp-guardian\n" then return process end
  end
end

---Every running process of this child, including the editor: all of them have its folder in PATH.
---@return table<integer, string> command lines, by process
function M:processes()
  local found = {}
  for name in vim.fs.dir("/proc") do
    local process = tonumber(name)
    if process and read(process, "environ"):find(self.place, 1, true) then found[process] = read(process, "cmdline") end
  end
  return found
end

---Adds a server with `:Mcp add` to the file of a scope. Warnings of its form are confirmed.
function M:add(name, scope)
  self:command("Mcp add " .. name)
  self:wait("vim.api.nvim_buf_get_name(0):find('mcp-server://', 1, true)")
  self:lua([[vim.cmd(('%%s/"scope": "\\zs\\w*/%s/'):format(...))]], scope)
  self:keys("<CR>")
  local gone = "not vim.api.nvim_buf_get_name(0):find('mcp-server://', 1, true)"
  self:wait(gone .. " or table.concat(notes):find('see the warning', 1, true)", "it is saved, or warned about")
  if self:lua("return " .. gone) then return end
  self:keys("<CR>")
  self:wait(gone, "it is saved")
end

---A child with the demo server connected, in front of the dashboard.
function M.ready(open, opts)
  local child = open(vim.tbl_extend("force", { user = M.user_config }, opts or {}))
  child:command("Mcp")
  child:connected("demo")
  return child
end

---Calls a tool of the demo server that needs approval, as a plugin does.
function M:ask(text)
  self:lua(
    [[
    require("mcp_sidecar").call("demo/take_note", { text = ... }, { requester = "chat" }, function(err, result)
      answered = { err = err, result = result }
    end)
  ]],
    text or "hello"
  )
end

---The same as an agent does.
function M:ask_as_agent(text)
  self:lua(
    [[
    local params = { tool = "mcp__demo__take_note", arguments = { text = ... } }
    params.requester = { kind = "agent", name = "codex" }
    require("mcp_sidecar.client").command("mcp.tool.call", params, function(err, result)
      answered = { err = err, result = result }
    end)
  ]],
    text or "hello"
  )
end

---Connects a real agent, whose responses are in `said`, by id.
function M:agent()
  self:lua([[
    local rest = ""
    said = {}
    agent = vim.fn.jobstart({ "mcp-sidecar", "connect", "--name", "codex" }, {
      on_stdout = function(_, lines)
        lines[1] = rest .. lines[1]
        rest = table.remove(lines)
        for _, line in ipairs(lines) do
          local message = vim.json.decode(line)
          if not message.method then said[tostring(message.id)] = message end
        end
      end,
    })
    function say(message)
      message.jsonrpc = "2.0"
      vim.fn.chansend(agent, vim.json.encode(message) .. "\n")
    end
    local info = { name = "codex", version = "1" }
    local params = { protocolVersion = "2025-06-18", capabilities = vim.empty_dict(), clientInfo = info }
    say({ id = "hello", method = "initialize", params = params })
  ]])
  self:wait("said.hello ~= nil", "the agent connected")
  self:lua([[say({ method = "notifications/initialized" })]])
end

---Lets the agent call a tool.
function M:agent_calls(id, tool, arguments)
  self:lua(
    [[
    local id, tool, arguments = ...
    say({ id = id, method = "tools/call", params = { name = tool, arguments = arguments } })
  ]],
    id,
    tool,
    arguments
  )
end

---Replaces the picker: picks the first item whose text contains one of these words.
function M:choose(...)
  self:lua(
    [[
    local words = { ... }
    vim.ui.select = function(items, opts, done)
      for _, word in ipairs(words) do
        for place, item in ipairs(items) do
          if (opts.format_item or tostring)(item):find(word, 1, true) then return done(item, place) end
        end
      end
      done(nil)
    end
  ]],
    ...
  )
end

---Quits as a user does.
function M:quit()
  local channel = assert(self.channel)
  pcall(vim.rpcrequest, channel, "nvim_command", "qall!")
  vim.fn.jobwait({ channel }, 5000)
  self.channel = nil
end

function M:close()
  if self.channel then self:quit() end
  vim.fn.delete(self.place, "rf")
end

return M
