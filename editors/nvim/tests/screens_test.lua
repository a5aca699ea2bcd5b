-- What the dashboard shows and offers, and where windows open.
local Child = require("child")

local function rows(child) return child:text("mcp-dashboard://workspace") end

---Puts the cursor on the first line with this text.
local function on(child, text)
  child:sees(text)
  child:lua("vim.fn.cursor(1, 1) assert(vim.fn.search(..., 'cW') > 0)", text)
end

local function completions(child, line) return child:lua("return vim.fn.getcompletion(..., 'cmdline')", line) end

---The number of windows that are not floats.
local function windows(child)
  return child:lua([[
    return #vim.tbl_filter(function(window)
      return vim.api.nvim_win_get_config(window).relative == ""
    end, vim.api.nvim_tabpage_list_wins(0))
  ]])
end

local function call(child, tool, field, value)
  child:command("Mcp call demo/" .. tool)
  child:wait(("vim.api.nvim_buf_get_name(0) == 'mcp-call://demo/%s'"):format(tool))
  child:lua(
    [[
    local field, value = ...
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { "{", ('"%s": %s'):format(field, value), "}" })
  ]],
    field,
    value
  )
  child:keys("<CR>")
  child:wait(("vim.api.nvim_buf_get_name(0) == 'mcp-result://demo/%s'"):format(tool))
end

