local Child = require("child")

local project = [[{
  "servers": { "demo": { "command": "mcp-sidecar", "args": ["demo-server"], "color": "red" } }
}]]

return {
  {
    "a config file gets a client and diagnostics",
    function(open)
      local child = open({ project = project, args = { "mcp.json" } })
      child:wait("#vim.lsp.get_clients({ bufnr = 0, name = 'mcp_sidecar' }) == 1")
      child:wait(
        "vim.iter(vim.diagnostic.get(0)):any(function(each) return each.message:find('color', 1, true) end)",
        "a diagnostic about `color`"
      )
    end,
  },
  {
    "every file of a workspace with servers gets the client, other files do not",
    function(open)
      local child = open({ project = project, files = { ["notes.md"] = "hello\n" }, args = { "notes.md" } })
      child:wait("#vim.lsp.get_clients({ bufnr = 0, name = 'mcp_sidecar' }) == 1")
      local other = open({ files = { ["notes.md"] = "hello\n" }, args = { "notes.md" } })
      assert(other:lua("return package.loaded['mcp_sidecar.client'] == nil"))
    end,
  },
  {
    "code lenses are shown above each server, and the one at the cursor runs",
    function(open)
      local child = open({ user = Child.user_config, args = { "../config/mcp.json" } })
      child:connected("demo")
      child:wait(
        [[(function()
          local shown = {}
          for _, namespace in pairs(vim.api.nvim_get_namespaces()) do
            table.insert(shown, vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true }))
          end
          local text = vim.inspect(shown)
          return text:find("9 tools", 1, true) and text:find("Restart", 1, true)
        end)()]],
        "the lenses of the server"
      )
      local pid = child:lua("return require('mcp_sidecar.client').workspace().servers.demo.pid")
      child:choose("Restart")
      child:lua("vim.fn.search('demo')")
      child:lua("vim.lsp.codelens.run()")
      child:wait(("(require('mcp_sidecar.client').workspace().servers.demo.pid or %d) ~= %d"):format(pid, pid))
    end,
  },
  {
    "a code action of the workspace calls its tool with the selection after a question",
    function(open)
      local actions = [[{
        "actions": [{ "title": "Keep this", "tool": "mcp__demo__take_note", "arguments": { "text": "${selection}" } }]
      }]]
      local child = open({
        user = Child.user_config,
        project = actions,
        files = { ["notes.md"] = "milk and bread\n" },
        args = { "notes.md" },
      })
      child:connected("demo")
      child:choose("Keep this")
      child:lua("vim.lsp.buf.code_action({ range = { start = { 1, 0 }, ['end'] = { 1, 4 } } })")
      local prompt = child:prompt()
      assert(prompt:find("take_note", 1, true) and prompt:find("milk", 1, true), prompt)
    end,
  },
  {
    "starting loads nothing of the plugin",
    function(open)
      local child = open()
      local loaded = child:lua([[
        return vim.tbl_filter(function(name) return vim.startswith(name, "mcp_sidecar") end, vim.tbl_keys(package.loaded))
      ]])
      assert(#loaded == 0, table.concat(loaded, " "))
    end,
  },
  {
    "a missing binary is reported once, with what to do",
    function(open)
      local child = open({ project = project, options = "{ cmd = '/nowhere/mcp-sidecar' }", args = { "mcp.json" } })
      child:hears("cannot be executed")
      child:command("Mcp")
      child:sees("not running")
    end,
  },
  {
    "quitting leaves no process behind",
    function(open)
      local child = open({ user = Child.user_config })
      child:command("Mcp")
      child:connected("demo")
      local pid = child:lua("return require('mcp_sidecar.client').workspace().servers.demo.pid")
      local sidecar, running = child:sidecar(), child:processes()
      assert(running[pid] and running[sidecar], vim.inspect(running))
      child:quit()
      local gone = vim.wait(10000, function() return vim.uv.kill(pid, 0) ~= 0 and not next(child:processes()) end, 20)
      assert(gone, "outlived the editor: " .. vim.inspect(child:processes()))
    end,
  },
  {
    "quitting does not wait for a sidecar that hangs",
    function(open)
      local child = open({ user = Child.user_config })
      child:command("Mcp")
      child:connected("demo")
      local sidecar = child:sidecar()
      vim.uv.kill(sidecar, "sigstop")
      local channel = child.channel
      vim.rpcnotify(channel, "nvim_command", "qall!")
      local left = vim.fn.jobwait({ channel }, 5000)[1] ~= -1
      vim.uv.kill(sidecar, "sigkill")
      assert(left, "Neovim waits for the sidecar")
      child.channel = nil
    end,
  },
  {
    "the sidecar is restarted after a crash, but not after three crashes in a minute",
    function(open)
      local child = open({ user = Child.user_config })
      child:command("Mcp")
      for crash = 1, 3 do
        child:connected("demo")
        child:lua("before = vim.lsp.get_clients({ name = 'mcp_sidecar' })[1].id")
        vim.uv.kill(child:sidecar(), "sigkill")
        if crash < 3 then child:wait("vim.lsp.get_clients({ name = 'mcp_sidecar' })[1].id ~= before") end
      end
      child:hears("keeps crashing")
      child:command("Mcp up")
      child:connected("demo")
    end,
  },
  {
    "after a crash of the engine there is one message in one line, and everything runs again at once",
    function(open)
      local child = Child.ready(open)
      child:lua([[
        vim.o.columns = 80
        vim.notify = function(text)
          table.insert(notes, text)
          vim.api.nvim_echo({ { text } }, true, {})
        end
        require("mcp_sidecar").call("demo/countdown", { from = 60 }, nil, function(err) lost = err.message end)
      ]])
      child:wait("vim.g.mcp_sidecar_status.busy == 1")
      local engine = assert(child:engine(), vim.inspect(child:processes()))
      child:lua("before = vim.lsp.get_clients({ name = 'mcp_sidecar' })[1].id")
      vim.uv.kill(engine, "sigkill")
      child:wait("lost", "the call fails")
      child:wait("vim.lsp.get_clients({ name = 'mcp_sidecar' })[1].id ~= before")
      child:connected("demo")
      child:sees("9 tools")
      local notes = child:lua("return notes")
      assert(#notes == 1 and notes[1]:find("(a call was lost)", 1, true), table.concat(notes, "\n"))
      local mode = child:lua("return vim.api.nvim_get_mode()")
      assert(mode.mode == "n" and not mode.blocking, vim.inspect(mode))
    end,
  },
  {
    "the statusline tells a sidecar that is down from one without servers",
    function(open)
      local child = open()
      local function text() return child:lua("return require('mcp_sidecar.statusline').get()") end
      assert(text() == "", text())
      child:command("Mcp")
      child:wait("require('mcp_sidecar.statusline').get() == 'mcp no servers'")
      child:command("Mcp down")
      child:wait("require('mcp_sidecar.statusline').get() == 'mcp down'")
    end,
  },
  {
    "a server that crashes is restarted, and the dashboard shows it",
    function(open)
      local child = Child.ready(open)
      local pid = child:lua("return require('mcp_sidecar.client').workspace().servers.demo.pid")
      vim.uv.kill(pid, "sigkill")
      child:wait(("(require('mcp_sidecar.client').workspace().servers.demo.pid or %d) ~= %d"):format(pid, pid))
      child:connected("demo")
      child:sees("9 tools")
    end,
  },
  {
    "the help has every subcommand and option, and its tags are up to date",
    function(open)
      local child = open({ user = Child.user_config })
      child:command("Mcp")
      child:connected("demo")
      local missing = child:lua([[
        local doc = vim.api.nvim_get_runtime_file("doc/mcp-sidecar.txt", false)[1]
        local text = table.concat(vim.fn.readfile(doc), "\n")
        local words = require("mcp_sidecar.commands").names()
        vim.list_extend(words, vim.tbl_keys(require("mcp_sidecar.config").defaults))
        local missing = vim.tbl_filter(function(word) return not text:find("%f[%w]" .. word .. "%f[^%w_]") end, words)
        local old = table.concat(vim.fn.readfile(vim.fs.dirname(doc) .. "/tags"), "\n")
        local copy = vim.fn.tempname()
        vim.fn.mkdir(copy)
        vim.uv.fs_copyfile(doc, copy .. "/mcp-sidecar.txt")
        vim.cmd.helptags(copy)
        if table.concat(vim.fn.readfile(copy .. "/tags"), "\n") ~= old then
          table.insert(missing, "fresh doc/tags: run :helptags editors/nvim/doc")
        end
        return missing
      ]])
      assert(#missing == 0, table.concat(missing, ", "))
      child:command("help mcp-sidecar")
    end,
  },
  {
    "the root of the repository works as a plugin",
    function(open)
      local child = open()
      child:lua([[
        vim.g.loaded_mcp_sidecar = nil
        local root = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(vim.api.nvim_get_runtime_file("lsp/mcp_sidecar.lua", false)[1])))
        root = vim.fs.dirname(root)
        vim.opt.runtimepath = { root, vim.env.VIMRUNTIME }
        vim.cmd.runtime("plugin/mcp_sidecar.lua")
        assert(vim.g.loaded_mcp_sidecar and #vim.api.nvim_get_runtime_file("lsp/mcp_sidecar.lua", false) == 1)
      ]])
    end,
  },
}
