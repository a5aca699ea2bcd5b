-- The plugin as plugin managers install it: from the root of the repository, without a binary on the PATH.
local Child = require("child")

local options = ("{ lens = false, cmd = %q }"):format(Child.binary)

---What lazy.nvim does with a plugin: finds its main module, loads it at its command or when one of its modules is
---required, and passes `opts` to `setup`. MCP_SIDECAR_LAZY names a folder with lazy.nvim itself.
local emulated = [[
  local dir, opts, on_command = ...
  local loaded
  local function normalized(name) return (name:lower():gsub("[^a-z]+", "")) end
  local function load()
    if loaded then return end
    loaded = true
    pcall(vim.api.nvim_del_user_command, "Mcp")
    vim.opt.runtimepath:prepend(dir)
    for _, file in ipairs(vim.fn.glob(dir .. "/plugin/**/*.lua", false, true)) do vim.cmd.source(file) end
    local main = {}
    for name, kind in vim.fs.dir(dir .. "/lua") do
      local module = name:gsub("%.lua$", "")
      if kind == "directory" and not vim.uv.fs_stat(dir .. "/lua/" .. name .. "/init.lua") then module = nil end
      if module and normalized(module) == normalized("mcp-sidecar") then main = { module } end
    end
    assert(#main == 1, "no main module")
    require(main[1]).setup(opts)
  end
  table.insert(package.loaders, 2, function(module)
    if loaded then return end
    for _, path in ipairs({ "/lua/" .. module:gsub("%.", "/") .. ".lua", "/lua/" .. module:gsub("%.", "/") .. "/init.lua" }) do
      if vim.uv.fs_stat(dir .. path) then
        load()
        local known = package.loaded[module]
        return known and function() return known end or loadfile(dir .. path)
      end
    end
  end)
  if not on_command then return load() end
  vim.api.nvim_create_user_command("Mcp", function(event)
    load()
    vim.cmd.Mcp({ args = event.fargs })
  end, { nargs = "*" })
]]

local function lazy(on_command)
  return function(place)
    local dir, real = place .. "/plugins/mcp-sidecar", vim.env.MCP_SIDECAR_LAZY
    Child.copy_repository(dir)
    if not real then return ("loadstring(%q)(%q, %s, %s)"):format(emulated, dir, options, tostring(on_command)) end
    return ([[
      vim.opt.runtimepath:prepend(%q)
      require("lazy").setup({ { dir = %q, name = "mcp-sidecar", opts = %s, cmd = %s, lazy = %s } }, {
        root = %q, lockfile = %q, rocks = { enabled = false }, change_detection = { enabled = false },
        install = { missing = false }, performance = { rtp = { reset = false } },
      })
    ]]):format(
      real,
      dir,
      options,
      on_command and '"Mcp"' or "nil",
      tostring(on_command),
      place .. "/plugins",
      place .. "/lock.json"
    )
  end
end

local function pack_start(place)
  Child.copy_repository(place .. "/xdg/nvim/site/pack/mine/start/mcp-sidecar")
  return ("require('mcp_sidecar').setup(%s)"):format(options)
end

---Clones the plugin from a local repository.
local function vim_pack(place)
  local from = place .. "/clone-me"
  Child.copy_repository(from)
  local function git(...)
    local who = { "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false" }
    local done = vim.system(vim.list_extend(vim.list_extend({ "git", "-C", from }, who), { ... })):wait()
    assert(done.code == 0, done.stderr)
  end
  git("init", "--quiet", "--initial-branch=main")
  git("add", "--all")
  git("commit", "--quiet", "--message=Start")
  local init = ([[
    vim.pack.add({ { src = "file://%s", name = "mcp-sidecar" } }, { confirm = false })
    require("mcp_sidecar").setup(%s)
  ]]):format(from, options)
  -- Installed at the first start. A Neovim that installs plugins cannot be driven by a test.
  vim.fn.writefile(vim.split(init, "\n"), place .. "/first.lua")
  local xdg = place .. "/xdg"
  local first = { vim.v.progpath, "--headless", "-u", place .. "/first.lua", "-i", "NONE", "-n", "+qall!" }
  local homes = { XDG_CONFIG_HOME = xdg, XDG_DATA_HOME = xdg, XDG_STATE_HOME = xdg, XDG_CACHE_HOME = xdg }
  local done = vim.system(first, { env = homes, text = true }):wait(20000)
  assert(done.code == 0, done.stderr)
  return init
end

---@param init fun(place: string): string
local function works(init)
  return function(open)
    local child = open({ init = init, user = Child.user_config })
    child:command("Mcp")
    child:connected("demo")
    child:sees("9 tools")
    assert(child:lua("return require('mcp_sidecar.config').get().lens") == false, "the options are not used")
    assert(child:lua("return require('mcp_sidecar.statusline').get()") == "mcp 1")
    assert(#child:lua("return require('mcp_sidecar').servers()") == 1, "another instance of the module")
    child:command("help mcp-sidecar")
    child:command("checkhealth mcp_sidecar")
    child:sees("set in vim.g.mcp_sidecar.cmd")
    assert(not child:text():find("ERROR", 1, true), child:text())
    local notes = child:lua("return notes")
    assert(#notes == 0, table.concat(notes, "\n"))
  end
end

local tests = {
  { "lazy.nvim: `opts` work, and the demo server starts without a binary on the PATH", works(lazy(false)) },
  { "lazy.nvim: `cmd` loads the plugin when the command is used", works(lazy(true)) },
  {
    "lazy.nvim: every public module can be required before the plugin is loaded",
    function(open)
      local modules = {}
      for _, path in ipairs(vim.fn.globpath(Child.repository .. "/lua", "**/*.lua", false, true)) do
        table.insert(modules, (path:match("/lua/(.*)%.lua$"):gsub("/init$", ""):gsub("/", ".")))
      end
      assert(#modules >= 6, vim.inspect(modules))
      for _, module in ipairs(modules) do
        local child = open({ init = lazy(true), user = Child.user_config })
        local kind = child:lua("return type(require(...))", module)
        assert(kind == "table", module)
        child:lua("assert(require(...) == require(...))", module, module)
      end
      local docs = vim.fn.readfile(Child.repository .. "/editors/nvim/doc/mcp-sidecar.txt")
      for module in table.concat(docs, "\n"):gmatch('require%("(mcp_sidecar[%w_.]*)"%)') do
        assert(vim.list_contains(modules, module), module .. " is in the help, but not at the root of the repository")
      end
    end,
  },
  { "a plugin in pack/*/start works, with options that are set in init.lua", works(pack_start) },
}
if vim.fn.has("nvim-0.11") == 1 then
  table.insert(tests, {
    "the config for nvim-lspconfig works without the plugin",
    function(open)
      local init = ([[
        vim.env.PATH = vim.fs.dirname(%q) .. ":" .. vim.env.PATH
        vim.opt.runtimepath:prepend(%q)
        vim.lsp.enable("mcp_sidecar")
      ]]):format(Child.binary, Child.repository .. "/editors/lspconfig")
      local child = open({
        init = function() return init end,
        project = '{ "servers": { "a": { "comand": "x" } } }',
        files = { ["other.json"] = "{}" },
      })
      child:command("edit mcp.json")
      child:wait("vim.diagnostic.get(0)[1].message:find('command', 1, true)")
      assert(child:lua("return vim.lsp.get_clients({ bufnr = 0 })[1].root_dir") == vim.uv.fs_realpath(child.workspace))
      child:command("edit other.json")
      assert(#child:lua("return vim.lsp.get_clients({ bufnr = 0 })") == 0)
      assert(child:lua("return vim.fn.exists(':Mcp')") == 0)
    end,
  })
end
if vim.fn.has("nvim-0.12") == 1 then
  table.insert(tests, { "vim.pack clones the plugin and its options work", works(vim_pack) })
end
return tests
