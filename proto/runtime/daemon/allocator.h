// How malloc treats big blocks.
#ifndef STRATA_PROTO_RUNTIME_DAEMON_ALLOCATOR_H_
#define STRATA_PROTO_RUNTIME_DAEMON_ALLOCATOR_H_

namespace strata {

// Tells glibc's malloc to keep freed megabyte blocks instead of giving them back to the kernel
// after every message. gRPC allocates what it receives by malloc, and mapping fresh pages for each
// message halves its throughput (measured: 283,000 page faults in a run by default, 26,000 with
// this). Since freed memory is kept, it is kept once: MallocArenas() arenas for all threads, where
// glibc would make one for nearly every thread, up to eight a core, and what one of them freed is
// of no use to the others (measured: RESULTS.md, Training with a DRAM limit). A main calls it
// first, before threads start.
void TuneAllocator();

// One for every eight cores.
int MallocArenas();

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_DAEMON_ALLOCATOR_H_
