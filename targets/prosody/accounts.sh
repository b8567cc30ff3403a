#!/bin/sh
# Accounts with passwords are files of Prosody's internal storage.
set -eu
if [ "$LAB_ACCOUNTS" = 0 ]; then exit 0; fi
mkdir -p "$LAB_DATA/localhost/accounts"
cd "$LAB_DATA/localhost/accounts"
awk -v n="$LAB_ACCOUNTS" 'BEGIN {
  for (i = 0; i < n; i++) {
    file = "u" i ".dat"
    print "return { [\"password\"] = \"secret\"; };" >file
    close(file)
  }
}'
