#!/bin/sh
# Makes the virtual environment in the folder it is started in: exactly the pinned packages.
set -eu
python3 -m venv venv
venv/bin/python -m pip install --quiet --require-hashes --only-binary :all: -r requirements.txt
