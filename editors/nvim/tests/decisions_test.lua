-- What can be done, how a state is worded and what a form asks for is decided by the sidecar and shown here.

local Child = require("child")

---A server in Lua with a tool whose arguments are nested.
local booker = [[
  local person = {
    type = "object",
    required = { "name" },
    properties = { name = { type = "string", minLength = 2 }, age = { type = "integer", minimum = 0 } },
  }
  local seat = { oneOf = { { const = 1, title = "window" }, { const = 2, title = "aisle" } } }
  require("mcp_sidecar").server("trips", { tools = {
    book = {
      description = "Books",
      input = {
        type = "object",
        required = { "from", "people" },
        properties = {
          from = { type = "object", required = { "city" }, properties = { city = { type = "string" }, seat = seat } },
          people = { type = "array", minItems = 1, maxItems = 2, items = person },
          bags = { type = "integer", minimum = 1, maximum = 3, description = "How many bags" },
        },
      },
      run = function(arguments)
        booked = arguments
        return "booked"
      end,
    },
  } })
]]

local function with_form(open)
  local child = open()
  child:lua(booker)
  child:command("Mcp")
  child:connected("trips")
  child:command("Mcp call trips/book")
  child:wait("vim.api.nvim_buf_get_name(0) == 'mcp-call://trips/book'")
  return child
end

---Moves the cursor to a text and presses a key there.
local function press_at(child, text, key)
  child:lua("vim.api.nvim_win_set_cursor(0, { 1, 0 }) assert(vim.fn.search(...) > 0)", text)
  child:keys(key)
end

local function has_problem(child, line, message)
  child:wait(
    ([[vim.iter(vim.diagnostic.get(0)):any(function(each)
      return vim.fn.getline(each.lnum + 1):find(%q, 1, true) and each.message:find(%q, 1, true)
    end)]]):format(line, message),
    message
  )
end

