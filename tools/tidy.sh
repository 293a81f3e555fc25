#!/usr/bin/env bash
# Runs clang-tidy over those of the files named on standard input that are ours to lint: tidy.sh BUILD_DIR < files.
# Host code of the library and its programs; tests repeat themselves on purpose, and .cu files are nvcc's.
set -euo pipefail
include=$1/include
mapfile -t files < <(grep -E '^(core|allocator|cpu|autograd|nn|optim|data|distributed|serving|tools|examples)/.*\.(h|cpp)$|^taper\.h$' || true)
[ ${#files[@]} -gt 0 ] || { echo "no file to look at"; exit 0; }
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 1 sh -c '
  output=$(clang-tidy-14 --quiet "$1" -- -x c++ -std=c++20 -I"$0" -DTAPER_ISA=baseline -DTAPER_HAVE_BASELINE=1 2>&1) ||
    { printf "%s\n" "$output" | grep -vE "^[0-9]+ warnings? (and|treated|generated)|^Error while|^Suppressed"; exit 1; }' "$include"
echo "${#files[@]} files"
