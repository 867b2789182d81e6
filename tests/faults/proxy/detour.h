// What detour.cc sends ahead of a connection: who makes it, and to which address.
#ifndef STRATA_TESTS_FAULTS_PROXY_DETOUR_H_
#define STRATA_TESTS_FAULTS_PROXY_DETOUR_H_

#include <cstddef>

namespace strata::testing {

// Two texts, each filled up with zeros.
inline constexpr size_t kDetourName = 40;
inline constexpr size_t kDetourAddress = 24;
inline constexpr size_t kDetourHead = kDetourName + kDetourAddress;

}  // namespace strata::testing

#endif  // STRATA_TESTS_FAULTS_PROXY_DETOUR_H_