return {
  {
    "`:Mcp level` writes to the file that defines the server, and completes tools, levels and places",
    function(open)
      local child = Child.ready(open)
      child:command("Mcp level demo/echo deny")
      child:hears("`demo/echo` is now deny (user)")
      local text = table.concat(vim.fn.readfile(child.place .. "/config/mcp.json"), "\n")
      assert(text:find('"echo": "deny"', 1, true), text)
      assert(vim.list_contains(completions(child, "Mcp level demo/ec"), "demo/echo"))
      assert(vim.deep_equal(completions(child, "Mcp level demo/echo den"), { "deny" }))
      assert(vim.deep_equal(completions(child, "Mcp level demo/echo deny "), { "user", "session" }))
      assert(vim.list_contains(completions(child, "Mcp add file"), "filesystem"))
      assert(vim.deep_equal(completions(child, "Mcp prompts "), { "demo/greet" }))
      assert(#completions(child, "Mcp add filesystem ") == 0)
    end,
  },
  {
    "the dashboard offers only places where a level can be set",
    function(open)
      local child = Child.ready(open)
      child:lua("vim.fn.search('demo')")
      child:keys("<Tab>")
      on(child, "echo")
      child:lua([[
        offered = {}
        vim.ui.select = function(items, opts, done)
          table.insert(offered, vim.tbl_map(opts.format_item or tostring, items))
          done(items[1])
        end
      ]])
      child:keys("a")
      child:wait("#offered == 2")
      local places = child:lua("return offered[2]")
      assert(vim.deep_equal(places, { "in your user config", "until mcp-sidecar stops" }), vim.inspect(places))
      child:wait(
        "table.concat(vim.fn.readfile(vim.env.MCP_SIDECAR_CONFIG_DIR .. '/mcp.json')):find('disable', 1, true)"
      )
    end,
  },
  {
    "resources and prompts are in the tree, and <CR> opens and inserts them",
    function(open)
      local child = Child.ready(open)
      child:lua("vim.fn.search('demo')")
      child:keys("<Tab>")
      child:sees("demo://notes")
      child:sees("greet")
      assert(rows(child):find("resource", 1, true) and rows(child):find("prompt", 1, true), rows(child))
      on(child, "demo://notes")
      child:keys("<CR>")
      child:wait("vim.api.nvim_buf_get_name(0) == 'mcp://demo/demo://notes'")
      child:command("Mcp")
      child:choose("French")
      on(child, "Asks for a greeting")
      child:keys("<CR>")
      child:wait("table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false)):find('Bonjour', 1, true)")
    end,
  },
  {
    "servers that failed come first",
    function(open)
      local child = Child.ready(open, {
        user = [[{ "servers": {
          "demo": { "command": "mcp-sidecar", "args": ["demo-server"] },
          "asleep": { "command": "mcp-sidecar", "enabled": false },
          "zebra": { "command": "no-such-program" }
        } }]],
      })
      child:sees("was not found on the PATH")
      local text = rows(child)
      local failed, good, off = text:find("zebra"), text:find("demo"), text:find("asleep")
      assert(failed < good and good < off, text)
    end,
  },
  {
    "a broken config file is reported in the dashboard, and <CR> goes to the error",
    function(open)
      local child = open({ project = '{\n  "servers": {\n    "a": { "command" "x" }\n  }\n}\n' })
      child:command("Mcp")
      child:sees("Errors in config files")
      child:sees("mcp.json:3")
      assert(rows(child):find("no servers: fix the file above", 1, true), rows(child))
      assert(not rows(child):find("no servers yet", 1, true))
      on(child, "mcp.json:3")
      child:keys("<CR>")
      child:wait("vim.fs.basename(vim.api.nvim_buf_get_name(0)) == 'mcp.json' and vim.fn.line('.') == 3")
      child:lua([[vim.fn.setline(3, '    "a": { "command": "x" }') vim.cmd.write()]])
      child:command("Mcp")
      child:wait("not table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false)):find('Errors in config', 1, true)")
    end,
  },
  {
    "`gx` asks before it revokes every lasting answer",
    function(open)
      local child = Child.ready(open)
      child:ask()
      child:prompt()
      child:command("Mcp approve")
      child:answer("a")
      child:keys("p")
      child:wait("answered.result")
      child:command("Mcp grants")
      child:sees("take_note")
      child:lua("vim.fn.confirm = function(text) asked = text return 1 end")
      child:keys("gx")
      child:wait("asked == 'Revoke your lasting answer?'")
      child:lua("vim.fn.confirm = function() return 2 end")
      child:sees("take_note")
      child:keys("gx")
      child:sees("no lasting answers")
    end,
  },
  {
    "a result replaces the last one; in a narrow screen it replaces the form, which `e` opens again",
    function(open)
      local child = Child.ready(open)
      child:command("Mcp level demo/echo allow-always")
      local before = windows(child)
      call(child, "echo", "text", '"one"')
      assert(windows(child) == before + 2, "the form and its result are side by side")
      call(child, "add", "a", '1, "b": 2')
      assert(windows(child) == before + 2, child:screen())
      child:command("only")
      child:lua("vim.o.columns = 80")
      call(child, "echo", "text", '"two"')
      assert(windows(child) == 1, child:screen())
      child:keys("e")
      child:wait("vim.api.nvim_buf_get_name(0) == 'mcp-call://demo/echo'")
      child:sees('"text": "two"')
      assert(windows(child) == 1, child:screen())
    end,
  },
  {
    "windows open as the option says",
    function(open)
      for option, check in pairs({
        vsplit = "vim.api.nvim_win_get_width(0) < vim.o.columns",
        tab = "#vim.api.nvim_list_tabpages() == 2",
        float = "vim.api.nvim_win_get_config(0).relative == 'editor'",
      }) do
        local child = Child.ready(open, { options = ('{ window = "%s" }'):format(option) })
        child:sees("9 tools")
        assert(child:lua("return " .. check), option)
        child:command("Mcp call demo/echo")
        child:sees('"text"')
        assert(child:lua("return " .. check), option)
        child:keys("q")
        child:wait("vim.api.nvim_buf_get_name(0) == 'mcp-dashboard://workspace'", option)
      end
      local child = open({ options = '{ window = "pane" }' })
      local problems = child:lua("return require('mcp_sidecar.config').problems()")
      assert(problems[1] == "vim.g.mcp_sidecar.window must be one of split, vsplit, tab, float", problems[1])
    end,
  },
  {
    "floats have the border of 'winborder'",
    function(open)
      local child = Child.ready(open)
      if child:lua("return vim.fn.exists('+winborder')") == 0 then return end
      local function corner() return child:lua("return vim.api.nvim_win_get_config(0).border[1]") end
      for border, first in pairs({ [""] = "╭", double = "╔", none = " " }) do
        child:command("set winborder=" .. border)
        child:keys("?")
        child:wait("vim.api.nvim_win_get_config(0).relative ~= ''")
        local shown = corner()
        assert((type(shown) == "table" and shown[1] or shown) == first, vim.inspect(shown))
        child:keys("q")
        child:wait("vim.api.nvim_win_get_config(0).relative == ''")
      end
      child:command("set winborder=double")
      child:ask()
      child:prompt()
      child:shows("╔")
    end,
  },
  {
    "at 80 columns nothing that matters is cut: what an answer did, that there is more to read, and keys",
    function(open)
      local child = open()
      child:lua("vim.o.columns, vim.o.lines = 80, 24")
      local function said(effect, short, undo)
        local text = child:lua(
          [[return require("mcp_sidecar.ui.question").confirmation(..., true)]],
          { effect = effect, shortEffect = short, undo = undo }
        )
        assert(vim.api.nvim_strwidth(text) <= 61, text)
        return text
      end
      local grants = { command = "mcp.grants", arguments = vim.empty_dict(), title = "Revoke" }
      local allowed = "is allowed in this project."
      local text = said("The tool `take_note` of `demo` " .. allowed, "`take_note` " .. allowed, grants)
      assert(text == "`take_note` is allowed in this project. Undo: `:Mcp grants`", text)
      local distrust =
        { command = "mcp.server.trust", arguments = { server = "demo", trusted = false }, title = "Revoke" }
      local trusted = "`demo` is trusted in this project"
      text = said(("The server %s until its definition changes."):format(trusted), trusted .. ".", distrust)
      assert(text == "`demo` is trusted in this project. Undo: `:Mcp distrust demo`", text)
      text = child:lua([[
        local asked = { kind = "trust", server = "demo", answers = {}, members = { {}, {}, {}, {} } }
        local opts = { focused = true, replaced = true, dead = false, marked = false, more = 3, cut = 19 }
        local title = require("mcp_sidecar.ui.frame").of(asked, opts, 76).title
        return vim.iter(title):map(function(chunk) return chunk[1] end):join("")
      ]])
      assert(text:find("19 more lines: scroll", 1, true), text)
      child:lua([[
        local keys = { { "<CR>", "call" }, { "<Tab>", "choose" }, { "?", "help" } }
        local notes = { { "  require-approval", "McpMuted" } }
        vim.wo.winbar = require("mcp_sidecar.ui.windows").winbar({ { " files › it's 100%", "McpTool" } }, keys, notes)
      ]])
      child:shows("files › it's 100%  require-approval")
      child:lua("vim.o.columns = 50")
      child:shows("files › it's 100%  <CR> call")
      child:shows("<CR> call <Tab> choose ? help")
    end,
  },
  {
    "lists to pick from have columns, and results do not repeat themselves",
    function(open)
      local child = open()
      local lines = child:lua([[
        local shown = {}
        vim.ui.select = function(items, opts) shown = vim.tbl_map(opts.format_item, items) end
        local format = function(item) return item, "what it is" end
        require("mcp_sidecar.ui.windows").choose({ "a", "longer" }, { prompt = "", format = format }, function() end)
        return shown
      ]])
      assert(vim.deep_equal(lines, { "a       what it is", "longer  what it is" }), vim.inspect(lines))
      local function rendered(text, structured)
        local content = { { type = "text", text = text } }
        local result = { server = "s", content = content, structuredContent = structured }
        return child:lua("return (require('mcp_sidecar.ui.result').render(...))", result)
      end
      assert(vim.deep_equal(rendered("one\ntwo", { content = "one\ntwo\n" }), { "one", "two" }))
      assert(#rendered("one", { content = "one", more = 1 }) > 1)
    end,
  },
  {
    "a test of a server shows how long it took",
    function(open)
      local child = Child.ready(open)
      child:command("Mcp test demo")
      child:wait("vim.api.nvim_win_get_config(0).relative ~= '' and vim.fn.getline(1):find(', in %d+[.%d]* m?s')")
    end,
  },
  {
    "a list of objects is filled in without writing JSON, and mistakes are marked where they are",
    function(open)
      local child = open()
      child:lua([[
        require("mcp_sidecar").server("files", { tools = { edit_file = {
          description = "Edits",
          input = {
            type = "object",
            required = { "path", "edits" },
            properties = {
              path = { type = "string", minLength = 1 },
              edits = { type = "array", items = {
                type = "object",
                required = { "oldText", "newText" },
                properties = { oldText = { type = "string", minLength = 3 }, newText = { type = "string" } },
              } },
            },
          },
          run = function(arguments) ran = arguments return "done" end,
        } } })
      ]])
      child:command("Mcp")
      child:connected("files")
      child:command("Mcp call files/edit_file")
      child:sees('"oldText": ""')
      on(child, "newText")
      child:keys("+")
      child:wait("select(2, table.concat(vim.fn.getline(1, '$')):gsub('oldText', '')) == 2")
      child:keys("-")
      child:wait("select(2, table.concat(vim.fn.getline(1, '$')):gsub('oldText', '')) == 1")
      child:lua([[vim.fn.cursor(1, 1) vim.fn.search('"oldText": \\zs""')]])
      child:keys("ge")
      child:wait("vim.api.nvim_buf_get_name(0) == 'mcp-text://files/edit_file/edits/0/oldText'")
      child:keys('isay "one"<CR>two<Esc><CR>')
      child:sees([["oldText": "say \"one\"\ntwo"]])
      child:keys("<CR>")
      child:wait("#vim.diagnostic.get(0) == 1")
      local mark = child:lua("return vim.diagnostic.get(0)[1]")
      local marked = child:lua("return vim.fn.getline(...)", mark.lnum + 1):sub(mark.col + 1, mark.end_col)
      assert(vim.startswith(marked, '""'), marked)
      assert(vim.deep_equal(child:lua("return vim.api.nvim_win_get_cursor(0)"), { mark.lnum + 1, mark.col }))
      child:keys('ci"notes.md<Esc>')
      child:wait("#vim.diagnostic.get(0) == 0")
      child:keys("<CR>")
      child:wait("ran")
      local expected = { path = "notes.md", edits = { { oldText = 'say "one"\ntwo', newText = "" } } }
      assert(vim.deep_equal(child:lua("return ran"), expected), vim.inspect(child:lua("return ran")))
    end,
  },
}
