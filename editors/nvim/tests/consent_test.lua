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

local function nothing_is_answered(child)
  assert(child:lua("return answered == nil"), "the question was answered")
  assert(child:lua("return #require('mcp_sidecar.client').picture().approvals") == 1, "the question is gone")
end

return {
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
}
