// Values of a message that lie in a device's memory. A worker and a server of one process pass
// them beside the message's bytes (Buffer::device_values), so that no row goes through the host.
// Tested by tests/server/device_service_test.cc
// Tested by tests/proto/runtime/transport/inproc_transport_test.cc
#ifndef STRATA_PROTO_WIRE_DEVICE_VALUES_H_
#define STRATA_PROTO_WIRE_DEVICE_VALUES_H_

#include <memory>
#include <string>
#include <vector>

namespace strata {

// Opaque to transports, of which only those inside a process carry it. Immutable.
//
// In the reply to OpenSession: the server takes such values, of that device; no groups.
// In a pull: where the rows of each group go, (keys, dim) floats in memory of that device, which
// the server has written when it replies; such a group of the reply has no value bytes. The pull's
// codec is float32. With a ticket the groups are the ticket's. A call that ended without the
// server's reply (its time was over) may still be written there as long as anybody holds this.
// In a push: the sums of each group, (keys, push dim) floats, which are there when it is sent and
// do not change while anybody holds this; such a group has no value bytes, and its checksum is that
// of its keys alone. A server without that device, or whose rows do not lie on it, answers
// FAILED_PRECONDITION. Only groups of table 0 have a place. What leaves the process has none: a
// request is refused (INVALID_ARGUMENT), a reply loses them.
struct DeviceValues {
  std::string device;          // its UUID (ops/cuda/api/api.h); "host": threads that stand for one
  std::vector<float*> groups;  // by group of the message, in order; null: its values are in it
  std::shared_ptr<const void> owner;  // keeps the memory
};

}  // namespace strata

#endif  // STRATA_PROTO_WIRE_DEVICE_VALUES_H_
