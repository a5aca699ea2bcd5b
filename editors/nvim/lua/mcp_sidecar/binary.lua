--- Which binary runs: the one in the options, else the first one that fits this plugin. `install` downloads one.

local config = require("mcp_sidecar.config")

local M = {}

---The version of this plugin, and of the binary that belongs to it.
M.version = "0.2.0"

---@class mcp_sidecar.Candidate a place where a binary can be
---@field program string
---@field place string where it is, in words
---@field version? string that it reports
---@field problem? string why it is not used

local here = vim.fn.fnamemodify(assert(debug.getinfo(1, "S")).source:sub(2), ":p")

---The repository of this plugin.
M.repository = vim.fs.normalize(vim.fn.fnamemodify(here, ":h:h:h:h:h"))

local file = vim.fn.has("win32") == 1 and "mcp-sidecar.exe" or "mcp-sidecar"

---The folders for downloaded binaries, each in a folder with its version. The second one is for a plugin that is
---installed in a folder that the user cannot write to.
---@return string[]
function M.folders()
  local data = vim.fs.normalize(vim.fn.stdpath("data") --[[@as string]])
  return { M.repository .. "/bin", data .. "/mcp_sidecar/bin" }
end

---@param folder string
---@return string
function M.downloaded(folder) return ("%s/%s/%s"):format(folder, M.version, file) end

---Whether a binary understands everything that this plugin sends: the same minor version, and not older.
---@param version string
local function fits(version)
  local found, own = vim.version.parse(version), assert(vim.version.parse(M.version))
  return found ~= nil and found.major == own.major and found.minor == own.minor and vim.version.ge(found, own)
end

---@type table<string, { time: integer, version?: string, problem?: string }?>
local known = {}

---The version that a program reports. Runs it once for each version of its file.
---@param program string
---@return string? version, string? problem
local function version_of(program)
  local stat = vim.uv.fs_stat(program)
  local time = stat and stat.mtime.sec or 0
  local seen = known[program]
  if not seen or seen.time ~= time then
    local ok, done = pcall(function() return vim.system({ program, "--version" }, { text = true }):wait(5000) end)
    local version = ok and done.code == 0 and (done.stdout or ""):match("^mcp%-sidecar (%S+)") or nil
    seen = { time = time, version = version, problem = not version and "`--version` fails" or nil }
    known[program] = seen
  end
  return seen.version, seen.problem
end

---@param program string
---@param place string
---@return mcp_sidecar.Candidate
local function candidate(program, place)
  local version, problem = version_of(program)
  if version and not fits(version) then problem = ("is version %s, not %s"):format(version, M.version) end
  return { program = program, place = place, version = version, problem = problem }
end

---Every binary that there is, in the order of the search. Stops at the first one that fits.
---@return mcp_sidecar.Candidate[]
function M.candidates()
  local places = { { vim.fn.exepath("mcp-sidecar"), "on the PATH" } }
  for _, profile in ipairs({ "release", "debug" }) do
    local program = ("%s/target/%s/%s"):format(M.repository, profile, file)
    table.insert(places, { program, "built in the plugin's folder" })
  end
  for _, folder in ipairs(M.folders()) do
    table.insert(places, { M.downloaded(folder), "downloaded by the plugin" })
  end
  local found = {}
  for _, place in ipairs(places) do
    if place[1] ~= "" and vim.fn.executable(place[1]) == 1 then
      table.insert(found, candidate(place[1], place[2]))
      if not found[#found].problem then break end
    end
  end
  return found
end

---The command line that the user has set, or why it cannot be used.
---@param given string|string[]
---@return string[]? cmd, string? problem
local function given_command(given)
  ---@type string[]
  local words = type(given) == "table" and given or { given }
  local program = vim.fs.normalize(words[1] or "")
  if vim.fn.executable(program) == 1 then return vim.list_extend({ program }, words, 2) end
  return nil, ("`%s` in vim.g.mcp_sidecar.cmd cannot be executed"):format(program)
end

---@type string?
local last

---The command line of the sidecar, or what to do when there is none.
---@return string[]? cmd, string? problem
function M.cmd()
  local given = config.get().cmd
  if given then return given_command(given) end
  -- Each file that is opened asks.
  if last and vim.fn.executable(last) == 1 then return { last } end
  local found = M.candidates()
  local best = found[#found]
  last = best and not best.problem and best.program or nil
  if last then return { last } end
  local what = best and ("mcp-sidecar %s is needed"):format(M.version) or "mcp-sidecar is not installed"
  return nil, what .. ": run `:Mcp install` (`:help mcp-sidecar-install`)"
end

---Searches again, after something was installed.
function M.forget() last = nil end

return M
