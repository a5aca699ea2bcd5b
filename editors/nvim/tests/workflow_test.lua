local Child = require("child")

local project = [[{
  "servers": { "theirs": { "command": "mcp-sidecar", "args": ["demo-server"] } }
}]]

return {
  {
    "a result is shown even if a plugin for its file type fails",
    function(open)
      local child = Child.ready(open)
      child:lua([[
        vim.api.nvim_create_autocmd("FileType", { pattern = "markdown", callback = function() error("broken") end })
      ]])
      child:command("Mcp call demo/roll_dice")
      child:wait("vim.api.nvim_buf_get_name(0) == 'mcp-call://demo/roll_dice'")
      child:sees('"count": 1')
      child:keys("<CR>")
      child:wait("vim.api.nvim_buf_get_name(0) == 'mcp-result://demo/roll_dice'")
      child:wait("vim.wo.winbar:find(' ms', 1, true)", "the whole result")
    end,
  },
  {
    "the dashboard shows servers and their tools with levels, and keeps the cursor on its row",
    function(open)
      local child = Child.ready(open)
      child:sees("9 tools")
      child:lua("vim.fn.search('demo')")
      child:keys("<Tab>")
      child:sees("take_note")
      local text = child:text()
      assert(text:find("require-approval", 1, true) and text:find("allow-session", 1, true), text)
      child:lua("vim.fn.search('echo')")
      child:ask()
      child:sees("Waiting for you")
      local line = child:lua("return vim.fn.getbufline('mcp-dashboard://workspace', vim.fn.line('.'))[1]")
      assert(line:find("echo", 1, true), line)
    end,
  },
  {
    "every view fits into 80 columns",
    function(open)
      local long = ("very "):rep(30)
      local child = Child.ready(open, {
        user = Child.user_config:gsub('"servers": {', ('"servers": { "broken": { "command": "%s" },'):format(long)),
      })
      child:request("nvim_ui_try_resize", 80, 24)
      child:ask(long)
      child:wait("require('mcp_sidecar.client').workspace().servers.broken.status == 'failed'")
      child:lua("require('mcp_sidecar.ui.dashboard').open('servers', nil, 'broken')")
      child:lua("require('mcp_sidecar.ui.dashboard').open('servers', nil, 'demo')")
      child:sees("take_note")
      for view = 1, 7 do
        child:keys(tostring(view))
        child:wait(("vim.wo.winbar:find('McpKey# %d%%#McpTitle#', 1, true)"):format(view))
        local widest = child:lua([[
          return vim.iter(vim.api.nvim_buf_get_lines(0, 0, -1, false)):map(vim.fn.strdisplaywidth):fold(0, math.max)
        ]])
        assert(widest <= 80, ("view %d is %d wide:\n%s"):format(view, widest, child:text()))
      end
      child:keys("?")
      child:shows("revoke all grants")
      child:shows("servers, tools, approvals, calls, grants, log")
    end,
  },
  {
    "a key stops, starts or restarts a server",
    function(open)
      local child = Child.ready(open)
      child:lua("vim.fn.search('demo')")
      child:keys("s")
      child:wait("require('mcp_sidecar.client').workspace().servers.demo.status == 'stopped'")
      child:sees("stopped")
      child:keys("s")
      child:connected("demo")
      local pid = child:lua("return require('mcp_sidecar.client').workspace().servers.demo.pid")
      child:keys("r")
      child:wait(("require('mcp_sidecar.client').workspace().servers.demo.pid ~= %d"):format(pid))
    end,
  },
  {
    "an approval is answered with a key, and the call continues",
    function(open)
      local child = Child.ready(open)
      child:ask()
      local prompt = child:prompt()
      assert(prompt:find("plugin `chat`", 1, true) and prompt:find('text: "hello"', 1, true), prompt)
      child:command("Mcp approve")
      child:answer("y")
      child:wait("answered and answered.result.isError == false")
      child:wait("require('mcp_sidecar.ui.approval').state().window == nil", "the prompt closed")
    end,
  },
  {
    "a user in insert mode keeps the focus, and the typed text is not an answer",
    function(open)
      local child = Child.ready(open, { files = { ["notes.md"] = "" } })
      child:command("edit notes.md")
      child:keys("isaying y")
      child:ask()
      child:prompt()
      child:keys("yyy")
      child:wait("vim.api.nvim_get_current_line():find('yyy', 1, true)")
      assert(child:lua("return answered == nil and vim.api.nvim_get_mode().mode == 'i'"))
    end,
  },
  {
    "keys are dead after the prompt appears, <CR> does nothing, and hiding it is not an answer",
    function(open)
      local child = Child.ready(open)
      child:ask()
      child:prompt()
      child:lua("require('mcp_sidecar.ui.approval').focus()")
      child:keys("y")
      child:wait("require('mcp_sidecar.ui.approval').state().armed < vim.uv.now()")
      child:keys("<CR>")
      child:keys("q")
      child:wait("require('mcp_sidecar.ui.approval').state().window == nil", "the prompt hidden")
      assert(child:lua("return answered == nil and #require('mcp_sidecar.client').workspace().approvals == 1"))
      child:command("Mcp approve")
      child:answer("n")
      child:wait("answered and answered.err.data.kind == 'denied'")
    end,
  },
  {
    "each question in the queue gets its own answer",
    function(open)
      local child = Child.ready(open)
      child:ask("first")
      child:wait("#require('mcp_sidecar.client').workspace().approvals == 1")
      child:ask("second")
      child:wait("#require('mcp_sidecar.client').workspace().approvals == 2")
      child:command("Mcp approve")
      assert(child:prompt():find("first", 1, true))
      child:answer("y")
      child:wait("#require('mcp_sidecar.client').workspace().approvals == 1")
      child:wait("vim.api.nvim_buf_get_lines(require('mcp_sidecar.ui.approval').state().buffer, 0, -1, false)[6]")
      assert(child:prompt():find("second", 1, true))
    end,
  },
  {
    "a server of a project starts only after its command was shown and trusted",
    function(open)
      local child = open({ project = project })
      child:command("Mcp")
      child:wait("require('mcp_sidecar.client').workspace().servers.theirs.needsTrust")
      local prompt = child:prompt()
      assert(prompt:find("mcp-sidecar demo-server", 1, true), prompt)
      child:command("Mcp trust theirs")
      child:answer("ap")
      child:connected("theirs")
      local changed = project:gsub('%["demo%-server"%]', '["demo-server"], "env": { "LEVEL": "9" }')
      vim.fn.writefile(vim.split(changed, "\n"), child.workspace .. "/mcp.json")
      child:wait("require('mcp_sidecar.client').workspace().approvals[1].diff", "the difference")
      assert(child:prompt():find("what changed", 1, true))
    end,
  },
  {
    "a form made from the schema shows errors and calls the tool",
    function(open)
      local child = Child.ready(open)
      child:command("Mcp call demo/roll_dice")
      child:wait("vim.api.nvim_buf_get_name(0) == 'mcp-call://demo/roll_dice'")
      child:sees('"count": 1')
      child:lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { '{', '  \"count\": 1,', '  \"sides\": 1', '}' })")
      child:keys("<CR>")
      child:wait("vim.diagnostic.get(0)[1].lnum == 2")
      child:shows("1 is less than the minimum of 2")
      child:lua("vim.api.nvim_buf_set_lines(0, 2, 3, false, { '  \"sides\": 2' })")
      child:command("write")
      child:wait("vim.api.nvim_buf_get_name(0) == 'mcp-result://demo/roll_dice'")
      child:wait("vim.wo.winbar:find('roll_dice', 1, true)")
    end,
  },
  {
    "a running call shows progress and is cancelled with <C-c>",
    function(open)
      local child = Child.ready(open)
      child:command("Mcp call demo/countdown")
      child:sees('"from": 10')
      child:keys("<CR>")
      child:wait("vim.wo.winbar:find('running', 1, true)")
      child:wait("vim.wo.winbar:find('%%', 1, true) or vim.wo.winbar:find('of', 1, true)", "progress")
      child:keys("<C-c>")
      child:hears("cancelled")
    end,
  },
  {
    "a selection fills the first text field, and the result is inserted or replaces it",
    function(open)
      local child = Child.ready(open, { files = { ["notes.md"] = "one\ntwo\n" } })
      child:command("edit notes.md")
      child:command("1,1Mcp call demo/echo")
      child:sees('"text": "one"')
      child:keys("<CR>")
      child:wait("vim.api.nvim_buf_get_name(0) == 'mcp-result://demo/echo'")
      child:keys("I")
      child:wait("vim.deep_equal(vim.fn.getbufline('notes.md', 1, '$'), { 'one', 'one', 'two' })")
      child:lua("vim.fn.setbufline('notes.md', 1, 'changed')")
      child:keys("R")
      child:wait("vim.deep_equal(vim.fn.getbufline('notes.md', 1, '$'), { 'one', 'one', 'two' })")
    end,
  },
  {
    "an image is saved in a file that only the user can read",
    function(open)
      local child = Child.ready(open)
      child:command("Mcp call demo/picture")
      child:sees("![image/png](")
      local path = child:text():match("%]%((.-)%)")
      local stat = assert(vim.uv.fs_stat(path), path)
      assert(stat.mode % 512 == tonumber("600", 8), stat.mode)
    end,
  },
  {
    "a link of a server opens a saved file only by the exact name that it was saved with",
    function(open)
      local child = Child.ready(open)
      child:lua("vim.ui.open = function(target) opened = target end")
      child:command("Mcp call demo/picture")
      child:sees("![image/png](")
      local path = child:text():match("%]%((.-)%)")
      local folder = vim.fs.dirname(path)
      local function follow(target)
        local result =
          { server = "demo", tool = "evil", content = { { type = "text", text = ("[a](%s)"):format(target) } } }
        child:lua(
          [[opened, notes = nil, {}
          require("mcp_sidecar.ui.result").show(..., { buffer = 0, window = 0 })]],
          vim.tbl_extend("force", result, { decision = "allowed", isError = false, durationMs = 1 })
        )
        child:keys("gf")
        child:wait("opened or #notes > 0")
        return child:lua("return opened")
      end
      assert(follow(path) == path)
      for _, target in ipairs({
        folder .. "/../../init.lua",
        folder .. "/./../../ws/run.desktop",
        path .. "/../../../init.lua",
        folder .. "//etc/passwd",
        folder .. "/sub/" .. vim.fs.basename(path),
        folder .. "/0123456789abcdef.desktop",
        folder .. "/..",
        path .. "\0.sh",
        folder .. "/" .. ("a"):rep(5000) .. ".png",
        "/etc/passwd",
        "file://" .. path,
      }) do
        assert(follow(target) == vim.NIL, target)
      end
    end,
  },
  {
    "a media type of a server cannot add lines or links",
    function(open)
      local child = Child.ready(open)
      local function keep(mime)
        return child:lua("return require('mcp_sidecar.ui.result').keep(vim.base64.encode('x'), ...)", mime)
      end
      local path = keep("image/png")[1]:match("^!%[image/png%]%((.*%.png)%)$")
      for _, mime in ipairs({
        "image/png\n[a](https://evil.test)",
        "../../x](https://evil.test)",
        "image/\0png",
        ("a"):rep(5000),
      }) do
        local lines = keep(mime)
        assert(#lines == 1 and not lines[1]:find("[%z\n]") and #lines[1] < 500, vim.inspect(lines))
        assert(lines[1]:match("^!%[[^%]]*%]%((.*)%.%l+%)$") == path:match("(.*)%.png$"), lines[1])
      end
    end,
  },
  {
    "a resource is a read-only buffer that is updated when it changes",
    function(open)
      local child = Child.ready(open)
      child:ask("remember the milk")
      child:prompt()
      child:command("Mcp approve")
      child:answer("y")
      child:wait("answered")
      child:command("new")
      child:command("edit mcp://demo/demo://notes")
      child:sees("remember the milk")
      assert(child:lua("return not vim.bo.modifiable and vim.bo.buftype == 'nofile'"))
      child:lua("answered = nil")
      child:ask("and the bread")
      child:prompt()
      child:command("Mcp approve")
      child:answer("y")
      child:wait("answered")
      child:command("wincmd p")
      child:wait(
        "table.concat(vim.fn.getbufline(vim.fn.bufnr('mcp://demo/demo://notes'), 1, '$')):find('the bread', 1, true)"
      )
    end,
  },
  {
    "the argument of a prompt is completed by its server, and its text is inserted",
    function(open)
      local child = Child.ready(open, { files = { ["notes.md"] = "" } })
      child:command("edit notes.md")
      child:choose("")
      child:command("Mcp prompts demo/greet")
      child:wait("vim.api.nvim_buf_line_count(0) > 1")
    end,
  },
  {
    "the answer to an elicitation reaches the server",
    function(open)
      local child = Child.ready(open)
      child:lua("vim.ui.input = function(_, done) done('Ada') end")
      child:command("Mcp call demo/ask_name")
      assert(child:prompt():find("`demo` asks you", 1, true))
      child:command("Mcp approve")
      child:answer("f")
      child:sees("Ada")
    end,
  },
  {
    "a server written in Lua is called through the sidecar",
    function(open)
      local child = open({ files = { ["notes.md"] = "" } })
      child:lua([[
        require("mcp_sidecar").server("mine", { tools = { shout = {
          description = "Says it louder",
          annotations = { readOnlyHint = true },
          input = { type = "object", properties = { text = { type = "string" } }, required = { "text" } },
          run = function(arguments) return arguments.text:upper() end,
        } } })
      ]])
      child:command("Mcp")
      child:connected("mine")
      child:lua([[
        require("mcp_sidecar").call("mine/shout", { text = "hey" }, nil, function(err, result)
          answered = { err = err, result = result }
        end)
      ]])
      child:prompt()
      child:command("Mcp approve")
      child:answer("y")
      child:wait("answered.result.content[1].text == 'HEY'")
    end,
  },
  {
    "the server `nvim` lists the open files",
    function(open)
      local child =
        open({ options = "{ editor_server = true }", files = { ["notes.md"] = "milk\n" }, args = { "notes.md" } })
      child:command("Mcp")
      child:connected("nvim")
      child:lua([[
        require("mcp_sidecar").call("nvim/buffers", nil, nil, function(_, result) answered = result end)
      ]])
      child:prompt()
      child:command("Mcp approve")
      child:answer("y")
      assert(child:wait("answered.structuredContent.buffers[1].path"):find("notes.md", 1, true))
    end,
  },
  {
    "calls, grants and logs have views, and a key revokes a grant",
    function(open)
      local child = Child.ready(open)
      child:ask()
      child:prompt()
      child:command("Mcp approve")
      child:answer("as")
      child:wait("answered")
      child:command("Mcp calls")
      child:sees("demo/take_note")
      child:keys("5")
      child:sees("x revoke")
      child:lua("vim.fn.search('take_note')")
      child:keys("x")
      child:sees("no lasting answers")
      child:keys("6")
      child:sees("Log")
    end,
  },
  {
    "subcommands, servers and tools are completed",
    function(open)
      local child = Child.ready(open)
      local names = child:lua("return vim.fn.getcompletion('Mcp re', 'cmdline')")
      assert(vim.tbl_contains(names, "restart") and vim.tbl_contains(names, "reload"), vim.inspect(names))
      assert(vim.deep_equal(child:lua("return vim.fn.getcompletion('Mcp logs de', 'cmdline')"), { "demo" }))
      local tools = child:lua("return vim.fn.getcompletion('Mcp call demo/e', 'cmdline')")
      assert(vim.deep_equal(tools, { "demo/echo" }), vim.inspect(tools))
    end,
  },
  {
    "the health report shows the binary, the workspace and the servers",
    function(open)
      local child = Child.ready(open)
      child:command("checkhealth mcp_sidecar")
      local report = child:text()
      assert(report:find("protocol 1", 1, true) and report:find("demo: connected", 1, true), report)
      assert(not report:find("ERROR", 1, true), report)
    end,
  },
  {
    "the statusline shows the number of connected servers",
    function(open)
      local child = Child.ready(open)
      child:wait("vim.g.mcp_sidecar_status.connected == 1")
      assert(child:lua("return require('mcp_sidecar.statusline').get()") == "mcp 1")
    end,
  },
  {
    "a question of another workspace can be answered",
    function(open)
      local child = Child.ready(open, { files = { ["other/mcp.json"] = project } })
      child:lua("require('mcp_sidecar.client').start(...)", child.workspace .. "/other")
      local prompt = child:prompt()
      assert(prompt:find("Trust the server `theirs`", 1, true), prompt)
      child:command("Mcp approve")
      child:answer("y")
      child:wait("require('mcp_sidecar.ui.approval').state().window == nil", "the prompt closed")
    end,
  },
  {
    "a secret input is asked for and never shown",
    function(open)
      local child = open({
        user = [[{
          "servers": { "demo": { "command": "mcp-sidecar", "args": ["demo-server"], "env": { "KEY": "${input:key}" } } },
          "inputs": [{ "id": "key", "type": "promptString", "description": "API key", "password": true }]
        }]],
      })
      child:command("Mcp")
      assert(child:prompt():find("`demo` needs `key`", 1, true))
      child:command("Mcp approve")
      child:answer("f")
      child:keys("hush-hush<CR>")
      child:connected("demo")
      local screen = child:screen()
      assert(not screen:find("hush", 1, true), screen)
    end,
  },
  {
    "a server in Lua can be added after the sidecar has started",
    function(open)
      local child = Child.ready(open)
      child:lua([[
        require("mcp_sidecar").server("late", { tools = { now = { description = "Tells the time", run = os.date } } })
      ]])
      child:connected("late")
      child:connected("demo")
    end,
  },
  {
    "special characters in the name of a server break no window",
    function(open)
      local child =
        open({ user = [[{ "servers": { "a-[b]%l": { "command": "nope" }, "gone": { "command": "nope-nope" } } }]] })
      child:command("Mcp")
      child:wait("require('mcp_sidecar.client').workspace().servers.gone.status == 'failed'")
      child:sees("gone")
      child:sees("nope-nope")
      child:lua("vim.fn.search('gone')")
      child:keys("l")
      child:wait("vim.api.nvim_buf_get_name(0) == 'mcp-log://gone'")
      child:keys("q")
      child:keys("g?")
    end,
  },
  {
    "an answer that was overtaken by a notification changes no server back",
    function(open)
      local child = Child.ready(open)
      child:connected("demo")
      local seen = child:lua([[
        local client, workspaces = require("mcp_sidecar.client"), require("mcp_sidecar.workspaces")
        local command, answer = client.command, nil
        client.command = function(name, params, done, opts)
          if name ~= "mcp.servers" then return command(name, params, done, opts) end
          answer = done
        end
        client.refresh()
        client.command = command
        local old = vim.deepcopy(client.workspace().servers.demo)
        old.status, old.latencyMs = "pending", 7
        answer(nil, { servers = { old } })
        return { client.workspace().servers.demo.status, client.workspace().servers.demo.latencyMs }
      ]])
      assert(vim.deep_equal(seen, { "connected", 7 }), vim.inspect(seen))
    end,
  },
  {
    "no deprecated function is used",
    function(open)
      local child = Child.ready(open)
      child:command("Mcp call demo/echo")
      child:sees('"text"')
      child:keys("<CR>")
      child:wait("vim.api.nvim_buf_get_name(0) == 'mcp-result://demo/echo'")
      child:command("messages clear")
      child:command("checkhealth vim.deprecated")
      local report = child:text()
      assert(not report:find("mcp_sidecar", 1, true), report)
    end,
  },
  {
    "code lenses and code actions open the windows of the plugin",
    function(open)
      local child = Child.ready(open, { files = { ["notes.md"] = "one\ntwo\n" } })
      child:keys("q")
      child:command("edit notes.md")
      local run = [[
        local name, params = ...
        require("mcp_sidecar.client").current().config.commands[name]({ command = name, arguments = { params } }, {})
      ]]
      child:lua(run, "mcp.servers", { server = "demo" })
      child:sees("take_note")
      assert(child:lua("return vim.api.nvim_get_current_line()"):find("demo", 1, true))
      child:choose("demo/echo")
      local at = { line = 1, character = 0 }
      child:lua(
        run,
        "mcp.action.run",
        { uri = vim.uri_from_fname(child.workspace .. "/notes.md"), range = { start = at, ["end"] = at } }
      )
      child:sees('"text": "two"')
    end,
  },
  {
    "a key sets the level of a tool",
    function(open)
      local child = Child.ready(open)
      child:lua("vim.fn.search('demo')")
      child:keys("<Tab>")
      child:sees("take_note")
      child:lua([[
        vim.ui.select = function(items, _, done)
          done(vim.tbl_contains(items, "deny") and "deny" or vim.tbl_contains(items, "user") and "user" or items[1])
        end
        vim.fn.search("take_note")
      ]])
      child:keys("a")
      child:wait("vim.api.nvim_get_current_line():find('deny', 1, true)")
    end,
  },
  {
    "a server is added to a file, disabled and removed",
    function(open)
      local child = Child.ready(open)
      child:lua([[
        vim.ui.input = function(_, done) done("mcp-sidecar demo-server") end
        vim.fn.confirm = function() return 2 end
      ]])
      child:add("second", "user")
      child:connected("second")
      child:lua("vim.fn.search('second')")
      child:keys("E")
      child:wait("require('mcp_sidecar.client').workspace().servers.second.status == 'disabled'")
      child:keys("D")
      child:wait("require('mcp_sidecar.client').workspace().servers.second == nil", "it is gone")
    end,
  },
  {
    "two editors share the servers of a workspace, and either one can answer a question",
    function(open)
      local child = Child.ready(open)
      local other = open({ beside = child })
      other:command("Mcp")
      other:connected("demo")
      local pid = "return require('mcp_sidecar.client').workspace().servers.demo.pid"
      assert(child:lua(pid) == other:lua(pid), "each editor has its own server")
      local servers = vim.tbl_filter(
        function(words) return words:find("demo-server", 1, true) ~= nil end,
        child:processes()
      )
      servers = vim.tbl_values(servers)
      assert(#servers == 1, vim.inspect(servers))
      child:ask()
      child:prompt()
      assert(other:prompt():find("plugin `chat`", 1, true))
      other:command("Mcp approve")
      other:answer("y")
      child:wait("answered.result")
      child:wait("require('mcp_sidecar.ui.approval').state().window == nil", "the prompt closed")
      child:hears("“Allow once”, by the user in Neovim (process ")
    end,
  },
}
