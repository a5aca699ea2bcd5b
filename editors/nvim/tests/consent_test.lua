-- Only a deliberate answer counts: keys that you type for something else answer nothing.

local Child = require("child")

local approval = "require('mcp_sidecar.ui.approval').state()"

---A child with a file in front of the user, in normal mode.
local function in_file(open, text, opts)
  local child = Child.ready(open, vim.tbl_extend("force", { files = { ["notes.md"] = text } }, opts or {}))
  child:command("edit notes.md")
  child:command("only")
  return child
end

---Waits until this much time has passed in the child without a key.
local function idle(child, ms)
  local start = child:lua("return vim.uv.now()")
  child:wait(("vim.uv.now() - %d > %d"):format(start, ms), "an idle user")
end

local function has_focus(child)
  return child:lua(("return vim.api.nvim_get_current_win() == %s.window"):format(approval))
end

---A question of the user's own call: a tool without arguments of a server in Lua that needs approval.
local slow_tool = [[
  require("mcp_sidecar").server("mine", { tools = { wipe = {
    description = "Wipes",
    run = function() return "wiped" end,
  } } })
]]

local function call_own_tool(child) child:keys(":Mcp call mine/wipe<CR>") end

local function with_own_tool(open)
  local child = in_file(open, "one\ntwo\n")
  child:lua(slow_tool)
  child:connected("mine")
  return child
end

---The title and the footer of the prompt.
local function frame(child)
  child:prompt()
  return child:lua(([[
    local config = vim.api.nvim_win_get_config(%s.window)
    local function text(chunks) return table.concat(vim.tbl_map(function(chunk) return chunk[1] end, chunks)) end
    return text(config.title) .. "|" .. text(config.footer)
  ]]):format(approval))
end

local function shows_in_frame(child, text)
  local shown = ""
  local ok = vim.wait(5000, function()
    shown = frame(child)
    return shown:find(text, 1, true) ~= nil
  end, 20)
  assert(ok, ("`%s` is not in `%s`"):format(text, shown))
end

local function nothing_is_answered(child)
  assert(child:lua("return answered == nil"), "the question was answered")
  assert(child:lua("return #require('mcp_sidecar.client').workspace().approvals") == 1, "the question is gone")
end

