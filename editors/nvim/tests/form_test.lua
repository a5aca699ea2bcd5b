local Child = require("child")

---A server in Lua with a tool that writes a file, so that no program is needed.
local writer = [[
  require("mcp_sidecar").server("files", { tools = {
    write_file = {
      description = "Writes",
      annotations = { readOnlyHint = false },
      input = {
        type = "object",
        required = { "path", "mode" },
        properties = {
          path = { type = "string" },
          content = { type = "string" },
          mode = { enum = { "append", "replace" } },
          backup = { type = "boolean" },
          owner = { type = "object", required = { "name" }, properties = { name = { type = "string" } } },
        },
      },
      run = function() return "done" end,
    },
  } })
]]

local function with_writer(open)
  local child = open({ files = { ["notes.md"] = "milk\nbread\n", ["src/main.rs"] = "" } })
  child:lua(writer)
  child:command("Mcp")
  child:connected("files")
  return child
end

---What completion offers where the cursor is, with this line typed so far.
local function offered(child, line)
  return child:lua(
    [[
    local line = ...
    vim.api.nvim_set_current_line(line)
    vim.api.nvim_win_set_cursor(0, { vim.fn.line("."), #line })
    -- In insert mode the cursor is after the last character; this simulates it.
    local complete = require("mcp_sidecar.ui.complete")
    local at = #line
    vim.api.nvim_win_get_cursor = function() return { vim.fn.line("."), at } end
    local from = complete.omni(1, "")
    return vim.tbl_map(function(item) return item.word end, complete.omni(0, line:sub(from + 1)))
  ]],
    line
  )
end

return {
  {
    "a call that writes a file of the workspace shows the diff",
    function(open)
      local child = with_writer(open)
      child:lua([[
        local arguments = { path = "notes.md", content = "milk\nbutter\n", mode = "replace" }
        require("mcp_sidecar").call("files/write_file", arguments, nil, function() end)
      ]])
      local prompt = child:prompt()
      assert(prompt:find("changes notes.md", 1, true), prompt)
      assert(prompt:find("\n -bread\n", 1, true) and prompt:find("\n +butter", 1, true), prompt)
    end,
  },
  {
    "completion in a form offers fields, values of the schema, and files",
    function(open)
      local child = with_writer(open)
      child:command("Mcp call files/write_file")
      child:sees('"mode": "append"')
      assert(child:lua("return vim.bo.omnifunc"):find("complete", 1, true))
      child:lua("vim.api.nvim_buf_set_lines(0, 1, 1, false, { '' }) vim.api.nvim_win_set_cursor(0, { 2, 0 })")
      local fields = offered(child, '  "')
      -- A table in Lua has no order.
      table.sort(fields)
      assert(
        vim.deep_equal(fields, { '"backup": false', '"content": ""', '"owner": {"name":""}' }),
        vim.inspect(fields)
      )
      assert(vim.deep_equal(offered(child, '  "mode": "r'), { '"replace"' }))
      assert(vim.deep_equal(offered(child, '  "backup": '), { "true", "false" }))
      assert(vim.deep_equal(offered(child, '  "path": "src/'), { '"src/main.rs"' }))
    end,
  },
  {
    "a field can be set to the file that the form was opened from",
    function(open)
      local child = with_writer(open)
      child:command("edit notes.md")
      child:command("Mcp call files/write_file")
      child:sees('"path": ""')
      child:choose("the file's name")
      child:lua("vim.fn.search('path')")
      child:keys("<Tab>")
      child:sees('/notes.md"')
    end,
  },
  {
    "a selection within a line is used and replaced exactly",
    function(open)
      local child = Child.ready(open, { files = { ["notes.md"] = "say one thing\n" } })
      child:command("edit notes.md")
      child:keys("wve<Esc>")
      child:command("'<,'>Mcp call demo/echo")
      child:sees('"text": "one"')
      child:lua('vim.fn.setline(2, \'  "text": "another"\')')
      child:keys("<CR>")
      child:wait("vim.api.nvim_buf_get_name(0) == 'mcp-result://demo/echo'")
      child:keys("R")
      child:wait("vim.fn.getbufline('notes.md', 1)[1] == 'say another thing'")
    end,
  },
  {
    "a second form replaces the first",
    function(open)
      local child = Child.ready(open)
      child:command("Mcp call demo/echo")
      child:sees('"text"')
      local windows = child:lua("return #vim.api.nvim_list_wins()")
      child:command("Mcp call demo/roll_dice")
      child:sees('"count"')
      assert(child:lua("return #vim.api.nvim_list_wins()") == windows)
    end,
  },
  {
    "a question does not cover the line that the user types in",
    function(open)
      local child = Child.ready(open, { files = { ["notes.md"] = ("line\n"):rep(60) } })
      child:command("edit notes.md")
      child:command("only")
      child:keys("Gzbimore")
      child:wait("vim.api.nvim_get_mode().mode == 'i' and vim.fn.getline('.'):find('more', 1, true)")
      child:ask()
      child:prompt()
      local apart = child:lua([[
        local float = vim.api.nvim_win_get_config(require("mcp_sidecar.ui.approval").state().window)
        local row = vim.fn.screenpos(0, vim.fn.line("."), 1).row - 1
        return row < float.row or row > float.row + float.height + 1
      ]])
      assert(apart)
      assert(child:lua("return require('mcp_sidecar.statusline').get()"):find("?1", 1, true))
    end,
  },
  {
    "a question in a tab page is answered there, and the tab page closes",
    function(open)
      local child = Child.ready(open)
      child:ask()
      child:prompt()
      child:command("Mcp approve")
      child:keys("v")
      child:sees("wants to run `take_note`")
      child:wait("vim.api.nvim_buf_get_name(0):find('mcp-approval://', 1, true) and #vim.api.nvim_list_tabpages() == 2")
      child:answer("y")
      child:wait("answered.result")
      child:wait("#vim.api.nvim_list_tabpages() == 1", "the window is gone")
    end,
  },
  {
    "a question follows the user to another tab page",
    function(open)
      local child = Child.ready(open)
      child:ask()
      child:prompt()
      child:command("tabnew")
      child:wait(
        "vim.api.nvim_win_get_tabpage(require('mcp_sidecar.ui.approval').state().window) == vim.api.nvim_get_current_tabpage()"
      )
      child:command("Mcp approve")
      child:answer("y")
      child:wait("answered.result")
    end,
  },
  {
    "a server that asks for several values is answered in a form",
    function(open)
      local child = open()
      child:lua("require('mcp_sidecar').on('reload', function() loaded = true end)")
      child:command("Mcp")
      child:wait("loaded", "the state of the sidecar")
      child:lua([[
        local client, workspaces = require("mcp_sidecar.client"), require("mcp_sidecar.workspaces")
        local command = client.command
        client.command = function(name, params, callback, opts)
          if name == "mcp.form.check" then return callback(nil, { arguments = params.values, problems = {} }) end
          if name ~= "mcp.approval.resolve" then return command(name, params, callback, opts) end
          sent = params
          callback(nil, {})
        end
        local function field(name, kind, required)
          return { name = name, title = name, kind = kind, required = required, rule = kind }
        end
        local fish = field("fish", "choices", true)
        fish.choices = { { value = "cod", title = "Cod" }, { value = "eel", title = "Eel" } }
        local approval = {
          id = "1", kind = "elicitation", server = "harbour", title = "The server `harbour` asks you", detail = "For the list.",
          answers = { { decision = "accept", label = "Accept", grants = true }, { decision = "decline", label = "Decline" } },
          createdAt = "", requester = { kind = "user" },
          form = { fields = { field("name", "text", true), fish, field("town", "text", false) } },
        }
        workspaces.handlers["mcp/approvalsChanged"](nil, { approvals = { approval } }, { client_id = client.current().id })
      ]])
      child:prompt()
      child:command("Mcp approve")
      child:answer("f")
      child:wait("vim.api.nvim_buf_get_name(0) == 'mcp-answer://1'")
      child:choose("Eel")
      child:lua("vim.fn.search('fish')")
      child:keys("<Tab>")
      child:sees('"eel"')
      child:lua([[vim.cmd('%s/"name": ""/"name": "Ada"/')]])
      child:submit()
      child:wait("sent and sent.decision == 'accept'")
      local content = child:lua("return sent.content")
      assert(vim.deep_equal(content, { name = "Ada", fish = { "eel" } }), vim.inspect(content))
      child:wait("vim.fn.bufnr('mcp-answer://1') == -1", "the form is closed")
    end,
  },
}
