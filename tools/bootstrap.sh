#!/bin/sh
# Makes .venv from requirements.lock, on a bare machine too; in no time if nothing has changed.
# POSIX sh, because on a bare machine there is no Python yet.
set -eu
cd "$(dirname "$0")/.."

say() { echo "espha: $1"; }
fail() { echo "espha: $1" >&2; exit 1; }

# ensurepip is what Debian keeps out of python3 and puts into python3-venv
has_python() {
    command -v "${PYTHON:-python3}" >/dev/null 2>&1 && "${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null
}

missing=
has_python || missing="$missing python3 python3-venv"
command -v make >/dev/null 2>&1 || missing="$missing make"
command -v javac >/dev/null 2>&1 || missing="$missing openjdk-17-jdk-headless"
command -v mvn >/dev/null 2>&1 || missing="$missing maven"
[ -f /etc/ssl/certs/ca-certificates.crt ] || [ ! -d /etc/apt ] || missing="$missing ca-certificates"

if [ -n "$missing" ]; then
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || fail \
        "missing on this machine:$missing; install them (as root on Debian: apt-get install$missing)"
    say "installing$missing"
    log=$(mktemp)
    # the list has no spaces inside its words
    # shellcheck disable=SC2086
    if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends $missing; } >"$log" 2>&1 </dev/null; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        fail "apt-get could not install$missing; see above"
    fi
    rm -f "$log"
fi

python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "Python 3.11 or newer is needed, $python is $("$python" -V 2>&1); name another: PYTHON=… make"

exec "$python" -m tools.venv
