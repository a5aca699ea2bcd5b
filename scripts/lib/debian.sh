# shellcheck shell=bash
# For scripts that print the path of a program of a Debian package. A script sets `name` (of the folder in the user's cache),
# `recipe` (incremented when its steps change, so that an old copy is rebuilt), `program` (the file in the folder's bin/) and
# `without` (how to do without it). Then it sources this file, which handles -h and sets `dest` and `from`. `unpack` downloads
# packages and their missing dependencies with a private apt state, and unpacks them into $dest/root. It installs nothing on
# the system and does not need root.

say() { printf 'get-%s: %s\n' "$name" "$*" >&2; }
die() {
  say "error: $*"
  say "$without"
  exit 1
}

case ${1:-} in
  '') ;;
  -h | --help) sed -n '2,/^set -e/{/^set -e/!s/^# \{0,1\}//p}' "$0"; exit 0 ;;
  *) die "unknown argument $1" ;;
esac

dest=${XDG_CACHE_HOME:-$HOME/.cache}/mcp-sidecar/$name
from=$SECONDS
return_if_ready() {
  if [ -f "$dest/READY" ] && [ "$(head -n1 "$dest/READY")" = "recipe=$recipe" ]; then
    echo "$dest/bin/$program"
    exit 0
  fi
}

# Uses the machine's sources, keys, proxies and list of installed packages. Package lists and archives are private.
apt() {
  LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -q \
    -o Dir::State::lists="$dest/apt/lists" -o Dir::Cache="$dest/apt/cache" -o Dir::Cache::archives=archives/ \
    -o Debug::NoLocking=1 -o APT::Sandbox::User=root -o APT::Install-Recommends=false -o Acquire::Languages=none \
    -o APT::Update::Post-Invoke::= -o APT::Update::Post-Invoke-Success::= -o DPkg::Post-Invoke::= \
    -o APT::Keep-Downloaded-Packages=true -o Acquire::Retries=3 "$@" </dev/null >>"$dest/apt/log" 2>&1 ||
    { tail -n 15 "$dest/apt/log" >&2; return 1; }
}

unpack() { # unpack PACKAGE...: prints the path and ends the script if a current copy exists
  local tool deb debs
  return_if_ready
  for tool in apt-get dpkg-deb flock; do
    command -v "$tool" >/dev/null || die "$program is not on the PATH, and $tool is needed to download it"
  done
  mkdir -p "$(dirname "$dest")"
  exec 9>"$dest.lock"
  if ! flock -n 9; then
    say "another run is using $dest; waiting for it"
    flock -w 600 9 || die "another run has held $dest.lock for ten minutes"
  fi
  return_if_ready
  rm -rf "$dest"
  mkdir -p "$dest"/{bin,apt/lists/partial,apt/cache/archives/partial}
  apt update || die "cannot read the package lists of this machine's apt sources"
  apt -y --download-only install "$@" || die "apt could not download $program and its dependencies"
  shopt -s nullglob
  debs=("$dest"/apt/cache/archives/*.deb)
  [ "${#debs[@]}" -gt 0 ] || die "apt downloaded nothing, although $program is not on the PATH"
  for deb in "${debs[@]}"; do
    dpkg-deb --extract "$deb" "$dest/root" || die "cannot unpack ${deb##*/}"
  done
  rm -rf "$dest/apt" "$dest/root/usr/share/"{doc,man,locale}
}

libraries() { find "$dest/root" -name 'lib*.so*' -exec dirname {} + | sort -u; }

finish() { # checks that the program starts, and prints its path
  local version
  chmod 755 "$dest/bin/$program"
  version=$("$dest/bin/$program" --version 2>&1) || { echo "$version" >&2; die "the unpacked $program does not start"; }
  printf 'recipe=%s\n%s\n' "$recipe" "$version" >"$dest/READY"
  say "$version is ready in $dest ($((SECONDS - from)) s, $(du -sh "$dest" | cut -f1))"
  echo "$dest/bin/$program"
}
