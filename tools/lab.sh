#!/bin/sh
# Open JupyterLab on the first notebook, on any machine; further arguments go to JupyterLab.
# A root account needs --allow-root; without a desktop there is no browser to start, and the
# address is printed instead.
set -eu

venv=${VENV:-.venv}
first=notebooks/00_start_here.ipynb

[ "$(id -u)" != 0 ] || set -- --allow-root "$@"

desktop=${DISPLAY:-}${WAYLAND_DISPLAY:-}
if [ "$(uname -s)" != Darwin ] && [ -z "$desktop" ]; then
    set -- --no-browser "$@"
    echo "==> no desktop here: open the address that JupyterLab prints below in a browser"
fi
echo "==> starting JupyterLab on $first (stop it with Ctrl-C)"

# The kernel is this environment's own, whatever else is installed for the user.
export JUPYTER_PREFER_ENV_PATH=1
exec "$venv/bin/python" -m jupyterlab --LabApp.default_url="/lab/tree/$first" "$@"
