// The C interface of the memory models: what loom_memory.sv calls through DPI-C and Python through ctypes.
//
// A memory is opened once by name; its parameters come from a text with one section a memory:
//
//     [hbm]
//     model = hbm
//     kernel_clock_khz = 300000
//     ...
//
// sim/memory/config.py writes that text and documents every key.  Pointers returned as text stay valid until the
// next call that returns text for the same memory.  No function throws; those that can fail return null or -1
// after printing the reason to stderr, or leave it in loom_errors.
#pragma once
#include <cstdint>

// Words of one port in the request vector: flags, lengths, ids, awaddr (2), araddr (2), strobes, data.
enum LoomRequestWord { kRequestFlags, kRequestLengths, kRequestIds, kRequestAw, kRequestAr = 5, kRequestStrobe = 7 };
enum LoomRequestFlag : uint32_t {
  kAwValid = 1, kWValid = 2, kBReady = 4, kArValid = 8, kRReady = 16, kWLast = 32
};
// Words of one port in the response vector: flags, ids, data.
enum LoomResponseWord { kResponseFlags, kResponseIds, kResponseData };
enum LoomResponseFlag : uint32_t {
  kAwReady = 1, kWReady = 2, kBValid = 4, kArReady = 8, kRValid = 16, kRLast = 32,
  kBRespShift = 6, kRRespShift = 8
};

extern "C" {
// Open the memory `name` with the parameters in the file that LOOM_MEMORY_CONFIG names.
void* loom_open(const char* name, int ports, int data_bits);
// The same with the parameters in `text`.
void* loom_open_text(const char* text, const char* name, int ports, int data_bits);
// Start over with other parameters, as if after power-up; the store keeps its bytes if its size stays. 0 or -1.
int loom_configure(void* memory, const char* text);
// One clock edge. Returns 1 if the response differs from the one before, else 0.
int loom_cycle(void* memory, int reset, const uint32_t* request, uint32_t* response);
// `edges` clock edges with nothing valid and ready high.
void loom_idle(void* memory, uint64_t edges);
// The open memory called `name`, or null.
void* loom_find(const char* name);
// The bytes of the memory; untouched pages read 0 and cost nothing.
uint8_t* loom_store(void* memory);
uint64_t loom_store_bytes(void* memory);
// Counters as JSON: {"edges":..,"ports":[{..}],"channels":[{..}]}.
const char* loom_counters(void* memory);
// Violations so far, one a line, empty if there are none; `at_end` adds what must not be open at the end of a run.
const char* loom_errors(void* memory, int at_end);
// At `port` the burst of reads, or of writes, after `skip` others is answered with an error. 0, or -1 if there is no
// such port.
int loom_refuse(void* memory, int port, int write, uint64_t skip);
// Close and free.
void loom_close(void* memory);
}
