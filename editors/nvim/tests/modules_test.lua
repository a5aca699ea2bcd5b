-- Checks that work without a type checker and in the oldest Neovim, which has no type annotations.

local here = vim.fs.dirname(vim.fs.dirname(vim.fn.fnamemodify(assert(debug.getinfo(1, "S")).source:sub(2), ":p")))

---Every source file of the plugin, as (path, text).
local function sources()
  local found = {}
  for _, path in ipairs(vim.fn.globpath(here, "**/*.lua", false, true)) do
    if not path:find("/tests/", 1, true) then found[path] = table.concat(vim.fn.readfile(path), "\n") end
  end
  return found
end

---What a file uses of other modules of the plugin: module → names.
local function uses(text)
  local used = {}
  local function note(module, name)
    used[module] = used[module] or {}
    used[module][name] = true
  end
  for module, name in text:gmatch('require%("(mcp_sidecar[%w_.]*)"%)%.([%w_]+)') do
    note(module, name)
  end
  for variable, module in text:gmatch('local ([%w_]+) = require%("(mcp_sidecar[%w_.]*)"%)\n') do
    for name in text:gmatch("%f[%w_.]" .. variable .. "%.([%w_]+)") do
      note(module, name)
    end
  end
  return used
end

return {
  {
    "every module loads and has the names that other modules use",
    function(open)
      local child = open()
      local wrong = {}
      for path, text in pairs(sources()) do
        for module, names in pairs(uses(text)) do
          for name in pairs(names) do
            local there = child:lua("local module, name = ... return require(module)[name] ~= nil", module, name)
            if not there then table.insert(wrong, ("%s: %s.%s"):format(vim.fs.basename(path), module, name)) end
          end
        end
      end
      table.sort(wrong)
      assert(#wrong == 0, table.concat(wrong, "\n"))
    end,
  },
  {
    "every type is defined once, so the plugin does not repeat or change the generated types of the protocol",
    function()
      local defined, wrong = {}, {}
      for path, text in pairs(sources()) do
        for kind, name in text:gmatch("%f[^\n%z]%-%-%-@(%l+) (mcp_sidecar%.[%w_]+)") do
          if kind == "class" or kind == "alias" then
            if defined[name] then table.insert(wrong, ("%s: %s, %s"):format(name, defined[name], path)) end
            defined[name] = path
          end
        end
      end
      assert(defined["mcp_sidecar.ServerStatus"], "the generated types are missing")
      assert(#wrong == 0, table.concat(wrong, "\n"))
    end,
  },
  {
    "annotations name the parameters of a function in order",
    function()
      local wrong = {}
      for path, text in pairs(sources()) do
        local annotated = {}
        for line in vim.gsplit(text, "\n") do
          local name = line:match("^%s*%-%-%-@param ([%w_]+)")
          local parameters = line:match("^%s*local function [%w_]+(%b())") or line:match("^%s*function [%w_.:]+(%b())")
          if name then
            table.insert(annotated, name)
          elseif parameters then
            local has, at = vim.split(parameters:sub(2, -2), ", ", { trimempty = true }), 0
            for _, each in ipairs(annotated) do
              local place = vim.iter(ipairs(has)):find(function(_, parameter) return parameter == each end)
              if not place or place < at then
                table.insert(wrong, ("%s: `%s` in %s"):format(vim.fs.basename(path), each, vim.trim(line)))
              end
              at = place or at
            end
          end
          if not line:match("^%s*%-%-") then annotated = {} end
        end
      end
      assert(#wrong == 0, table.concat(wrong, "\n"))
    end,
  },
}
