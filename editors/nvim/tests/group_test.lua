-- Several questions that belong together are one prompt: all of them, some of them, or none.

local Child = require("child")

local approval = "require('mcp_sidecar.ui.approval').state()"
local waiting = "#require('mcp_sidecar.client').workspace().approvals"

---A child with a file in front of the user and questions of one agent.
local function asked(open, count)
  local child = Child.ready(open, { project = '{ "servers": {} }', files = { ["notes.md"] = "one\ntwo\n" } })
  child:command("edit notes.md")
  child:command("only")
  child:agent()
  for number = 1, count do
    child:agent_calls("call" .. number, "demo__take_note", { text = "note " .. number })
    child:wait(("%s == %d"):format(waiting, number))
  end
  return child
end

---A child whose project defines several servers that are not trusted.
local function untrusted(open, count)
  local servers = {}
  for number = 1, count do
    -- Not in the order of the alphabet.
    local name = ("s%02d"):format(count + 1 - number)
    table.insert(servers, ('"%s": { "command": "mcp-sidecar", "args": ["demo-server"] }'):format(name))
  end
  local project = ('{ "servers": { %s } }'):format(table.concat(servers, ", "))
  local child = open({ project = project, files = { ["notes.md"] = "one\n" } })
  child:command("edit notes.md")
  child:wait(("%s == %d"):format(waiting, count))
  return child
end

local function focus(child)
  child:command("Mcp approve")
  child:wait("vim.api.nvim_get_current_win() == " .. approval .. ".window", "the prompt focused")
end

local function answered(child, id) return child:lua("return said[...] ~= nil", id) end

---Whether the call of the agent ran.
local function ran(child, id)
  child:wait(("said[%q] ~= nil"):format(id), id .. " answered")
  return child:lua("return not said[...].error and not said[...].result.isError", id)
end

return {
  {
    "three questions of an agent are one prompt that takes no focus, and no single key grants them",
    function(open)
      local child = asked(open, 3)
      child:wait("vim.startswith(" .. approval .. ".shown, 'agent:')", "the group")
      local text = child:prompt()
      for number = 1, 3 do
        assert(text:find(('[ ] `take_note` on `demo` {"text":"note %d"}'):format(number), 1, true), text)
      end
      child:shows("3 tool calls")
      child:shows("waiting for you")
      child:keys("jyyp")
      child:wait("vim.fn.line('$') == 3")
      focus(child)
      for _, key in ipairs({ "y", "p", "s", "<CR>", "ax", "a<Esc>", "d", "e", "c", "f" }) do
        child:answer(key)
        child:wait(approval .. ".first == nil", key)
      end
      assert(child:lua("return " .. waiting) == 3 and not answered(child, "call1"))
      child:answer("a")
      child:shows("Allow all 3 once")
      child:keys("y")
      assert(ran(child, "call1") and ran(child, "call2") and ran(child, "call3"))
      child:wait(approval .. ".window == nil", "the prompt closed")
    end,
  },
  {
    "marked questions of a group are answered, the others keep waiting",
    function(open)
      local child = asked(open, 3)
      focus(child)
      child:answer("j<Space>")
      child:sees('[x] `take_note` on `demo` {"text":"note 2"}')
      child:keys("k<Space><Space>")
      child:answer("a")
      child:shows("Allow the selected calls once")
      child:keys("y")
      assert(ran(child, "call2"))
      child:wait(waiting .. " == 2")
      assert(not answered(child, "call1") and not answered(child, "call3"))
      child:shows("2 tool calls")
      child:answer("n")
      assert(not ran(child, "call1") and not ran(child, "call3"))
    end,
  },
  {
    "one question of a group is read in full and answered alone in a tab page, which leads back",
    function(open)
      local child = asked(open, 3)
      focus(child)
      child:answer("jv")
      child:wait("#vim.api.nvim_list_tabpages() == 2")
      child:sees("arguments")
      child:sees("note 2")
      assert(child:lua(("return %s.window == nil"):format(approval)))
      child:keys("q")
      child:wait("vim.api.nvim_get_current_win() == " .. approval .. ".window", "back in the group")
      child:answer("jv")
      child:wait("#vim.api.nvim_list_tabpages() == 2")
      child:answer("y")
      assert(ran(child, "call2"))
      child:wait("#vim.api.nvim_list_tabpages() == 1")
      child:wait(waiting .. " == 2")
      child:wait("vim.startswith(" .. approval .. ".shown, 'agent:')", "the rest of the group")
      assert(not answered(child, "call1"))
    end,
  },
  {
    "a question that joins a focused group is not part of an answer that was begun before",
    function(open)
      local child = asked(open, 2)
      focus(child)
      child:answer("a")
      child:wait(approval .. ".first ~= nil")
      child:agent_calls("late", "demo__take_note", { text = "late" })
      child:sees("late")
      child:keys("y")
      assert(child:lua("return " .. approval .. ".first == nil and " .. waiting) == 3)
      child:answer("ay")
      assert(ran(child, "call1") and ran(child, "late"))
    end,
  },
  {
    "a question that joins the one being answered waits for its turn",
    function(open)
      local child = asked(open, 1)
      focus(child)
      child:agent_calls("late", "demo__take_note", { text = "late" })
      child:wait(waiting .. " == 2")
      child:shows("1 more waiting")
      assert(child:lua("return " .. approval .. ".drawn.members == nil"))
      child:answer("y")
      assert(ran(child, "call1") and not answered(child, "late"))
    end,
  },
  {
    "thirty servers of a file are one question about trust, in the order of the file",
    function(open)
      local child = untrusted(open, 30)
      local text = child:prompt()
      child:shows("trust 30 servers")
      local first, last = text:find("`s30`", 1, true), text:find("`s01`", 1, true)
      assert(first and last and first < last and text:find("demo-server", 1, true), text)
      focus(child)
      assert(child:lua("return vim.wo.cursorline and vim.fn.getline('.'):find('s30') ~= nil"))
      child:answer("y")
      child:answer("<Space>j<Space>")
      child:answer("ap")
      child:hears("`s30` and `s29` are trusted in this project. Undo: `:Mcp distrust`")
      child:connected("s30")
      child:connected("s29")
      child:wait(waiting .. " == 28")
      child:answer("n")
      child:hears("28 servers are not trusted and do not start. Undo: `:Mcp trust`")
      child:wait(waiting .. " == 0")
      assert(child:lua("return require('mcp_sidecar.client').workspace().servers.s01.status") ~= "connected")
    end,
  },
  {
    "`:Mcp trust` shows the server that it names, not the whole group",
    function(open)
      local child = untrusted(open, 3)
      child:command("Mcp trust s02")
      child:wait("vim.api.nvim_get_current_win() == " .. approval .. ".window", "the prompt focused")
      assert(child:prompt():find("Trust the server `s02`?", 1, true))
      child:answer("y")
      child:connected("s02")
      child:wait(waiting .. " == 2")
    end,
  },
  {
    "an answer in another Neovim is reported in one line that says where it was given",
    function(open)
      local child = asked(open, 3)
      child:prompt()
      local other = open({ beside = child })
      other:command("Mcp")
      other:prompt()
      other:command("Mcp approve")
      other:answer("<Space>")
      other:answer("n")
      local pid = other:lua("return vim.uv.os_getpid()")
      child:hears(("by the user in Neovim (process %d, nvim)"):format(pid))
      child:wait(waiting .. " == 2")
      other:answer("ay")
      child:hears("2 questions: ")
      assert(other:lua("return not vim.inspect(notes):find('by the user', 1, true)"), "its own answer is not reported")
    end,
  },
}
