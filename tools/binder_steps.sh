#!/usr/bin/env bash
# Do on this machine what Binder does in its image, in a fresh environment: install the pins, run
# postBuild, import the package, run the first notebook, and start JupyterLab once.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf -- '--> %s\n' "$*"; }

version=$(sed 's/^python-//' binder/runtime.txt)
python=python3
if "python$version" -c '' >/dev/null 2>&1; then python=python$version; fi

folder=$(mktemp -d)
server=""
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT

say "a fresh environment with $("$python" --version) (Binder's is $version)"
"$python" -m venv "$folder/env"
# Of the many packages only what runs is compiled, once.
unset PYTHONDONTWRITEBYTECODE
export PATH="$folder/env/bin:$PATH" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_COMPILE=1
export JUPYTER_PREFER_ENV_PATH=1 JUPYTER_RUNTIME_DIR="$folder/runtime" JUPYTER_CONFIG_DIR="$folder/config"

say "pip install -r binder/requirements.txt"
pip install --quiet -r binder/requirements.txt

say "binder/postBuild"
binder/postBuild

say "import agentlib, and its command line"
(cd "$folder" && python -c 'import agentlib' && agentlib --help >/dev/null)

say "the first notebook runs"
jupyter nbconvert --log-level=ERROR --to notebook --execute \
    --ExecutePreprocessor.store_widget_state=False --stdout \
    notebooks/00_start_here.ipynb >/dev/null

say "JupyterLab answers"
jupyter lab --no-browser --allow-root --port-retries=50 >"$folder/lab.log" 2>&1 &
server=$!
python - "$folder/lab.log" <<'PYTHON'
import re, sys, time, urllib.request
from pathlib import Path

log = Path(sys.argv[1])
for _ in range(300):
    found = re.search(r"http://127\.0\.0\.1:\d+/lab\S*", log.read_text(encoding="utf-8"))
    if found:
        break
    time.sleep(0.1)
else:
    sys.exit(log.read_text(encoding="utf-8") + "\nJupyterLab printed no address in 30 s")
with urllib.request.urlopen(found.group(), timeout=30) as answer:
    assert answer.status == 200, answer.status
PYTHON
say "Binder's steps are good"
