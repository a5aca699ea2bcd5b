--- Downloads the binary of a release for this platform, and checks it against the checksum of the release.

local binary = require("mcp_sidecar.binary")
local config = require("mcp_sidecar.config")

local M = {}

local CONNECT_S, DOWNLOAD_S, MOST = 15, 600, "200M"
local SUMS = "SHA256SUMS"

---@alias mcp_sidecar.Installed fun(problem?: string)

local systems = {
  Linux = "unknown-linux-gnu",
  Darwin = "apple-darwin",
  Windows_NT = "pc-windows-msvc",
}
local machines = { x86_64 = "x86_64", amd64 = "x86_64", aarch64 = "aarch64", arm64 = "aarch64" }

---The name of the archive for this platform.
---@return string? name, string? problem
local function archive()
  local platform = vim.uv.os_uname()
  local system, machine = systems[platform.sysname], machines[platform.machine:lower()]
  if system and machine then return ("mcp-sidecar-%s-%s-%s.tar.gz"):format(binary.version, machine, system) end
  return nil, ("there is no release for %s on %s"):format(platform.sysname, platform.machine)
end

---Where the release is: in the options, else in the repository that the plugin was cloned from.
---@param origin? string the URL of that repository
---@return string? url, string? problem
function M.release_of(origin)
  local url = config.get().release_url
  if not url and origin then
    local page =
      vim.trim(origin):gsub("^%l+://[^/]*@", "https://"):gsub("^%w+@([^:/]+):", "https://%1/"):gsub("%.git$", "")
    url = page:match("^https://[^/]+/.+") and page .. "/releases/download" or nil
  end
  if not url then return nil, "no release is known: set vim.g.mcp_sidecar.release_url" end
  local is_local = url:match("^http://127%.0%.0%.1[:/]") or url:match("^http://localhost[:/]")
  if not is_local and not url:match("^https://") then
    return nil, "vim.g.mcp_sidecar.release_url must be an https URL"
  end
  return ("%s/v%s/"):format(url:gsub("/$", ""), binary.version)
end

---Runs a program; continues with its output.
---@param command string[]
---@param failed fun(problem: string)
---@param done fun(output: string)
local function run(command, failed, done)
  local program = command[1] or ""
  if vim.fn.executable(program) == 0 then return failed(("`%s` is not installed"):format(program)) end
  vim.system(command, { text = true }, function(ended)
    vim.schedule(function()
      if ended.code == 0 then return done(ended.stdout or "") end
      local why = vim.trim(ended.stderr or ""):gsub("^curl: %(%d+%) ", ""):match("[^\n]*")
      failed(why ~= "" and why or ("`%s` failed with code %d"):format(program, ended.code))
    end)
  end)
end

local function download(url, to, failed, done)
  local protocol = url:match("^http:") and "=http" or "=https"
  run({
    "curl",
    "--fail",
    "--silent",
    "--show-error",
    "--location",
    "--proto",
    protocol,
    "--proto-redir",
    protocol,
    "--connect-timeout",
    tostring(CONNECT_S),
    "--max-time",
    tostring(DOWNLOAD_S),
    "--max-filesize",
    MOST,
    "--output",
    to,
    url,
  }, function(why) failed(("cannot download %s: %s"):format(url, why)) end, done)
end

---The SHA-256 of a file, by a tool of the system.
---@param failed fun(problem: string)
---@param done fun(sum: string)
local function checksum(path, failed, done)
  local tools = { { "sha256sum", path }, { "shasum", "-a", "256", path }, { "certutil", "-hashfile", path, "SHA256" } }
  local tool = vim.iter(tools):find(function(each) return vim.fn.executable(each[1]) == 1 end)
  if not tool then return failed("cannot check the download: `sha256sum` is not installed") end
  run(tool, failed, function(output)
    local sum = output:lower():match("%f[%x]" .. ("%x"):rep(64) .. "%f[^%x]")
    if sum then return done(sum) end
    failed(("cannot check the download: `%s` did not print a checksum"):format(tool[1]))
  end)
end

---The checksum of a file in a list of them.
---@param list string
---@param name string
local function listed(list, name)
  for line in vim.gsplit(list, "\n") do
    local sum, each = line:match("^(%x+)%s+%*?(%S+)")
    if sum and #sum == 64 and each == name then return sum:lower() end
  end
