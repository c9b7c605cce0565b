// What stands between a memory's kernel ports (port.h) and its model of time.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace loom {

// One burst of a kernel port, from the handshake of its address to its last answer.
struct Transaction {
  uint64_t address = 0;      // byte offset in the store, aligned to a beat
  uint32_t bytes = 0;        // length, whole beats
  uint32_t bytes_moved = 0;  // read: handed to the kernel; write: taken from it
  uint32_t bytes_ready = 0;  // read: delivered by the model, in order
  uint16_t port = 0;
  uint16_t id = 0;
  uint8_t answer = 0;        // of a write, and of a read's middle beat
  bool write = false;
  bool presenting = false;   // read: its first beat has been shown to the kernel
  bool answered = false;     // write: the model lets the response go
  bool committed = false;    // write: the store has the data
  uint32_t parts_left = 0;   // model: parts under way
  uint32_t reserved = 0;     // model: bytes of return buffer it holds
  uint64_t accept_edge = 0;  // address handshake
  uint64_t last_edge = 0;    // write: handshake of the last data
  uint64_t hold_edge = 0;    // jitter: no answer before this edge
  std::vector<uint8_t> data;     // write
  std::vector<uint32_t> strobe;  // write: one word of strobes for every 32 bytes
};

// Times are edges of the kernel clock. Within one edge the order of calls is: everything the kernel handed over at
// that edge, then `advance(edge + 1)`, which simulates up to the moment the kernel samples next.
class Backend {
 public:
  virtual ~Backend() = default;

  // Whether a port may hand over a read, a write, or a beat of write data at the next edge.
  virtual bool read_room(int port) const = 0;
  virtual bool write_room(int port) const = 0;
  virtual bool data_room(int port) const = 0;

  virtual void read(Transaction* transaction) = 0;
  virtual void write(Transaction* transaction) = 0;
  // A beat of `bytes` was taken into a write.
  virtual void write_data(Transaction* transaction, uint32_t bytes) = 0;
  // The kernel took `bytes` of a read; the transaction is gone after the call that completes it.
  virtual void read_taken(Transaction* transaction, uint32_t bytes) = 0;
  // The kernel took the response of a write; the transaction is gone after the call.
  virtual void write_taken(Transaction* transaction) = 0;

  virtual void advance(uint64_t edge) = 0;
  // Jump to an edge with nothing under way.
  virtual void skip(uint64_t edge) = 0;
  // Whether nothing is under way, so that `skip` may replace `advance`.
  virtual bool idle() const = 0;
  // Forget everything under way, as a reset does.
  virtual void reset() = 0;
  // JSON array of one object a channel.
  virtual std::string channel_counters() = 0;
};

}  // namespace loom
