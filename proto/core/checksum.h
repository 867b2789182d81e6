// CRC32C (Castagnoli polynomial, reflected, as in iSCSI, RFC 3720): the checksum of the wire, the
// update log, images and checkpoints.
#ifndef STRATA_PROTO_CORE_CHECKSUM_H_
#define STRATA_PROTO_CORE_CHECKSUM_H_

#include <cstdint>
#include <span>

namespace strata {

// Checksum of A + B from the checksum of A: Crc32cExtend(Crc32c(A), B) == Crc32c(A + B).
// Uses the processor's CRC instruction, three streams at a time. Any thread.
uint32_t Crc32cExtend(uint32_t crc, std::span<const uint8_t> bytes);

// 0 for no bytes.
inline uint32_t Crc32c(std::span<const uint8_t> bytes) { return Crc32cExtend(0, bytes); }

// Copies `bytes` to `to` (which must not overlap them) in the same pass: for memory that is not in
// the caches half the price of a checksum and a memcpy.
uint32_t Crc32cCopy(uint32_t crc, std::span<const uint8_t> bytes, uint8_t* to);

// Checksum of A + B from those of A and B, without their bytes: some 100 ns.
uint32_t Crc32cJoin(uint32_t crc_a, uint32_t crc_b, uint64_t bytes_b);

// The same by table, one byte at a time: what tests hold the fast one against.
uint32_t Crc32cExtendPortable(uint32_t crc, std::span<const uint8_t> bytes);

}  // namespace strata

#endif  // STRATA_PROTO_CORE_CHECKSUM_H_
