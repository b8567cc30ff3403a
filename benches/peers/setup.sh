#!/bin/sh
# Installs what benches/peers/run measures beside throng, at the pinned versions, into target/benches.
# Needs node and npm, go, python3; takes about 700 MB.
set -eu
cd "$(dirname "$0")/../.."
built=$PWD/target/benches
mkdir -p "$built/artillery"

# Artillery without browsers, and without the scripts that fetch them.
cp benches/peers/artillery/package.json benches/peers/artillery/package-lock.json "$built/artillery"
npm ci --prefix "$built/artillery" --ignore-scripts --omit=optional --no-audit --no-fund

(cd benches/peers/k6 && go build -o "$built/k6" go.k6.io/k6)

python3 -m venv "$built/locust"
"$built/locust/bin/pip" install --quiet --no-deps --requirement benches/peers/locust/requirements.txt

# The server of the comparison over Socket.IO.
npm ci --prefix targets/river --no-audit --no-fund
cargo build --release --package throng