return {
  {
    "a server that a rule forbids shows the error of the sidecar and does not offer trust",
    function(open)
      local child = open({
        user = '{ "servers": {}, "policy": { "commands": ["only-this"] } }',
        project = '{ "servers": { "theirs": { "command": "mcp-sidecar", "args": ["demo-server"] } } }',
      })
      child:command("Mcp")
      child:sees("not in the list of allowed programs")
      assert(not child:text():find("trust", 1, true), child:text())
      child:lua("vim.fn.search('theirs')")
      child:keys("t")
      child:hears("`theirs` cannot be trusted now (failed: ")
      child:command("Mcp start theirs")
      child:hears("`theirs` cannot be started now")
      child:keys("<CR>")
      child:sees("from")
      assert(child:lua("return require('mcp_sidecar.ui.approval').state().window == nil"))
    end,
  },
  {
    "the state of a server has the words of the sidecar, and <CR> performs its remedy",
    function(open)
      local child = Child.ready(open)
      local summary = "require('mcp_sidecar.client').workspace().servers.demo.summary.text"
      child:sees(child:lua("return " .. summary))
      child:lua("vim.fn.search('demo')")
      child:keys("e")
      child:sees("tools hidden")
      child:keys("<CR>")
      child:sees("connected · 9 tools")
      child:keys("s")
      child:sees("○ demo  stopped")
      child:command("Mcp stop demo")
      child:hears("`demo` cannot be stopped now (stopped)")
      child:keys("<CR>")
      child:connected("demo")
    end,
  },
  {
    "only a destructive action asks first",
    function(open)
      local child = Child.ready(open)
      child:lua("vim.fn.confirm = function(text) asked = text return 1 end")
      child:command("Mcp disable demo")
      child:wait("require('mcp_sidecar.client').workspace().servers.demo.status == 'disabled'")
      assert(child:lua("return asked == nil"))
      child:command("Mcp remove demo")
      child:wait("asked")
      assert(child:lua("return asked") == "`demo`: Remove?", child:lua("return asked"))
      child:command("Mcp enable demo")
      child:connected("demo")
    end,
  },
  {
    "an error says what to do about it as a command of Neovim",
    function(open)
      local child = Child.ready(open, {
        project = '{ "servers": { "theirs": { "command": "mcp-sidecar", "args": ["demo-server"] } } }',
      })
      child:command("Mcp restart dmeo")
      child:hears("(List the servers: `:Mcp`)")
      child:command("Mcp call demo/nothing")
      child:hears("(List the tools of `demo`: `:Mcp tools`)")
      child:wait("require('mcp_sidecar.client').workspace().servers.theirs ~= nil")
      child:lua("require('mcp_sidecar.client').command('mcp.tool.call', { tool = 'mcp__theirs__echo' })")
      child:hears("(Trust `theirs`…: `:Mcp trust theirs`)")
      child:command("Mcp timeout demo 0.2")
      child:wait("require('mcp_sidecar.client').workspace().servers.demo.config.timeout == 0.2")
      local slow = "{ tool = 'mcp__demo__countdown', arguments = { interval = 1000 }, decision = 'allow-once' }"
      child:lua(("require('mcp_sidecar.client').command('mcp.tool.call', %s)"):format(slow))
      child:hears("(Raise the timeout of `demo` to 0.4 s: `:Mcp timeout demo 0.4`)")
    end,
  },
  {
    "a typed command line with quotes is read by the sidecar",
    function(open)
      local child = Child.ready(open)
      child:lua([[vim.ui.input = function(_, done) done('mcp-sidecar "demo-server"') end]])
      child:add("quoted", "user")
      child:connected("quoted")
      child:lua([[vim.ui.input = function(_, done) done('node -e "a b"') end]])
      child:add("second", "user")
      child:wait("require('mcp_sidecar.client').workspace().servers.second ~= nil")
      local config = child:lua("return require('mcp_sidecar.client').workspace().servers.second.config")
      assert(vim.deep_equal(config, { command = "node", args = { "-e", "a b" } }), vim.inspect(config))
      child:lua([[vim.ui.input = function(_, done) done('node "a') end]])
      child:command("Mcp add third")
      child:hears("an unclosed quote")
    end,
  },
  {
    "`+` adds a field to the object or an item to the list at the cursor, <Tab> chooses a value",
    function(open)
      local child = with_form(open)
      child:shows("a list, at least 1 item, at most 2 items")
      child:shows("+ adds one more")
      child:shows("+ adds seat")
      child:shows("+ adds bags")
      child:choose("seat")
      press_at(child, "city", "+")
      child:sees('"seat": 1')
      child:shows("one of the choices: 1 window, 2 aisle")
      child:choose("aisle")
      press_at(child, "seat", "<Tab>")
      child:sees('"seat": 2')
      -- A list of objects starts with one of them.
      child:sees('"name": ""')
      child:choose("age")
      press_at(child, "name", "+")
      child:sees('"age": 0')
      press_at(child, "age", "+")
      child:wait("select(2, table.concat(vim.fn.getline(1, '$')):gsub('name', '')) == 2", "a second item")
      child:choose("bags")
      child:keys("G+")
      child:sees('"bags": 0')
      child:shows("How many bags")
    end,
  },
  {
    "a form is checked as the user types, and only a correct one is sent",
    function(open)
      local child = with_form(open)
      child:lua([[
        local text = '{ "from": { "city": "Oslo" }, "people": [{ "name": "Ada" }, { "name": "Grace" }], "bags": "2" }'
        vim.api.nvim_buf_set_lines(0, 0, -1, false, require("mcp_sidecar.json").lines(vim.json.decode(text)))
      ]])
      child:wait("#vim.diagnostic.get(0) == 0")
      press_at(child, "Grace", "ciwG<Esc>")
      has_problem(child, '"name": "G"', "shorter than 2 characters")
      child:shows("shorter than 2 characters")
      press_at(child, "bags", "f2r9")
      has_problem(child, '"bags": "9"', "9 is greater than the maximum of 3")
      child:keys("<CR>")
      child:wait("#vim.diagnostic.get(0) == 2")
      assert(child:lua("return booked == nil"))
      press_at(child, 'G"', "ciwGrace<Esc>")
      press_at(child, "bags", "f9r3")
      child:wait("#vim.diagnostic.get(0) == 0", "no problems")
      child:keys("<CR>")
      child:sees("booked")
      local booked = child:lua("return booked")
      local people = { { name = "Ada" }, { name = "Grace" } }
      assert(vim.deep_equal(booked, { from = { city = "Oslo" }, people = people, bags = 3 }), vim.inspect(booked))
    end,
  },
  {
    "an open file that an allowed call changes is reloaded without a question, one with unsaved changes is not",
    function(open)
      local child = Child.ready(open, { files = { ["notes.md"] = "old\n", ["draft.md"] = "old\n" } })
      child:lua([[
        vim.o.autoread = false
        require("mcp_sidecar").server("files", { tools = {
          write = { description = "Writes", run = function()
            vim.fn.writefile({ "new from the tool" }, "notes.md")
            vim.fn.writefile({ "new from the tool" }, "draft.md")
            return "done"
          end },
        } })
      ]])
      child:connected("files")
      child:command("edit draft.md")
      child:lua("vim.fn.setline(1, 'mine')")
      child:command("split notes.md")
      child:command("new")
      child:lua([[
        window = vim.api.nvim_get_current_win()
        require("mcp_sidecar").call("files/write", nil, { requester = "chat" }, function(err, result)
          answered = { err = err, result = result }
        end)
      ]])
      child:prompt()
      child:command("Mcp approve")
      child:answer("y")
      child:wait("answered.result")
      child:wait("vim.fn.getbufline('notes.md', 1)[1] == 'new from the tool'", "the new text")
      assert(child:lua("return vim.fn.getbufline('draft.md', 1)[1]") == "mine")
      assert(child:lua("return vim.api.nvim_get_current_win() == window and vim.api.nvim_get_mode().mode == 'n'"))
    end,
  },
  {
    "an open file is reloaded after any call that changed it, whatever the tool says and however it ended",
    function(open)
      local child = Child.ready(open, { files = { ["notes.md"] = "old\n" } })
      child:lua([[
        local function writes(text, fail)
          return function()
            vim.fn.writefile({ text }, "notes.md")
            return fail and error("failed") or "done"
          end
        end
        require("mcp_sidecar").server("files", { tools = {
          peek = { description = "Reads", annotations = { readOnlyHint = true }, run = writes("written by a reader") },
          fails = { description = "Fails", annotations = { readOnlyHint = true }, run = writes("written by a failure", true) },
        } })
      ]])
      child:connected("files")
      child:command("edit notes.md")
      for tool, text in pairs({ peek = "written by a reader", fails = "written by a failure" }) do
        child:lua([[require("mcp_sidecar").call("files/" .. ..., nil, nil, function() end)]], tool)
        child:sees(text)
      end
    end,
  },
  {
    "a question that waits is in the menu of code actions, which shows it focused and answers nothing",
    function(open)
      local child = Child.ready(open, { project = '{ "servers": {} }', files = { ["notes.md"] = "text\n" } })
      child:lua([[
        require("mcp_sidecar").server("files", { tools = { write = { description = "Writes", run = function() ran = true end } } })
      ]])
      child:connected("files")
      child:command("edit notes.md")
      child:lua([[require("mcp_sidecar").call("files/write", nil, { requester = "chat" }, function() end)]])
      child:prompt()
      child:choose("Review: The plugin `chat` wants to run `write` on `files`")
      child:lua("vim.lsp.buf.code_action()")
      child:wait("vim.bo.filetype == 'mcp-approval'", "the prompt focused")
      assert(child:lua("return ran == nil and #require('mcp_sidecar.client').workspace().approvals == 1"))
    end,
  },
}
