// What every DataTransport must do. An implementation registers by calling RunTransportConformance
// from a test case of its own.
#ifndef STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_TRANSPORT_CONFORMANCE_H_
#define STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_TRANSPORT_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <string>

#include "proto/runtime/transport/transport.h"

namespace strata::testing {

struct TransportUnderTest {
  std::function<std::unique_ptr<DataTransport>()> make;
  // An address that nothing listens on; each call gives another one.
  std::function<std::string()> free_address;
  // Error texts are compared up to this size.
  size_t max_error_text = 0;
};

// Runs as Catch2 sections of the calling test case.
void RunTransportConformance(const TransportUnderTest& under_test);

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_RUNTIME_TRANSPORT_TRANSPORT_CONFORMANCE_H_
