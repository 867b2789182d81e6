#include "tools/bench/base/limits.h"

#include <fcntl.h>
#include <immintrin.h>
#include <openssl/evp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace strata::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs body(thread) on all threads at once, each until `seconds` have passed; the sum of the rates.
double Together(size_t threads, const std::function<double(size_t)>& rate) {
  std::vector<double> rates(threads);
  std::vector<std::thread> team;
  for (size_t t = 0; t < threads; ++t) {
    team.emplace_back([&, t] { rates[t] = rate(t); });
  }
  for (std::thread& t : team) t.join();
  double sum = 0;
  for (double r : rates) sum += r;
  return sum;
}

// Memory in huge pages where the kernel gives them.
class Pages {
 public:
  explicit Pages(size_t bytes) : bytes_(bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    data_ = p == MAP_FAILED ? nullptr : static_cast<char*>(p);
    if (data_ == nullptr) return;
    madvise(data_, bytes, MADV_HUGEPAGE);
    std::memset(data_, 1, bytes);
  }
  ~Pages() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  char* data() { return data_; }

 private:
  size_t bytes_;
  char* data_;
};

__attribute__((target("avx512f"))) double Fma512(double seconds) {
  __m512 acc[16];
  for (int i = 0; i < 16; ++i) acc[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  const auto start = Clock::now();
  uint64_t n = 0;
  while (Since(start) < seconds) {
    for (int r = 0; r < 20000; ++r) {
#pragma GCC unroll 16  // without it the accumulators live in memory
      for (int i = 0; i < 16; ++i) acc[i] = _mm512_fmadd_ps(acc[i], a, b);
    }
    n += 20000;
  }
  const double elapsed = Since(start);
  volatile float keep = 0;
  for (int i = 0; i < 16; ++i) keep = keep + _mm512_cvtss_f32(acc[i]);
  return static_cast<double>(n) * 16 * 16 * 2 / elapsed / 1e9;
}

double Fma256(double seconds) {
  __m256 acc[12];
  for (int i = 0; i < 12; ++i) acc[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  const auto start = Clock::now();
  uint64_t n = 0;
  while (Since(start) < seconds) {
    for (int r = 0; r < 20000; ++r) {
#pragma GCC unroll 12
      for (int i = 0; i < 12; ++i) acc[i] = _mm256_fmadd_ps(acc[i], a, b);
    }
    n += 20000;
  }
  const double elapsed = Since(start);
  volatile float keep = 0;
  for (int i = 0; i < 12; ++i) keep = keep + _mm256_cvtss_f32(acc[i]);
  return static_cast<double>(n) * 12 * 8 * 2 / elapsed / 1e9;
}

}  // namespace

double FmaPeak(size_t threads, double seconds) {
  const bool wide = __builtin_cpu_supports("avx512f");
  return Together(threads, [&](size_t) { return wide ? Fma512(seconds) : Fma256(seconds); });
}

double CopyRate(size_t threads, double seconds) {
  return Together(threads, [&](size_t) {
    constexpr size_t kBytes = size_t{256} << 20;
    Pages from(kBytes), to(kBytes);
    const auto start = Clock::now();
    uint64_t bytes = 0;
    while (Since(start) < seconds) {
      std::memcpy(to.data(), from.data(), kBytes);
      bytes += kBytes;
    }
    return static_cast<double>(bytes) / Since(start) / 1e9;
  });
}

double GatherRate(size_t threads, size_t rows, double seconds) {
  Pages table(rows * 64);
  const char* base = table.data();
  return Together(threads, [&](size_t t) {
    constexpr size_t kBatch = 100000;
    constexpr size_t kBatches = 16;  // one batch again and again would sit in the caches
    std::vector<uint32_t> index(kBatches * kBatch);
    uint64_t x = 88172645463325252ull + t * 977;
    for (uint32_t& i : index) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      i = static_cast<uint32_t>(x % rows);
    }
    Pages out(kBatch * 64);
    const auto start = Clock::now();
    uint64_t n = 0;
    while (Since(start) < seconds) {
      const uint32_t* batch = index.data() + n / kBatch % kBatches * kBatch;
      for (size_t i = 0; i < kBatch; ++i) {
        if (i + 24 < kBatch) __builtin_prefetch(base + size_t{batch[i + 24]} * 64);
        std::memcpy(out.data() + i * 64, base + size_t{batch[i]} * 64, 64);
      }
      n += kBatch;
    }
    return static_cast<double>(n) / Since(start) / 1e6;
  });
}

