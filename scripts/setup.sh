# Sourced by the other scripts: packages, configuring and building, once. Everything it says goes to stderr.
# The caller has set -euo pipefail and stands in the root of the source tree.

packages_of() {  # GROUP...: the packages of these groups
  awk -v groups=" $* " 'index(groups, " " $1 " ") { print $2 }' scripts/packages.txt
}

purposes_of() {  # GROUP...: the same, with what they are for
  awk -v groups=" $* " 'index(groups, " " $1 " ") { sub(/^[a-z]+ +/, "  "); print }' scripts/packages.txt
}

missing_packages() {  # GROUP...: those that are not installed
  local package
  for package in $(packages_of "$@"); do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done
}

quietly() {  # COMMAND...: shows its output only if it fails
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  if [ "$status" -ne 0 ]; then cat "$log" >&2; fi
  rm -f "$log"
  return "$status"
}

apt_get() {
  local patience=(-o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
  if [ "$(id -u)" -eq 0 ]; then
    quietly env DEBIAN_FRONTEND=noninteractive apt-get -qq "${patience[@]}" "$@" </dev/null
  else
    quietly sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq "${patience[@]}" "$@" </dev/null
  fi
}

install_packages() {  # GROUP...: installs what is missing, or says what that is; configuring finds out how bad it is
  local missing
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
  missing=$(missing_packages "$@" | tr '\n' ' ')
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    echo "These packages are missing, and only root can install them: apt-get install $missing" >&2
    return 1
  fi
  echo "installing $missing" >&2
  # shellcheck disable=SC2086  # a list of words
  { apt_get update && apt_get install -y --no-install-recommends $missing; } || {
    echo "Could not install them. By hand: apt-get install $missing" >&2
    return 1
  }
}

ensure_packages() {  # GROUP...: install_packages, unless that was done since packages.txt changed
  local stamp="build/.packages-${*: -1}"
  [ "$stamp" -nt scripts/packages.txt ] && return
  mkdir -p build
  if install_packages "$@"; then touch "$stamp"; fi
}

configure() {  # PRESET GROUPS CMAKE_ARGS...: exits with 2 when something is not installed
  local preset=$1 groups=$2
  shift 2
  # shellcheck disable=SC2086  # a list of words
  quietly cmake --preset "$preset" "$@" || {
    printf 'Configuring failed (above). Shardplan is built with these, by their Debian names:\n' >&2
    purposes_of $groups >&2
    exit 2
  }
}

ensure_configured() {  # PRESET GROUPS CMAKE_ARGS...: configure, unless these arguments were the last ones
  local stamp="build/$1/.configured"
  [ "$stamp" -nt CMakePresets.json ] && [ "$(cat "$stamp")" = "$*" ] && return
  configure "$@"
  echo "$*" >"$stamp"
}

one_at_a_time() {  # two calls at once would build over each other; held until release
  mkdir -p build
  exec 9>build/.lock
  if command -v flock >/dev/null; then flock 9; fi
}
