-- "Edit, then allow": the arguments of a question are changed in a form before the call runs.

local approval = "require('mcp_sidecar.ui.approval').state()"

---A tool with a rule for its text and a default that the agent does not send.
local writer = [[
  require("mcp_sidecar").server("files", { tools = {
    write = {
      description = "Writes",
      input = {
        type = "object",
        required = { "path" },
        properties = {
          path = { type = "string", minLength = 3 },
          lines = { type = "array", items = { type = "string" } },
          mode = { enum = { "append", "replace" }, default = "append" },
        },
      },
      run = function(arguments)
        ran = arguments
        return "written"
      end,
    },
    list = { description = "Lists", annotations = { readOnlyHint = true }, run = function() return "listed" end },
    find = { description = "Finds", annotations = { readOnlyHint = true }, run = function() return "found" end },
  } })
]]

local function call(child, tool, arguments)
  child:lua(
    [[
    local tool, arguments = ...
    local params = { tool = "mcp__files__" .. tool, arguments = arguments, requester = { kind = "agent", name = "codex" } }
    require("mcp_sidecar.client").command("mcp.tool.call", params, function(err, result)
      answered = { err = err, result = result }
    end)
  ]],
    tool,
    arguments or vim.empty_dict()
  )
end

---A child with a focused question about a call of `write`.
local function asked(open, opts)
  local child = open(vim.tbl_extend("force", { files = { ["notes.md"] = "one\n" } }, opts or {}))
  child:lua(writer)
  child:command("edit notes.md")
  child:command("Mcp")
  child:connected("files")
  child:command("close")
  call(child, "write", { path = "notes.md", lines = { "one" } })
  child:prompt()
  child:command("Mcp approve")
  return child
end

local function open_form(child)
  child:answer("e")
  child:wait("vim.startswith(vim.api.nvim_buf_get_name(0), 'mcp-answer://')", "the form")
end

local function form_is_gone(child)
  child:wait([[not vim.iter(vim.api.nvim_list_bufs()):any(function(buffer)
    return vim.startswith(vim.api.nvim_buf_get_name(buffer), "mcp-answer://")
  end)]])
end

local function nothing_is_sent(child)
  assert(child:lua("return answered == nil and ran == nil"), "the question was answered")
end