return {
  {
    "the question about a server that the user has just added has the focus",
    function(open)
      local child = open({})
      child:command("Mcp add demo")
      child:wait("vim.api.nvim_buf_get_name(0):find('mcp-server://', 1, true)")
      child:sees('"demo-server"')
      child:keys("<CR>")
      assert(child:prompt():find("Trust the server `demo`?", 1, true))
      child:wait("vim.bo.filetype == 'mcp-approval'", "the focus")
      child:answer("a")
      child:answer("p")
      child:connected("demo")
    end,
  },
  {
    "a question that finds the user idle takes neither the focus nor the next key",
    function(open)
      local child = in_file(open, "one two\nthree two\n")
      child:ask_as_agent("an earlier question")
      child:prompt()
      child:command("Mcp approve")
      child:answer("y")
      child:wait("answered")
      child:lua("answered = nil")
      child:keys("yygg/two<CR>0")
      idle(child, 2000)
      child:ask_as_agent()
      child:prompt()
      idle(child, 1000)
      child:keys("p")
      child:wait("vim.fn.line('$') == 3", "`p` pastes")
      child:keys("y")
      child:wait("vim.api.nvim_get_mode().mode == 'no'", "`y` waits for a motion")
      child:keys("<Esc>d")
      child:wait("vim.api.nvim_get_mode().mode == 'no' and vim.v.operator == 'd'", "`d` waits for a motion")
      child:keys("<Esc>a")
      child:wait("vim.api.nvim_get_mode().mode == 'i'", "`a` appends")
      child:keys("<Esc>s")
      child:wait("vim.api.nvim_get_mode().mode == 'i'", "`s` replaces a character")
      child:keys("<Esc>gg0n")
      child:wait("vim.deep_equal(vim.api.nvim_win_get_cursor(0), { 1, 4 })", "`n` goes to the next match")
      assert(child:lua("return vim.api.nvim_get_current_win() ~= " .. approval .. ".window"))
      nothing_is_answered(child)
    end,
  },
  {
    "a question about a call that the user has just started is focused at once",
    function(open)
      local child = with_own_tool(open)
      call_own_tool(child)
      child:prompt()
      assert(has_focus(child), "the prompt is not focused")
      shows_in_frame(child, "y Allow once")
      child:answer("y")
      child:sees("wiped")
    end,
  },
  {
    "with `auto_focus = false` no question takes the focus",
    function(open)
      local child = in_file(open, "one\n", { options = "{ auto_focus = false }" })
      child:lua(slow_tool)
      child:connected("mine")
      call_own_tool(child)
      child:prompt()
      assert(not has_focus(child))
    end,
  },
  {
    "a key that is typed after the call keeps its question from taking the focus",
    function(open)
      local child = with_own_tool(open)
      child:keys(":Mcp call mine/wipe<CR>j")
      child:prompt()
      assert(not has_focus(child))
    end,
  },
  {
    "the question about the user's own call is focused in normal mode only",
    function(open)
      for _, keys in ipairs({ "", "i", "v", "d", ":", "q:", "R", "qx" }) do
        local child = with_own_tool(open)
        child:keys(keys)
        -- As a mapping or an autocommand of the user starts it.
        child:lua("require('mcp_sidecar.ui.call').start('mine/wipe')")
        child:prompt()
        assert(has_focus(child) == (keys == ""), keys)
      end
    end,
  },
  {
    "the question about the user's own call is not focused in a terminal or in a picker",
    function(open)
      for _, enter in ipairs({
        "vim.cmd.terminal() vim.cmd.startinsert()",
        "vim.api.nvim_open_win(0, true, { relative = 'editor', row = 2, col = 2, width = 20, height = 3 })",
      }) do
        local child = with_own_tool(open)
        child:lua(enter)
        child:wait(enter:find("terminal") and "vim.api.nvim_get_mode().mode == 't'" or "true")
        child:lua("require('mcp_sidecar.ui.call').start('mine/wipe')")
        child:prompt()
        assert(not has_focus(child), enter)
      end
    end,
  },
  {
    "a call of a plugin with the same arguments as the user's own is not focused",
    function(open)
      local child = with_own_tool(open)
      child:lua([[
        require("mcp_sidecar.user_actions").add({ server = "mine", tool = "wipe" })
        require("mcp_sidecar").call("mine/wipe", nil, { requester = "chat" }, function() end)
      ]])
      child:prompt()
      assert(not has_focus(child))
    end,
  },
  {
    "the user's own question comes before one that waits, and the next one does not keep the focus",
    function(open)
      local child = with_own_tool(open)
      child:ask_as_agent()
      child:prompt()
      call_own_tool(child)
      child:wait("vim.api.nvim_get_current_win() == " .. approval .. ".window", "the prompt focused")
      assert(child:prompt():find("wipe", 1, true))
      child:answer("n")
      child:wait("vim.api.nvim_get_current_win() ~= " .. approval .. ".window", "the focus is back")
      assert(child:prompt():find("codex", 1, true))
      shows_in_frame(child, "to answer")
      nothing_is_answered(child)
    end,
  },
  {
    "a single key grants nothing that lasts, and the first key of two is visible and forgotten",
    function(open)
      local child = in_file(open, "one\n")
      child:ask_as_agent()
      child:prompt()
      child:command("Mcp approve")
      for _, key in ipairs({ "p", "s", "d", "<CR>", "<Space>", "x", "i", "ax", "a<Esc>", "aj", "ay" }) do
        child:answer(key)
        child:wait(approval .. ".first == nil", key)
        assert(has_focus(child) and child:lua("return vim.api.nvim_get_mode().mode") == "n", key)
      end
      child:answer("a")
      shows_in_frame(child, "p Allow in this project")
      child:wait(approval .. ".first == nil", "the first key times out")
      shows_in_frame(child, "y Allow once")
      child:answer("p")
      nothing_is_answered(child)
    end,
  },
  {
    "an answer that lasts is confirmed in one line with the command that undoes it",
    function(open)
      for keys, text in pairs({
        as = "The tool `take_note` of `demo` is allowed for this session. Undo: `:Mcp grants`",
        ap = "The tool `take_note` of `demo` is allowed in this project. Undo: `:Mcp grants`",
        aa = "The tool `take_note` of `demo` is always allowed. Undo: `:Mcp grants`",
        ad = "The tool `take_note` of `demo` is disabled in this project. Undo: `:Mcp grants`",
      }) do
        local child = in_file(open, "one\n")
        child:ask_as_agent()
        child:prompt()
        child:command("Mcp approve")
        child:answer(keys)
        child:hears(text)
        child:wait("answered")
        child:command("Mcp grants")
        child:sees("demo/take_note")
        child:lua("vim.fn.search('demo/take_note')")
        child:keys("x")
        child:wait("vim.fn.search('demo/take_note', 'nw') == 0", "the grant is gone")
      end
    end,
  },
  {
    "keys that follow each other quickly after the prompt is focused answer nothing",
    function(open)
      local child = in_file(open, "one\n")
      child:ask_as_agent()
      child:prompt()
      child:command("Mcp approve")
      local start = child:lua("return vim.uv.now()")
      vim.wait(10000, function()
        child:keys("y")
        return child:lua("return vim.uv.now()") - start > 900
      end, 50)
      nothing_is_answered(child)
      child:answer("y")
      child:wait("answered.result")
    end,
  },
  {
    "the next question under a focused prompt is marked, and its keys are dead for a moment",
    function(open)
      local child = in_file(open, "one\n")
      child:ask_as_agent("first")
      child:wait("#require('mcp_sidecar.client').workspace().approvals == 1")
      child:ask_as_agent("second")
      child:wait("#require('mcp_sidecar.client').workspace().approvals == 2")
      child:command("Mcp approve")
      child:answer("y")
      child:wait("#require('mcp_sidecar.client').workspace().approvals == 1")
      shows_in_frame(child, "next question")
      assert(has_focus(child))
      child:keys("y")
      assert(child:lua("return #require('mcp_sidecar.client').workspace().approvals") == 1)
    end,
  },
  {
    "a question that arrives after the answer does not get the next key",
    function(open)
      local child = in_file(open, "one\n")
      child:ask_as_agent("first")
      child:prompt()
      child:command("Mcp approve")
      -- Both changes arrive at once, as from a sidecar that answers slowly.
      child:lua([[
        local workspaces, client = require("mcp_sidecar.workspaces"), require("mcp_sidecar.client")
        local first = client.workspace().approvals[1]
        local second = vim.tbl_extend("force", first, { id = "second", title = "a new question" })
        local at = { client_id = client.current().id }
        client.command = function(name, _, callback)
          if name == "mcp.approval.resolve" then workspaces.handlers["mcp/approvalsChanged"](nil, { approvals = { second } }, at) end
        end
      ]])
      child:answer("y")
      child:wait(approval .. ".shown == 'second'")
      assert(not has_focus(child))
      shows_in_frame(child, "waiting for you")
    end,
  },
  {
    "a question that is withdrawn between two keys leaves nothing to answer",
    function(open)
      local child = in_file(open, "one\n")
      child:ask_as_agent()
      child:prompt()
      child:command("Mcp approve")
      child:answer("a")
      child:wait(approval .. ".first ~= nil")
      child:command("Mcp stop demo")
      child:wait(approval .. ".window == nil", "the prompt closed")
      child:hears(": withdrawn: ")
      assert(child:lua("return " .. approval .. ".first == nil"))
    end,
  },
  {
    "a prompt without the focus names the mapped key, says that it is cut, and is not reached by <C-w>w",
    function(open)
      local child = in_file(open, "one\n")
      child:ask_as_agent(("line\n"):rep(40))
      child:prompt()
      shows_in_frame(child, ":Mcp approve to answer")
      shows_in_frame(child, "more lines")
      child:keys("<C-w>w")
      child:keys("ix<Esc>")
      child:wait("vim.api.nvim_get_current_line() == 'xone'")
      child:lua([[
        vim.g.mapleader = " "
        vim.keymap.set("n", "<Leader>a", "<Plug>(mcp-approve)")
        vim.keymap.set("n", "<Leader>n", "<Plug>(mcp-deny)")
      ]])
      child:request("nvim_ui_try_resize", 101, 30)
      shows_in_frame(child, "<Space>a to answer")
      shows_in_frame(child, "<Space>n to deny once")
      child:wait("vim.uv.now() > " .. approval .. ".armed")
      child:keys(" n")
      child:wait("answered and answered.err.data.kind == 'denied'")
      child:hears("denied `demo/take_note` once")
    end,
  },
  {
    "a prompt without the focus moves away from the line of the cursor",
    function(open)
      local child = in_file(open, ("line\n"):rep(100))
      child:ask_as_agent()
      child:prompt()
      for _, keys in ipairs({ "G", "H", "L", "M", "ggzt", "Gzz", "i<CR>" }) do
        child:keys(keys)
        child:wait(
          ([[(function()
          vim.cmd.redraw()
          local float = vim.api.nvim_win_get_config(%s.window)
          local row = vim.fn.screenpos(0, vim.fn.line("."), vim.fn.col(".")).row - 1
          return row < float.row or row > float.row + float.height + 1
        end)()]]):format(approval),
          keys
        )
      end
      nothing_is_answered(child)
    end,
  },
  {
    "a prompt moves away from the line of the cursor in a terminal, which keeps its keys",
    function(open)
      local child = in_file(open, "one\n")
      child:command("terminal cat")
      child:command("startinsert")
      child:wait("vim.api.nvim_get_mode().mode == 't'")
      child:ask_as_agent()
      child:prompt()
      child:keys(("y<CR>"):rep(40))
      child:wait("vim.api.nvim_buf_line_count(0) > 60")
      child:wait(([[(function()
        vim.cmd.redraw()
        local float = vim.api.nvim_win_get_config(%s.window)
        return vim.fn.screenrow() - 1 < float.row or vim.fn.screenrow() - 1 > float.row + float.height + 1
      end)()]]):format(approval))
      nothing_is_answered(child)
    end,
  },
  {
    "a prompt is hidden without an answer, and a screen without room for it shows none",
    function(open)
      local child = in_file(open, "one\n")
      child:ask_as_agent()
      child:prompt()
      child:command("Mcp later")
      child:wait(approval .. ".window == nil", "the prompt hidden")
      child:command("Mcp approve")
      child:wait("vim.api.nvim_get_current_win() == " .. approval .. ".window")
      child:command("wincmd p")
      shows_in_frame(child, "to answer")
      child:request("nvim_ui_try_resize", 40, 5)
      child:wait(("not (%s.window and vim.api.nvim_win_is_valid(%s.window))"):format(approval, approval), "no prompt")
      child:request("nvim_ui_try_resize", 80, 24)
      shows_in_frame(child, "to answer")
      nothing_is_answered(child)
    end,
  },
  {
    "the help of the prompt returns to it, `:q` hides it, and `:only` does not",
    function(open)
      local child = in_file(open, "one\ntwo\n")
      child:ask_as_agent()
      child:prompt()
      child:command("only")
      child:keys("j")
      shows_in_frame(child, "to answer")
      child:command("Mcp approve")
      child:answer("?")
      child:sees("Allow in this project")
      child:keys("q")
      child:wait("vim.api.nvim_get_current_win() == " .. approval .. ".window", "the prompt focused")
      shows_in_frame(child, "y Allow once")
      child:command("q")
      child:keys("k")
      child:wait("vim.fn.line('.') == 1")
      assert(child:lua(("return not (%s.window and vim.api.nvim_win_is_valid(%s.window))"):format(approval, approval)))
      nothing_is_answered(child)
    end,
  },
  {
    "a question that changes under the same id gets no key for a moment",
    function(open)
      local child = in_file(open, "one\n")
      child:ask_as_agent()
      child:prompt()
      child:command("Mcp approve")
      child:answer("a")
      child:wait(approval .. ".first ~= nil")
      child:lua([[
        local workspaces, client = require("mcp_sidecar.workspaces"), require("mcp_sidecar.client")
        local changed = vim.tbl_extend("force", client.workspace().approvals[1], { arguments = { text = "other" } })
        workspaces.handlers["mcp/approvalsChanged"](nil, { approvals = { changed } }, { client_id = client.current().id })
      ]])
      child:wait("table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false)):find('other', 1, true)")
      shows_in_frame(child, "next question")
      child:keys("p")
      assert(child:lua("return " .. approval .. ".first == nil"))
      nothing_is_answered(child)
    end,
  },
  {
    "in a tab page, too, an answer that lasts takes two keys",
    function(open)
      local child = in_file(open, "one\n")
      child:ask_as_agent()
      child:prompt()
      child:command("Mcp approve")
      child:keys("v")
      child:wait("#vim.api.nvim_list_tabpages() == 2")
      child:answer("p")
      child:answer("a")
      child:wait("vim.wo.winbar:find('this project', 1, true)")
      child:keys("p")
      child:hears("`take_note` of `demo` is allowed in this project")
      child:wait("#vim.api.nvim_list_tabpages() == 1", "the tab page is closed")
    end,
  },
  {
    "a macro that runs in the prompt answers nothing",
    function(open)
      local child = in_file(open, "one\n")
      child:lua("vim.fn.setreg('q', 'yapaa')")
      child:ask_as_agent()
      child:prompt()
      child:command("Mcp approve")
      child:answer("@q")
      child:wait("vim.fn.reg_executing() == ''")
      nothing_is_answered(child)
    end,
  },
  {
    "a definition that was refused is asked about again before it is trusted",
    function(open)
      local project = '{ "servers": { "everything": { "command": "mcp-sidecar", "args": ["demo-server"] } } }'
      local child = open({ project = project })
      child:command("Mcp")
      child:wait("#require('mcp_sidecar.client').workspace().approvals == 1")
      shows_in_frame(child, "trust `everything`")
      child:command("Mcp approve")
      child:answer("n")
      child:hears("is not trusted and does not start. Undo: `:Mcp trust everything`")
      child:wait("#require('mcp_sidecar.client').workspace().approvals == 0", "no question waits")
      child:keys(":Mcp trust everything<CR>")
      child:wait("vim.api.nvim_get_current_win() == " .. approval .. ".window", "the prompt focused")
      local text = child:prompt()
      assert(text:find("Trust the server `everything`?", 1, true) and text:find("demo-server", 1, true), text)
      local changed = project:gsub('%["demo%-server"%]', '["demo-server"], "env": { "LEVEL": "9" }')
      vim.fn.writefile({ changed }, child.workspace .. "/mcp.json")
      child:wait("vim.inspect(require('mcp_sidecar.client').workspace().approvals):find('LEVEL', 1, true)")
      child:keys(":Mcp trust everything<CR>")
      child:wait("vim.api.nvim_get_current_win() == " .. approval .. ".window", "the prompt focused again")
      assert(child:prompt():find("LEVEL", 1, true), "the question is about the definition as it is now")
      child:answer("ap")
      child:hears("Undo: `:Mcp distrust everything`")
      child:connected("everything")
    end,
  },
}
