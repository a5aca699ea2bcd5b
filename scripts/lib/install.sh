# shellcheck shell=bash
# For scripts that install pinned packages into a folder of the user's cache. A script sets `name` (of the folder, and of
# the folder in scripts/ with the lock files), `recipe` (incremented when its steps change, so that old installs are
# rebuilt) and `without` (how to do without them), and defines `list`, which prints KEY=path lines. Then it sources this
# file, which handles -q and -h, sets `here`, `dest` and `log`, and waits until no other run uses the folder. If everything
# is installed, it prints the list and ends the script. Otherwise the script runs its steps and calls `finish`.

say() { [ -n "${quiet:-}" ] || printf 'get-%s: %s\n' "$name" "$*" >&2; }
die() {
  printf 'get-%s: error: %s\n' "$name" "$*" >&2
  printf 'get-%s: %s\n' "$name" "$without" >&2
  exit 1
}

case ${1:-} in
  -h | --help) sed -n '2,/^set -e/{/^set -e/!s/^# \{0,1\}//p}' "$0"; exit 0 ;;
  -q | --quiet) quiet=1 ;;
  '') ;;
  *) die "unknown option $1 (see --help)" ;;
esac

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dest=${XDG_CACHE_HOME:-$HOME/.cache}/mcp-sidecar/$name
# Not every folder has both lock files.
locks() { cat "$here/$name"/{package-lock.json,requirements.txt} 2>/dev/null || true; }
want="recipe=$recipe $(locks | sha256sum | cut -c1-16)"

ready() { [ -f "$dest/READY" ] && [ "$(<"$dest/READY")" = "$want" ]; }
if ready; then list; exit 0; fi

for tool in node npm python3 flock; do
  command -v "$tool" >/dev/null || die "$tool is not on the PATH"
done
node -e 'process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)' || die "node $(node --version) is too old: version 20 or newer is required"
python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
  die "python3 3.10 or newer with venv is required (Debian: apt-get install python3-venv)"

mkdir -p "$(dirname "$dest")"
exec 9>"$dest.lock"
if ! flock -n 9; then
  say "another run is using $dest; waiting for it"
  flock -w 600 9 || die "another run has held $dest.lock for ten minutes"
fi
if ready; then list; exit 0; fi

# A virtual environment contains its own path, so everything is built in its final place. READY is written last.
rm -rf "$dest"
mkdir -p "$dest/bin"
log=$dest/log

step() { # step "description" command...: prints the output only if it fails
  local what=$1 from=$SECONDS
  shift
  "$@" >>"$log" 2>&1 || { tail -n 40 "$log" >&2; die "$what: failed (see above)"; }
  say "$what ($((SECONDS - from)) s)"
}
install_npm() { # install_npm ci|install [option...]
  cp "$here/$name/package.json" "$here/$name/package-lock.json" "$dest/" &&
    (cd "$dest" && npm "$@" --no-audit --no-fund --loglevel error)
}
install_python() {
  python3 -m venv "$dest/venv" &&
    "$dest/venv/bin/pip" --disable-pip-version-check install --quiet -r "$here/$name/requirements.txt"
}
wrapper() { # wrapper NAME PROGRAM ARGUMENT: creates bin/NAME, which runs them
  printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$2" "$3" >"$dest/bin/$1" && chmod 755 "$dest/bin/$1"
}
finish() {
  rm -f "$log"
  printf '%s\n' "$want" >"$dest/READY"
  say "ready in $dest ($(du -sh "$dest" | cut -f1))"
  list
}