return {
  {
    "`e` edits exactly the arguments of the question, checks them, and allows the call once",
    function(open)
      local child = asked(open)
      open_form(child)
      local shown = vim.json.decode(child:text())
      assert(vim.deep_equal(shown, { path = "notes.md", lines = { "one" } }), child:text())
      assert(child:lua("return vim.wo.winbar"):find("allow once", 1, true))
      child:keys('/notes.md<CR>ci"x<Esc>')
      child:shows("shorter than 3 characters")
      child:submit()
      child:wait("#vim.diagnostic.get(0) == 1")
      nothing_is_sent(child)
      child:keys('ci"other.md<Esc>')
      child:wait("#vim.diagnostic.get(0) == 0", "no problems")
      child:submit()
      child:wait("answered.result")
      local ran = child:lua("return ran")
      assert(vim.deep_equal(ran, { path = "other.md", lines = { "one" } }), vim.inspect(ran))
      form_is_gone(child)
      local record = child:lua([[
        local done
        require("mcp_sidecar.client").fetch("mcp.calls", { limit = 1 }, function(result) done = result.calls[1] end)
        vim.wait(5000, function() return done ~= nil end)
        return done
      ]])
      assert(record.decision == "allow-once" and record.requestedArguments.path == "notes.md", vim.inspect(record))
      assert(child:lua("return #require('mcp_sidecar.client').workspace().approvals") == 0)
    end,
  },
  {
    "arguments that were not changed are allowed as they are",
    function(open)
      local child = asked(open)
      open_form(child)
      child:lua([[
        local command = require("mcp_sidecar.client").command
        require("mcp_sidecar.client").command = function(name, params, ...)
          if name == "mcp.approval.resolve" then resolved = vim.deepcopy(params) end
          return command(name, params, ...)
        end
      ]])
      child:submit()
      child:wait("answered.result")
      assert(child:lua("return resolved.decision == 'allow-once' and resolved.arguments == nil"))
    end,
  },
  {
    "arguments that are too large for the list are fetched, shown and edited when the question is focused",
    function(open)
      local child = asked(open)
      child:answer("n")
      child:wait("answered")
      child:lua("answered = nil")
      local large = ("x"):rep(1500000) .. "the end"
      call(child, "write", { path = "notes.md", lines = { large } })
      local prompt = child:prompt()
      assert(prompt:find("not shown here because of their size", 1, true) and not prompt:find("xxxx", 1, true), prompt)
      child:command("Mcp approve")
      local shown = "table.concat(vim.api.nvim_buf_get_lines(%s, 0, -1, false), '\\n'):find(%q, 1, true)"
      local in_prompt = shown:format(approval .. ".buffer", "more bytes: `e` shows them")
      child:wait(in_prompt, "the beginning of the arguments")
      prompt = child:prompt()
      assert(
        prompt:find("notes.md", 1, true) and #prompt < 1100000 and not prompt:find("because of their size", 1, true)
      )
      -- A new list, without these arguments, changes nothing.
      call(child, "write", { path = "other.md" })
      child:wait("#require('mcp_sidecar.client').workspace().approvals == 2")
      assert(child:lua("return " .. in_prompt))
      open_form(child)
      assert(vim.deep_equal(vim.json.decode(child:text()), { path = "notes.md", lines = { large } }))
      child:keys('/notes.md<CR>ci"small.md<Esc>')
      child:submit()
      child:wait("answered.result")
      local ran = child:lua("return ran")
      assert(vim.deep_equal(ran, { path = "small.md", lines = { large } }), ran.path)
    end,
  },
  {
    "cancelling the form returns to the question, which is not answered",
    function(open)
      local child = asked(open)
      open_form(child)
      assert(child:lua(("return %s.window == nil"):format(approval)))
      child:keys("q")
      child:wait("vim.api.nvim_get_current_win() == " .. approval .. ".window", "the prompt focused")
      form_is_gone(child)
      nothing_is_sent(child)
      open_form(child)
      child:command("quit!")
      child:prompt()
      assert(child:lua(("return vim.api.nvim_get_current_win() ~= %s.window"):format(approval)))
      nothing_is_sent(child)
    end,
  },
  {
    "a question that is withdrawn while it is edited closes the form and sends nothing",
    function(open)
      local child = asked(open)
      open_form(child)
      -- The check of the form is still running when the question is withdrawn.
      child:lua([[
        local client = require("mcp_sidecar.client")
        local command = client.command
        client.command = function(name, params, callback, opts)
          if name == "mcp.approval.resolve" then sent = true end
          if name ~= "mcp.form.check" then return command(name, params, callback, opts) end
          finish = function() callback(nil, { arguments = params.values, problems = {} }) end
        end
      ]])
      child:submit()
      child:wait("finish ~= nil")
      child:command("Mcp stop files")
      form_is_gone(child)
      child:hears(": withdrawn: ")
      child:lua("finish()")
      assert(child:lua("return sent == nil and ran == nil"))
    end,
  },
  {
    "a question that another Neovim answers while it is edited closes the form",
    function(open)
      local child = asked(open, { project = '{ "servers": {} }' })
      open_form(child)
      local other = open({ beside = child })
      other:command("Mcp")
      other:prompt()
      other:command("Mcp approve")
      other:answer("n")
      form_is_gone(child)
      child:hears(
        ("“Deny”, by the user in Neovim (process %d, nvim)"):format(other:lua("return vim.uv.os_getpid()"))
      )
      child:wait("answered.err.data.kind == 'denied'")
      assert(child:lua("return ran == nil"))
    end,
  },
  {
    "a key that was typed before the form appeared does not send it",
    function(open)
      local child = asked(open)
      open_form(child)
      child:lua("require('mcp_sidecar.ui.form').of(vim.api.nvim_get_current_buf()).ready = math.huge")
      child:keys("<CR>ix<Esc>")
      child:sees("x")
      nothing_is_sent(child)
    end,
  },
  {
    "the arguments are edited from a tab page, too, and both windows close after the answer",
    function(open)
      local child = asked(open)
      child:keys("v")
      child:wait("#vim.api.nvim_list_tabpages() == 2")
      open_form(child)
      child:submit()
      child:wait("answered.result")
      child:wait("#vim.api.nvim_list_tabpages() == 1", "the tab page is closed")
      form_is_gone(child)
    end,
  },
  {
    "`ar` allows all read-only tools of the server for this session",
    function(open)
      local child = asked(open)
      child:answer("n")
      child:wait("answered")
      child:lua("answered = nil")
      call(child, "list")
      child:prompt()
      child:command("Mcp approve")
      child:answer("ar")
      child:wait("answered.result")
      child:lua("answered = nil")
      call(child, "find")
      child:wait("answered.result", "no second question")
    end,
  },
}
