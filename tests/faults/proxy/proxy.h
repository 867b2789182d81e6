// A TCP proxy on loopback between any two processes, which does to their connections what networks
// do. Thread-safe; one thread of its own. Errors of the machine throw in Start and Lead.
//
// Processes come to it in two ways: by a port of its own for one address (Lead), or by the library
// detour.cc, which leads all connections that a process makes on loopback to detour().
#ifndef STRATA_TESTS_FAULTS_PROXY_PROXY_H_
#define STRATA_TESTS_FAULTS_PROXY_PROXY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "tests/faults/proxy/network_fault.h"

namespace strata::testing {

class Proxy {
 public:
  struct Traffic {
    uint64_t connections = 0;
    uint64_t requests = 0, replies = 0;  // bytes that were passed on
  };

  static std::unique_ptr<Proxy> Start();
  virtual ~Proxy() = default;

  // For detour.cc.
  virtual std::string detour() const = 0;
  // A new address that leads to `link.to`.
  virtual std::string Lead(const NetworkLink& link) = 0;
  // Begins a fault on all connections of the link, also on those that come while it lasts. It is
  // over by itself. Its number.
  virtual uint64_t Begin(const NetworkLink& link, const NetworkFault& fault) = 0;
  virtual FaultMet MetBy(uint64_t fault) const = 0;
  // Of connections of the link since the start.
  virtual Traffic Passed(const NetworkLink& link) const = 0;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_FAULTS_PROXY_PROXY_H_
