#include "port.h"

#include <algorithm>
#include <cstring>

namespace loom {
namespace {

uint64_t address_of(const uint32_t* request, int word) {
  return request[word] | static_cast<uint64_t>(request[word + 1]) << 32;
}

constexpr uint8_t kSlvErr = 2, kDecErr = 3;

std::string field(const char* name, uint64_t value) { return std::string("\"") + name + "\":" + std::to_string(value); }

}  // namespace

Port::Port(int index, uint32_t data_bytes, uint64_t base, uint8_t* store, Backend& backend, Checker checker,
           Jitter jitter, Tampers& tampers, Trace* trace)
    : index_(index), data_bytes_(data_bytes), strobe_words_((data_bytes + 31) / 32), base_(base), store_(store),
      backend_(backend), checker_(checker), jitter_(jitter), tampers_(tampers), trace_(trace) {}

void Port::Latency::add(uint64_t edges) {
  ++count;
  sum += edges;
  least = std::min(least, edges);
  most = std::max(most, edges);
}

std::string Port::Latency::json(const char* name) const {
  const std::string prefix = name;
  return field((prefix + "_latency_count").c_str(), count) + "," +
         field((prefix + "_latency_cycles_sum").c_str(), sum) + "," +
         field((prefix + "_latency_cycles_min").c_str(), count ? least : 0) + "," +
         field((prefix + "_latency_cycles_max").c_str(), most);
}

std::unique_ptr<Transaction> Port::fresh() {
  if (spare_.empty()) return std::make_unique<Transaction>();
  auto transaction = std::move(spare_.back());
  spare_.pop_back();
  auto data = std::move(transaction->data);
  auto strobe = std::move(transaction->strobe);
  *transaction = Transaction();
  transaction->data = std::move(data);
  transaction->strobe = std::move(strobe);
  return transaction;
}

void Port::drop(std::deque<std::unique_ptr<Transaction>>& queue, Transaction* transaction) {
  const auto entry =
      std::find_if(queue.begin(), queue.end(), [&](const auto& held) { return held.get() == transaction; });
  spare_.push_back(std::move(*entry));
  queue.erase(entry);
}

Transaction* Port::accept(uint64_t edge, bool write, uint64_t address, uint32_t length, uint32_t id) {
  auto& queue = write ? writes_ : reads_;
  queue.push_back(fresh());
  Transaction* transaction = queue.back().get();
  transaction->address = (address & ~uint64_t{data_bytes_ - 1}) - base_;
  transaction->bytes = (length + 1) * data_bytes_;
  transaction->port = static_cast<uint16_t>(index_);
  transaction->id = static_cast<uint16_t>(id);
  transaction->write = write;
  transaction->accept_edge = edge;
  uint64_t& refuse = write ? refuse_write_ : refuse_read_;
  if (refuse != ~uint64_t{0} && refuse-- == 0) transaction->answer = write ? kDecErr : kSlvErr;
  if (write) {
    transaction->data.resize(transaction->bytes);
    transaction->strobe.assign((transaction->bytes + 31) / 32, 0);
  }
  return transaction;
}

void Port::record(uint64_t edge, AxiChannel channel, const Transaction& transaction, uint32_t at, uint32_t bytes) {
  if (trace_) trace_->add(edge, base_ + transaction.address + at, bytes, index_, channel, waited_[channel]);
  waited_[channel] = 0;
}

void Port::stalled(uint64_t& counter, AxiChannel channel) {
  ++counter;
  ++waited_[channel];
}

void Port::take_data(uint64_t edge, const uint32_t* request) {
  Transaction& transaction = *writes_[filling_];
  const uint32_t at = transaction.bytes_moved;
  std::memcpy(&transaction.data[at], request + kRequestStrobe + strobe_words_, data_bytes_);
  if (data_bytes_ >= 32)
    std::memcpy(&transaction.strobe[at / 32], request + kRequestStrobe, strobe_words_ * 4);
  else
    transaction.strobe[at / 32] |= request[kRequestStrobe] << at % 32;
  record(edge, kW, transaction, at, data_bytes_);
  transaction.bytes_moved += data_bytes_;
  ++counters_.write_beats;
  counters_.write_bytes += data_bytes_;
  const bool last = transaction.bytes_moved == transaction.bytes;
  checker_.last(edge, request[kRequestFlags] & kWLast, last);
  backend_.write_data(&transaction, data_bytes_);
  if (!last) return;
  ++filling_;
  transaction.last_edge = edge;
  transaction.hold_edge = edge + jitter_.latency();
  // The bytes change at some moment before the response: as late as possible, or in jitter mode also as early.
  if (jitter_.on() && jitter_.below(2))
    for (size_t i = 0; i < filling_; ++i)  // those of one identifier in their order
      if (writes_[i]->id == transaction.id) commit(*writes_[i]);
}

void Port::take(uint64_t edge, const uint32_t* request, const uint32_t* response) {
  const uint32_t flags = request[kRequestFlags], shown = response[kResponseFlags];
  if (!(flags & (kAwValid | kWValid | kArValid)) && !(shown & (kBValid | kRValid))) {
    checker_.edge(edge, request, shown);
    return;
  }
  steady_ = false;
  checker_.edge(edge, request, shown);
  if (flags & kArValid) {
    if (shown & kArReady) {
      const uint32_t lengths = request[kRequestLengths];
      const uint64_t address = address_of(request, kRequestAr);
      ++counters_.read_bursts;
      if (checker_.address(edge, "ar", address, lengths >> 8 & 255, lengths >> 19 & 7, lengths >> 24 & 3)) {
        Transaction* transaction = accept(edge, false, address, lengths >> 8 & 255, request[kRequestIds] >> 16);
        transaction->hold_edge = edge + jitter_.latency();
        ids_ |= uint64_t{1} << transaction->id % 64;
        record(edge, kAr, *transaction, 0, transaction->bytes);
        tampers_.read(transaction->address);
        backend_.read(transaction);
      }
    } else {
      stalled(counters_.read_address_stall, kAr);
    }
  }
  // Data before its address handshake is not taken, so that data of this edge belong to an earlier address.
  if (flags & kWValid) {
    if (shown & kWReady)
      take_data(edge, request);
    else
      stalled(counters_.write_data_stall, kW);
  }
  if (flags & kAwValid) {
    if (shown & kAwReady) {
      const uint32_t lengths = request[kRequestLengths];
      const uint64_t address = address_of(request, kRequestAw);
      ++counters_.write_bursts;
      if (checker_.address(edge, "aw", address, lengths & 255, lengths >> 16 & 7, lengths >> 22 & 3)) {
        Transaction* transaction = accept(edge, true, address, lengths & 255, request[kRequestIds] & 0xFFFF);
        record(edge, kAw, *transaction, 0, transaction->bytes);
        backend_.write(transaction);
      }
    } else {
      stalled(counters_.write_address_stall, kAw);
    }
  }
  if (shown & kRValid) {
    if (flags & kRReady) {
      Transaction* transaction = reading_;
      record(edge, kR, *transaction, transaction->bytes_moved, data_bytes_);
      transaction->bytes_moved += data_bytes_;
      ++counters_.read_beats;
      counters_.read_bytes += data_bytes_;
      reading_ = nullptr;
      backend_.read_taken(transaction, data_bytes_);
      if (transaction->bytes_moved == transaction->bytes) drop(reads_, transaction);
    } else {
      stalled(counters_.read_data_stall, kR);
    }
  }
  if (shown & kBValid) {
    if (flags & kBReady) {
      record(edge, kB, *responding_, 0, 0);
      backend_.write_taken(responding_);
      drop(writes_, responding_);
      --filling_;
      responding_ = nullptr;
    } else {
      stalled(counters_.response_stall, kB);
    }
  }
}

void Port::commit(Transaction& transaction) {
  if (transaction.committed) return;
  transaction.committed = true;
  if (transaction.answer) return;
  uint8_t* to = store_ + transaction.address;
  for (uint32_t at = 0; at < transaction.bytes; at += 32) {
    const uint32_t strobe = transaction.strobe[at / 32];
    const uint32_t length = std::min<uint32_t>(32, transaction.bytes - at);
    if (strobe == ~0u && length == 32) {
      std::memcpy(to + at, &transaction.data[at], 32);
    } else {
      for (uint32_t i = 0; i < length; ++i)
        if (strobe >> i & 1) to[at + i] = transaction.data[at + i];
    }
  }
}

// The read that shows a beat next: of those that are the oldest of their identifier and have data, the one already
// begun, else the oldest; in jitter mode any.
Transaction* Port::next_read(uint64_t edge) {
  ready_.clear();
  uint64_t seen = 0;
  for (size_t i = 0; i < reads_.size() && seen != ids_; ++i) {
    Transaction* transaction = reads_[i].get();
    const uint64_t id = uint64_t{1} << transaction->id % 64;
    const bool oldest = !(seen & id);
    seen |= id;
    if (!oldest || transaction->bytes_ready < transaction->bytes_moved + data_bytes_ || transaction->hold_edge > edge)
      continue;
    if (!jitter_.on() && transaction->presenting) return transaction;
    ready_.push_back(transaction);
  }
  if (ready_.empty()) return nullptr;
  return ready_[jitter_.on() ? jitter_.below(static_cast<uint32_t>(ready_.size())) : 0];
}

Transaction* Port::next_write(uint64_t edge) {
  ready_.clear();
  uint64_t seen = 0;
  for (size_t i = 0; i < filling_; ++i) {
    Transaction* transaction = writes_[i].get();
    const uint64_t id = uint64_t{1} << transaction->id % 64;
    const bool oldest = !(seen & id);
    seen |= id;
    if (!oldest || !transaction->answered || transaction->hold_edge > edge) continue;
    if (!jitter_.on()) return transaction;
    ready_.push_back(transaction);
  }
  if (ready_.empty()) return nullptr;
  return ready_[jitter_.below(static_cast<uint32_t>(ready_.size()))];
}

void Port::show(uint64_t edge, uint32_t* response) {
  uint32_t flags = 0;
  const auto ready = [&](AxiChannel channel, bool room) { return room && !jitter_.stalls(channel); };
  if (ready(kAw, backend_.write_room(index_))) flags |= kAwReady;
  if (ready(kW, filling_ < writes_.size() && backend_.data_room(index_))) flags |= kWReady;
  if (ready(kAr, backend_.read_room(index_))) flags |= kArReady;

  if (!reading_ && !reads_.empty()) {
    if (!jitter_.stalls(kR)) reading_ = next_read(edge);
    if (reading_) {
      if (!reading_->presenting) counters_.read.add(edge + 1 - reading_->accept_edge);
      reading_->presenting = true;
      std::memcpy(response + kResponseData, store_ + reading_->address + reading_->bytes_moved, data_bytes_);
      if (wrong(*reading_))
        for (uint32_t i = 0; i < data_bytes_ / 4; ++i) response[kResponseData + i] ^= ~0u;
    } else {
      ++counters_.read_wait;
    }
  }
  if (reading_) {
    flags |= kRValid;
    if (reading_->bytes_moved + data_bytes_ == reading_->bytes) flags |= kRLast;
    if (wrong(*reading_)) flags |= uint32_t{reading_->answer} << kRRespShift;
    response[kResponseIds] = (response[kResponseIds] & 0xFFFF) | static_cast<uint32_t>(reading_->id) << 16;
  }
  if (!responding_ && filling_ && !jitter_.stalls(kB)) {
    responding_ = next_write(edge);
    if (responding_) {
      counters_.write.add(edge + 1 - responding_->last_edge);
      commit(*responding_);
    }
  }
  if (responding_) {
    flags |= kBValid | uint32_t{responding_->answer} << kBRespShift;
    response[kResponseIds] = (response[kResponseIds] & 0xFFFF0000) | responding_->id;
  }
  steady_ = response[kResponseFlags] == flags && !(flags & (kRValid | kBValid));
  response[kResponseFlags] = flags;
}

void Port::reset(uint64_t edge, const uint32_t* request, uint32_t* response) {
  checker_.reset(edge, request);
  reads_.clear();
  writes_.clear();
  filling_ = 0;
  reading_ = responding_ = nullptr;
  steady_ = false;
  response[kResponseFlags] = 0;
}

void Port::end(uint64_t edge) { checker_.end(edge, reads_.size(), writes_.size() - filling_, filling_); }

std::string Port::counters() const {
  const Counters& c = counters_;
  return "{" + field("read_bytes", c.read_bytes) + "," + field("write_bytes", c.write_bytes) + "," +
         field("read_beats", c.read_beats) + "," + field("write_beats", c.write_beats) + "," +
         field("read_bursts", c.read_bursts) + "," + field("write_bursts", c.write_bursts) + "," +
         field("read_data_stall_cycles", c.read_data_stall) + "," +
         field("write_data_stall_cycles", c.write_data_stall) + "," +
         field("read_address_stall_cycles", c.read_address_stall) + "," +
         field("write_address_stall_cycles", c.write_address_stall) + "," +
         field("response_stall_cycles", c.response_stall) + "," + field("read_wait_cycles", c.read_wait) + "," +
         c.read.json("read") + "," + c.write.json("write") + "}";
}

}  // namespace loom
