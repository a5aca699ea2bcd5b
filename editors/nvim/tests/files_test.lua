local Child = require("child")

local function read(path) return table.concat(vim.fn.readfile(path), "\n") end

local tests = {
  {
    "an open config file is changed in its buffer and saved, so that undo works",
    function(open)
      local project = '{\n  // mine\n  "servers": {}\n}'
      local child = Child.ready(open, { project = project, options = "{ auto_focus = false }" })
      child:keys("q")
      child:command("edit mcp.json")
      child:wait("#vim.lsp.get_clients({ bufnr = 0, name = 'mcp_sidecar' }) == 1")
      child:lua("vim.ui.input = function(_, done) done('mcp-sidecar demo-server') end")
      child:add("second", "project")
      child:wait("require('mcp_sidecar.client').workspace().servers.second ~= nil", "the server is known")
      child:wait("not vim.bo.modified")
      local text = read(child.workspace .. "/mcp.json")
      assert(text:find("second", 1, true) and text:find("// mine", 1, true), text)
      child:command("silent undo")
      assert(not child:text():find("second", 1, true), child:text())
    end,
  },
  {
    "an open config file with unsaved changes is not saved, and the user is told",
    function(open)
      local child = Child.ready(open, { project = '{\n  "servers": {}\n}' })
      child:keys("q")
      child:command("edit mcp.json")
      child:wait("#vim.lsp.get_clients({ bufnr = 0, name = 'mcp_sidecar' }) == 1")
      child:lua("vim.api.nvim_buf_set_lines(0, 0, 0, false, { '// not yet' })")
      child:lua("vim.ui.input = function(_, done) done('mcp-sidecar demo-server') end")
      child:add("second", "project")
      child:hears("changed but not saved")
      child:sees("second")
      assert(child:lua("return vim.bo.modified"))
      assert(not read(child.workspace .. "/mcp.json"):find("second", 1, true))
    end,
  },
  {
    "servers of another program are imported after a confirmation, and exported to a buffer",
    function(open)
      local cursor = '{ "mcpServers": { "theirs": { "command": "mcp-sidecar", "args": ["demo-server"] } } }'
      local child = Child.ready(open, { files = { [".cursor/mcp.json"] = cursor } })
      child:choose("local")
      child:lua("vim.fn.confirm = function(text) asked = text return 2 end")
      child:command("Mcp import cursor")
      child:hears("imported `theirs`")
      assert(child:lua("return asked"):find("theirs", 1, true))
      assert(read(child.workspace .. "/mcp.local.json"):find("demo-server", 1, true))
      child:command("Mcp export codex")
      child:sees("[mcp_servers.theirs]")
      assert(child:lua("return vim.bo.filetype") == "toml")
    end,
  },
  {
    "a template is added by name and moved to another file",
    function(open)
      local child = Child.ready(open)
      child:lua("vim.fn.confirm = function() return 2 end")
      child:command("Mcp remove demo")
      child:wait("require('mcp_sidecar.client').workspace().servers.demo == nil", "it is gone")
      child:add("demo", "user")
      child:connected("demo")
      child:choose("your personal config")
      child:command("Mcp move demo")
      child:wait("require('mcp_sidecar.client').workspace().servers.demo.scope == 'local'")
    end,
  },
  {
    "the inputs of a template are asked for when its server first starts",
    function(open)
      local child = Child.ready(open)
      child:add("brave-search", "user")
      child:hears("saved `brave-search`")
      local prompt = child:prompt()
      assert(prompt:find("`brave-search` needs `brave-api-key`", 1, true), prompt)
    end,
  },
  {
    "`:Mcp policy` and `:Mcp metrics` show their results",
    function(open)
      local child = Child.ready(open)
      child:command("Mcp policy demo/echo")
      child:sees("allow-session")
      child:keys("q")
      child:command("Mcp call demo/picture")
      child:sees("image/png")
      child:command("Mcp metrics demo")
      child:sees("1 calls, 0 errors")
    end,
  },
}

-- The form of a server is part of newer contracts.
if read(Child.repository .. "/docs/protocol.schema.json"):find('"mcp.server.form"', 1, true) then
  table.insert(tests, {
    "a form adds a server and asks for placeholders, and the same form edits it",
    function(open)
      local child = Child.ready(open)
      child:command("Mcp add npx")
      child:sees('"package": ""')
      child:keys("<CR>")
      child:wait("#vim.diagnostic.get(0) > 0")
      assert(not read(child.place .. "/config/mcp.json"):find("npx", 1, true))
      child:keys("q")
      child:command("Mcp edit demo")
      child:sees('"demo-server"')
      child:lua([[vim.cmd('%s/"demo-server"/"demo-server", "--loud"/')]])
      child:keys("<CR>")
      child:hears("saved `demo`")
      assert(read(child.place .. "/config/mcp.json"):find('"--loud"', 1, true))
    end,
  })
end
return tests
