#!/usr/bin/env bash
# Set up the virtual environment named by $1: the pinned packages, then this project, editable.
# Run by make whenever the pins or pyproject.toml are newer than the last set-up.
# PYTHON names the interpreter to use; otherwise the first one found that is new enough.
set -euo pipefail

venv=${1:-.venv}
pins=binder/requirements.txt
new_enough='import sys; sys.exit(sys.version_info < (3, 11))'

say() { printf '==> %s\n' "$*"; }
fail() {
    printf '\nSet-up stopped: %s\n' "$1" >&2
    shift
    for line in "$@"; do printf '    %s\n' "$line" >&2; done
    exit 1
}
works() { "$1" -c "$new_enough" >/dev/null 2>&1; }

find_python() {
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        if works "$candidate"; then
            printf '%s' "$candidate"
            return
        fi
    done
}

as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo "

# An environment of an earlier set-up is kept if it still runs and can install.
if ! { works "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1; }; then
    python=$(find_python)
    if [ -z "$python" ]; then
        fail "Python 3.11 or newer is needed, and ${PYTHON:-python3} is not that." \
            "Install one (Debian 12 and newer: ${as_root}apt-get install -y python3 python3-venv)," \
            "or name one that you have: make install PYTHON=/path/to/python3.12"
    fi
    if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        if command -v apt-get >/dev/null 2>&1; then
            package=$("$python" -c 'import sys; print(f"python3.{sys.version_info[1]}-venv")')
            fail "$python cannot make a virtual environment: Debian keeps that part in a package." \
                "Run this one command, then the same make command again:" \
                "${as_root}apt-get install -y $package" \
                "(if the package is not found: ${as_root}apt-get update, and once more)"
        fi
        fail "$python has no venv or ensurepip module, so it cannot make a virtual environment." \
            "Install the full Python, or name another: make install PYTHON=/path/to/python3.12"
    fi
    say "making a virtual environment in $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv" ||
        fail "the virtual environment could not be made; the reason stands above."
fi

# Of what pip says, a line for each package that it fetches; what goes wrong it says on stderr.
packages() {
    local line
    while IFS= read -r line; do
        case $line in
            "Collecting "* | "Processing "*) printf '    %s\n' "${line%% (from*}" ;;
            "Installing collected packages"*) printf '    writing them into %s\n' "$venv" ;;
        esac
    done
}

say "installing the pinned packages (a minute or two the first time)"
PYTHONUNBUFFERED=1 "$venv/bin/python" -m pip install --disable-pip-version-check -r "$pins" |
    packages ||
    fail "pip could not install the packages in $pins; the reason stands above." \
        "Without a network connection? Connect, and run the same make command again:" \
        "it goes on where it stopped."

say "installing agentlib itself, editable"
"$venv/bin/python" -m pip install --disable-pip-version-check --quiet \
    --no-deps --no-build-isolation --editable . ||
    fail "pip could not install this project; the reason stands above."

# JupyterLab would ask each new reader about its own news, on top of the page.
said=$("$venv/bin/python" -m jupyter labextension disable \
    "@jupyterlab/apputils-extension:announcements" 2>&1) ||
    fail "JupyterLab could not be configured; it said:" "$said"

touch "$venv/.up-to-date"
say "ready"
