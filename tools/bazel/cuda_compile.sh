#!/bin/bash
# Compiles one source for GPUs: cuda_compile.sh OBJECT KERNELS PTX NVCC FLAGS... SOURCE
#
# Writes KERNELS, one line per kernel and architecture, and prints it:
#   ARCHITECTURE REGISTERS SPILL_STORE_BYTES SPILL_LOAD_BYTES STACK_BYTES SHARED_BYTES KERNEL
# and PTX, the kernels' PTX for the newest architecture. NVCC's messages are printed if it fails.
set -euo pipefail
object="$1" kernels="$2" ptx="$3"
shift 3
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

if ! "$@" -c -o "$object" --keep --keep-dir "$scratch" >"$scratch/log" 2>&1; then
  c++filt <"$scratch/log" >&2
  exit 1
fi
# What is neither a resource line nor empty is a message.
grep -vE '^(ptxas info|    [0-9]+ bytes stack frame|$)|\.(cc|cu|cpp|gpu|cubin|cudafe1)' "$scratch/log" >&2 || true

awk '
  /Compiling entry function/ {
    split($0, quoted, "\x27"); name = quoted[2]; architecture = quoted[4]
  }
  /bytes stack frame/ { stack = $1; stores = $5; loads = $9 }
  /Used [0-9]+ registers/ {
    match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5, RLENGTH - 5)
    shared = 0
    if (match($0, /[0-9]+ bytes smem/)) shared = substr($0, RSTART, RLENGTH - 11)
    print architecture, registers, stores, loads, stack, shared, name
  }' "$scratch/log" | c++filt | sort >"$kernels"
if [[ -s "$kernels" ]]; then
  sed 's/^/kernel: /' "$kernels" | cut -c1-160
fi
# Where there is one architecture, nvcc does not name it.
newest=("$scratch"/*compute_90.ptx)
[[ -e "${newest[0]}" ]] || newest=("$scratch"/*.ptx)
cat "${newest[@]}" >"$ptx"
