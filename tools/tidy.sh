#!/usr/bin/env bash
# Runs clang-tidy over those of the files named on standard input that are ours to lint: tidy.sh BUILD_DIR < files.
# Host code of the library and its programs. Tests repeat themselves on purpose, examples are written as a
# user writes, and .cu files are nvcc's.
set -euo pipefail
include=$1/include
mapfile -t files < <(grep -E '^(core|allocator|cpu|autograd|nn|optim|data|distributed|serving|tools)/.*\.(h|cpp)$|^taper\.h$' |
  grep -v '^tools/golden/' || true)
# A header is read with its own .cpp where both are named.
mapfile -t files < <(for file in "${files[@]}"; do
  [[ $file == *.h && " ${files[*]} " == *" ${file%.h}.cpp "* ]] || printf '%s\n' "$file"
done)
[ ${#files[@]} -gt 0 ] || { echo "no file to look at"; exit 0; }

# A complaint about a header comes once from every file that includes it: shown once.
complaints=$(printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 sh -c '
  clang-tidy-14 --quiet "$@" -- -x c++ -std=c++20 -I"$0" -DTAPER_ISA=baseline -DTAPER_HAVE_BASELINE=1 2>/dev/null' \
  "$include" | grep -E '^[^ ].*: (error|warning): ' | sed -E "s#^.*include/taper/##; s#^$PWD/##" | sort -u || true)
[ -z "$complaints" ] || { printf '%s\n' "$complaints"; exit 1; }
echo "${#files[@]} files"
