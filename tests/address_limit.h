// A process that may not map much more memory.
#ifndef STRATA_TESTS_ADDRESS_LIMIT_H_
#define STRATA_TESTS_ADDRESS_LIMIT_H_

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

namespace strata {

// While this lives, the process gets at most `more_bytes` of address space beyond what it has
// (RLIMIT_AS): what malloc does not keep free already is refused by the kernel. Not under
// sanitizers, whose shadow memory and allocators do not stand that: set() is false then, and
// reason() says why.
class AddressLimit {
 public:
  explicit AddressLimit(size_t more_bytes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    static_cast<void>(more_bytes);
    reason_ = "a sanitizer's allocator ends the process where memory is refused";
#else
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    if (pages == 0 || getrlimit(RLIMIT_AS, &before_) != 0) {
      reason_ = "the kernel does not say what is mapped";
      return;
    }
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<uint64_t>(getpagesize()) + more_bytes;
    set_ = setrlimit(RLIMIT_AS, &limit) == 0;
    if (!set_) reason_ = std::string("cannot limit memory: ") + std::strerror(errno);
#endif
  }
  ~AddressLimit() {
    if (set_) setrlimit(RLIMIT_AS, &before_);
  }
  AddressLimit(const AddressLimit&) = delete;
  AddressLimit& operator=(const AddressLimit&) = delete;

  bool set() const { return set_; }
  const std::string& reason() const { return reason_; }

 private:
  rlimit before_ = {};
  bool set_ = false;
  std::string reason_;
};

}  // namespace strata

#endif  // STRATA_TESTS_ADDRESS_LIMIT_H_