end

---Moves a new binary to where `binary` looks for it, and removes those of other versions.
---@param folder string
---@param from string
---@return string? problem
local function put(folder, from)
  local program = binary.downloaded(folder)
  vim.fn.mkdir(vim.fs.dirname(program), "p")
  local ok, problem = vim.uv.fs_rename(from, program)
  if not ok then return ("cannot write %s: %s"):format(program, problem) end
  for name in vim.fs.dir(folder) do
    -- Another Neovim may still run one of them, or download one at this moment.
    if name:match("^%d") and name ~= binary.version then vim.fn.delete(folder .. "/" .. name, "rf") end
  end
end

---@param url string where the files of the release are
---@param name string of the archive
---@param done mcp_sidecar.Installed
local function fetch(url, name, done)
  local folder = vim
    .iter(binary.folders())
    :find(function(each) return pcall(vim.fn.mkdir, each, "p") and vim.uv.fs_access(each, "W") == true end)
  if not folder then return done("cannot write to " .. table.concat(binary.folders(), " or ")) end
  -- On the same file system as the destination, so that the binary appears at once and complete.
  local work = assert(vim.uv.fs_mkdtemp(folder .. "/part-XXXXXX"))
  local function finish(problem)
    vim.fn.delete(work, "rf")
    binary.forget()
    done(problem)
  end
  download(url .. SUMS, work .. "/" .. SUMS, finish, function()
    local sum = listed(table.concat(vim.fn.readfile(work .. "/" .. SUMS), "\n"), name)
    if not sum then return finish(("the release at %s has no %s"):format(url, name)) end
    download(url .. name, work .. "/" .. name, finish, function()
      checksum(work .. "/" .. name, finish, function(found)
        if found ~= sum then
          return finish(("%s does not match the checksum of the release; nothing was installed"):format(name))
        end
        run({ "tar", "-xzf", work .. "/" .. name, "-C", work }, finish, function()
          local unpacked = vim.fs.find(vim.fs.basename(binary.downloaded(folder)), { path = work, type = "file" })[1]
          if not unpacked then return finish(("%s does not contain mcp-sidecar"):format(name)) end
          finish(put(folder, unpacked))
        end)
      end)
    end)
  end)
end

---Downloads the binary that belongs to this plugin.
---@param done mcp_sidecar.Installed
function M.download(done)
  local name, unknown = archive()
  if not name then return done(unknown) end
  local function from(origin)
    local url, problem = M.release_of(origin)
    if not url then return done(problem) end
    fetch(url, name, done)
  end
  run({ "git", "-C", binary.repository, "remote", "get-url", "origin" }, function() from(nil) end, from)
end

---Makes sure that there is a binary that fits: uses the one that there is, else downloads one.
---@param done mcp_sidecar.Installed
function M.ensure(done)
  binary.forget()
  if binary.cmd() then return done() end
  M.download(done)
end

---In one line of a narrow terminal, because a longer message waits for a key. `:checkhealth` shows the path.
---@param problem? string
local function outcome(problem)
  if not problem then return ("mcp-sidecar %s is ready; `:Mcp` opens the dashboard"):format(binary.version) end
  return problem .. "; install mcp-sidecar by hand (`:help mcp-sidecar-install`)"
end

---`:Mcp install`
function M.command()
  local client = require("mcp_sidecar.client")
  client.info(("installing mcp-sidecar %s…"):format(binary.version))
  M.ensure(function(problem)
    client.info(outcome(problem), problem and vim.log.levels.ERROR or nil)
    if not problem then client.enable() end
  end)
end

---@async
---For plugin managers. In a coroutine, as lazy.nvim runs it, the editor stays usable.
function M.build()
  local over, problem = false, nil
  M.ensure(function(why)
    over, problem = true, why
  end)
  if coroutine.running() and not over then
    coroutine.yield(("downloading mcp-sidecar %s"):format(binary.version))
    while not over do
      if coroutine.yield() == "abort" then error("aborted", 0) end
    end
  end
  vim.wait(DOWNLOAD_S * 1000, function() return over end, 20)
  if problem or not over then error(outcome(problem or "the download took too long"), 0) end
  return outcome()
end

return M
