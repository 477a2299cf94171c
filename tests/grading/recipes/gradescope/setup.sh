#!/usr/bin/env bash
# Runs once, when Gradescope builds the autograder's image.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)" # /autograder

apt-get update -q
apt-get install -y -q python3 python3-venv
python3 -m venv "$root/venv"
wheels=("$root"/source/attncli-*.whl)
if [ -e "${wheels[0]}" ]; then # carried in the zip: this very version
    "$root/venv/bin/pip" install --quiet "${wheels[0]}"
else
    "$root/venv/bin/pip" install --quiet attncli
fi