struct BareTable::Memory {
  Memory(size_t rows, int shift)
      : shift(shift),
        mask((size_t{1} << (64 - shift)) - 1),
        keys((mask + 1) * 8),
        values((mask + 1) * kLine) {
    std::memset(keys.data(), 0, (mask + 1) * 8);
    auto* k = reinterpret_cast<uint64_t*>(keys.data());
    for (size_t i = 0; i < rows; ++i) {
      size_t at = Home(KeyOf(i));
      while (k[at] != 0) at = (at + 1) & mask;
      k[at] = KeyOf(i);
    }
  }
  static constexpr size_t kLine = 64;
  static uint64_t KeyOf(uint64_t i) { return (i + 1) * 0xbf58476d1ce4e5b9ull | 1; }
  size_t Home(uint64_t key) const { return (key * 0x9e3779b97f4a7c15ull) >> shift; }

  const int shift;
  const size_t mask;
  Pages keys, values;
};

BareTable::BareTable(size_t rows)
    : memory_(std::make_shared<Memory>(rows, 64 - std::bit_width(rows * 3 / 2))), rows_(rows) {}

double BareTable::ReadRate(size_t threads, double seconds) const {
  constexpr size_t kBatch = 100'000, kSets = 16, kAhead = 32;
  Memory& m = *memory_;
  return Together(threads, [&](size_t thread) {
    std::vector<std::vector<uint64_t>> sets(kSets, std::vector<uint64_t>(kBatch + kAhead, 1));
    uint64_t x = 88172645463325252ull + thread;
    for (auto& set : sets) {
      for (size_t i = 0; i < kBatch; ++i) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        set[i] = Memory::KeyOf(x % rows_);
      }
    }
    Pages out(kBatch * Memory::kLine);
    const auto* keys = reinterpret_cast<const uint64_t*>(m.keys.data());
    uint64_t n = 0;
    const auto start = Clock::now();
    for (; Since(start) < seconds; n += kBatch) {
      const std::vector<uint64_t>& set = sets[n / kBatch % kSets];
      for (size_t i = 0; i < kBatch; ++i) {
        const size_t ahead = m.Home(set[i + kAhead]);
        __builtin_prefetch(&keys[ahead]);
        __builtin_prefetch(m.values.data() + ahead * Memory::kLine);
        size_t at = m.Home(set[i]);
        while (keys[at] != set[i]) at = (at + 1) & m.mask;
        std::memcpy(out.data() + i * Memory::kLine, m.values.data() + at * Memory::kLine,
                    Memory::kLine);
      }
    }
    return static_cast<double>(n) / Since(start) / 1e6;
  });
}

double AppendRate(const std::string& path, size_t chunk, double seconds) {
  constexpr uint64_t kMost = uint64_t{2} << 30;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0) return 0;
  const std::vector<char> bytes(chunk, 7);
  const auto start = Clock::now();
  uint64_t written = 0;
  while (Since(start) < seconds && written < kMost) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n <= 0) break;
    written += static_cast<uint64_t>(n);
  }
  const double elapsed = Since(start);
  close(fd);
  unlink(path.c_str());
  return static_cast<double>(written) / elapsed / 1e9;
}

double AesGcmRate(double seconds) {
  constexpr int kPiece = 16 << 10;
  std::vector<uint8_t> text(kPiece, 7), sealed(kPiece + 16);
  const uint8_t key[16] = {1};
  uint8_t nonce[12] = {}, tag[16];
  EVP_CIPHER_CTX* const cipher = EVP_CIPHER_CTX_new();
  EVP_EncryptInit_ex(cipher, EVP_aes_128_gcm(), nullptr, key, nonce);
  const Clock::time_point start = Clock::now();
  uint64_t pieces = 0;
  while (Since(start) < seconds) {
    for (int i = 0; i < 64; ++i, ++pieces) {
      std::memcpy(nonce, &pieces, sizeof(pieces));
      int out = 0;
      EVP_EncryptInit_ex(cipher, nullptr, nullptr, nullptr, nonce);
      EVP_EncryptUpdate(cipher, sealed.data(), &out, text.data(), kPiece);
      EVP_EncryptFinal_ex(cipher, sealed.data() + out, &out);
      EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, sizeof(tag), tag);
    }
  }
  const double rate = static_cast<double>(pieces) * kPiece / Since(start) / 1e9;
  EVP_CIPHER_CTX_free(cipher);
  return rate;
}

}  // namespace strata::bench
