#include "checker.h"

#include <algorithm>
#include <cstring>

namespace loom {
namespace {

constexpr size_t kKept = 50;
constexpr uint64_t kBoundaryBytes = 4096;
constexpr uint32_t kIncrementing = 1;
// The bits of the length word that belong to the write and to the read address.
constexpr uint32_t kAwLengths = 0x00C700FF, kArLengths = 0x0338FF00;
constexpr uint32_t kAwIds = 0x0000FFFF, kArIds = 0xFFFF0000;

std::string hex(uint64_t value) {
  char text[20];
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

void Violations::add(int port, uint64_t edge, const std::string& text) {
  if (++count_ <= kKept)
    texts_.push_back("port " + std::to_string(port) + ", edge " + std::to_string(edge) + ": " + text);
}

std::string Violations::text() const {
  std::string all;
  for (const auto& line : texts_) all += (all.empty() ? "" : "\n") + line;
  if (count_ > kKept) all += "\nand " + std::to_string(count_ - kKept) + " more";
  return all;
}

void Checker::stable(uint64_t edge, const char* channel, bool was, bool is, bool same) {
  if (!was) return;
  if (!is)
    violations_.add(port_, edge, std::string(channel) + "valid fell before " + channel + "ready");
  else if (!same)
    violations_.add(port_, edge, std::string(channel) + " changed while it waited for " + channel + "ready");
}

void Checker::edge(uint64_t edge, const uint32_t* request, uint32_t ready) {
  reset_edges_ = 0;
  const uint32_t flags = request[kRequestFlags];
  if (waiting_) {
    const uint32_t* held = held_.data();
    const auto same = [&](int word, uint32_t mask) { return !((held[word] ^ request[word]) & mask); };
    stable(edge, "aw", waiting_ & kAwValid, flags & kAwValid,
           same(kRequestLengths, kAwLengths) && same(kRequestIds, kAwIds) && same(kRequestAw, ~0u) &&
               same(kRequestAw + 1, ~0u));
    stable(edge, "ar", waiting_ & kArValid, flags & kArValid,
           same(kRequestLengths, kArLengths) && same(kRequestIds, kArIds) && same(kRequestAr, ~0u) &&
               same(kRequestAr + 1, ~0u));
    const size_t words = (data_bytes_ + 31) / 32 + data_bytes_ / 4;
    stable(edge, "w", waiting_ & kWValid, flags & kWValid,
           same(kRequestFlags, kWLast) && !std::memcmp(held + kRequestStrobe, request + kRequestStrobe, words * 4));
  }
  waiting_ = 0;
  if (!(ready & kAwReady)) waiting_ |= flags & kAwValid;
  if (!(ready & kWReady)) waiting_ |= flags & kWValid;
  if (!(ready & kArReady)) waiting_ |= flags & kArValid;
  if (waiting_) held_.assign(request, request + kRequestStrobe + (data_bytes_ + 31) / 32 + data_bytes_ / 4);
}

void Checker::reset(uint64_t edge, const uint32_t* request) {
  waiting_ = 0;
  if (reset_edges_ < 2) ++reset_edges_;
  if (reset_edges_ == 2 && request[kRequestFlags] & (kAwValid | kWValid | kArValid))
    violations_.add(port_, edge, "a valid is high during reset");
}

bool Checker::address(uint64_t edge, const char* channel, uint64_t address, uint32_t length, uint32_t size,
                      uint32_t burst) {
  const uint64_t bytes = uint64_t{length + 1} * data_bytes_;
  const uint64_t start = address & ~uint64_t{data_bytes_ - 1};
  const std::string at = std::string(channel) + " burst at " + hex(address) + " of " + std::to_string(length + 1) +
                         " beats ";
  if (length + 1 > max_beats_) violations_.add(port_, edge, at + "is longer than " + std::to_string(max_beats_));
  if (start / kBoundaryBytes != (start + bytes - 1) / kBoundaryBytes)
    violations_.add(port_, edge, at + "crosses a 4 KiB boundary");
  if ((1u << size) != data_bytes_)
    violations_.add(port_, edge, at + "has beats of " + std::to_string(1u << size) + " bytes on a port of " +
                                     std::to_string(data_bytes_));
  if (burst != kIncrementing) violations_.add(port_, edge, at + "is not incrementing");
  if (address < first_ || start - first_ + bytes > bytes_) {
    violations_.add(port_, edge, at + "is outside the memory's " + hex(first_) + " to " + hex(first_ + bytes_));
    return false;
  }
  return true;
}

void Checker::last(uint64_t edge, bool is, bool should_be) {
  if (is && !should_be) violations_.add(port_, edge, "wlast before the last beat of the burst");
  if (!is && should_be) violations_.add(port_, edge, "the last beat of a burst without wlast");
}

void Checker::end(uint64_t edge, size_t reads, size_t unfinished, size_t unanswered) {
  if (reads) violations_.add(port_, edge, "the run ended with " + std::to_string(reads) + " reads under way");
  if (unfinished)
    violations_.add(port_, edge, "the run ended with " + std::to_string(unfinished) + " writes short of data");
  if (unanswered)
    violations_.add(port_, edge, "the run ended with " + std::to_string(unanswered) +
                                     " writes whose response was not taken");
}

}  // namespace loom
