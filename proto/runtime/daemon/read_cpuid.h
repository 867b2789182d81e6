// What the processor says of itself: apart from the check that asks it, so that a program of the
// tests can stand on an older processor by defining ReadCpuid itself.
// Tested by tests/proto/runtime/daemon/cpu_features_test.cc
#ifndef STRATA_PROTO_RUNTIME_DAEMON_READ_CPUID_H_
#define STRATA_PROTO_RUNTIME_DAEMON_READ_CPUID_H_

#include "proto/runtime/daemon/cpu_features.h"

namespace strata {

// What CPUID and XGETBV say here. Runs on every x86-64, before any other code of ours.
CpuidWords ReadCpuid();

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_DAEMON_READ_CPUID_H_
