-- nvim --headless -u NONE -i NONE -n -l run.lua [WORDS]: runs the tests whose name contains WORDS, or all of them.

local here = vim.fs.dirname(vim.fn.fnamemodify(assert(debug.getinfo(1, "S")).source:sub(2), ":p"))
package.path = here .. "/?.lua;" .. package.path
local Child = require("child")

local wanted = table.concat(_G.arg or {}, " ")
local passed, failed = 0, {}

for _, file in ipairs(vim.fn.sort(vim.fn.glob(here .. "/*_test.lua", false, true))) do
  for _, test in ipairs(dofile(file)) do
    local name, run = test[1], test[2]
    if name:find(wanted, 1, true) then
      local children = {}
      local function open(opts)
        local child = Child.new(opts)
        table.insert(children, child)
        return child
      end
      local began = vim.uv.now()
      local ok, problem = xpcall(run, debug.traceback, open)
      vim.uv.update_time()
      for _, child in ipairs(children) do
        pcall(child.close, child)
      end
      io.stdout:write(("%s %s (%d ms)\n"):format(ok and "ok  " or "FAIL", name, vim.uv.now() - began))
      if ok then
        passed = passed + 1
      else
        table.insert(failed, name)
        io.stdout:write(problem .. "\n")
      end
    end
  end
end

io.stdout:write(("%d passed, %d failed\n"):format(passed, #failed))
os.exit(#failed == 0 and passed > 0 and 0 or 1)
