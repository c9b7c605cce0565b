// Multiply-accumulators of many lanes by their function: loops over lanes, which a compiler vectorizes.
//
// A call is a clock edge: arguments are the hardware's inputs at it, results its registers after it.
// Vectors wait in rings as long as they take through the hardware's pipelines, and are not moved.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#ifdef __GNUC__
#pragma GCC optimize("O3")  // simulators of short runs are built without optimizing
#endif

static_assert(std::endian::native == std::endian::little, "lanes are bytes of a vector's words");

namespace {

int32_t dot(const int8_t* one, const int8_t* other, int lanes) {
  int32_t sum = 0;
  for (int n = 0; n < lanes; n++) sum += one[n] * other[n];
  return sum;
}

void multiply_add(int64_t* sums, const int8_t* values, int32_t factor, int lanes) {
  for (int n = 0; n < lanes; n++) sums[n] += factor * values[n];
}

// The last vectors or steps, by their age in cycles.
template <class Word, int kDepth>
class Ring {
 public:
  Word& operator[](int age) { return words_[(now_ + kDepth - age) % kDepth]; }
  void advance() { now_ = (now_ + 1) % kDepth; }

 private:
  Word words_[kDepth] = {};
  int now_ = 0;
};

// LoomDots: vectors of one or two rows that stay, each in some places, and the vector that passes.
struct Dots {
  static constexpr int kMostLatency = 32;

  int rows, lanes, latency;
  std::vector<int8_t> places, factors;
  Ring<int32_t[2], kMostLatency> results;

  Dots(int rows, int lanes, int places, int latency)
      : rows(rows), lanes(lanes), latency(latency), places(places * rows * lanes), factors(rows * lanes) {}
};

// LoomSums: the sums of a row's lanes, and those of two tiles that are finished.
struct Sums {
  struct Step {
    uint32_t part, last_part;
    bool turn, first, ends, last;
  };
  static constexpr int kDepth = 8;

  int lanes, folds, bits, merge_lanes;
  bool turns;
  Ring<std::vector<int8_t>, kDepth> values;
  Ring<int32_t, kDepth> factors;
  Ring<Step, kDepth> steps;
  Step early = {};  // whose turn it is, in a register of the multiplier, which reset does not reach
  // With turns the sum in P, the one in C and those that rest behind it; else one for each part.
  std::vector<std::vector<int64_t>> sums;
  std::vector<int64_t> sum, finished;
  std::vector<uint64_t> partial;
  bool coming = false, reading = true, written = true;
  int shown = -1;  // bank and step of the merge at the output

  Sums(int lanes, int folds, int bits, int merge_lanes, bool turns)
      : lanes(lanes), folds(folds), bits(bits), merge_lanes(merge_lanes), turns(turns),
        sums(folds < 2 ? 2 : folds, std::vector<int64_t>(lanes)), sum(lanes), finished(2 * folds * lanes),
        partial(merge_lanes * bits / 64 + 1) {
    for (int age = 0; age < kDepth; age++) values[age].resize(lanes);
  }

  int64_t* tile(bool bank, int part) { return &finished[(part * 2 + bank) * lanes]; }

  void add(std::vector<int64_t>& to, bool first, int age) {
    if (first) std::memset(to.data(), 0, lanes * sizeof(int64_t));
    if (factors[age] != 0) multiply_add(to.data(), values[age + 1].data(), factors[age], lanes);
  }

  void take_turns(const Step& step) {
    if (folds <= 2 && early.turn && step.turn) {
      std::swap(sums[0], sums[1]);
    } else if (early.turn || step.turn) {
      sum = sums[0];
      if (early.turn) sums[0] = sums[1];
      if (step.turn) {
        sums[1] = step.last_part >= 2 && int(step.last_part) < folds ? sums[step.last_part] : sum;
        for (int n = folds - 1; n > 2; n--) sums[n] = sums[n - 1];
        if (folds > 2) sums[2] = sum;
      }
    }
    add(sums[0], early.first, 2);
  }

  void finish(const Step& step, const std::vector<int64_t>& of) {
    if (step.ends) {
      std::memcpy(tile(coming, step.part), of.data(), lanes * sizeof(int64_t));
      written = true;
    }
    coming ^= step.last;
  }

  void edge(bool reset, const unsigned* value, int32_t factor, const Step& step) {
    std::memcpy(values[0].data(), value, lanes);
    factors[0] = factor;
    steps[0] = step;
    const Step done = steps[3];
    if (turns) {
      finish(done, sums[0]);
      take_turns(steps[2]);
    } else {
      add(sums[done.part], done.first, 3);
      finish(done, sums[done.part]);
    }
    early = steps[1];
    if (reset) {
      for (int age = 0; age < 3; age++) steps[age] = {};
      coming = false;
    }
    values.advance();
    factors.advance();
    steps.advance();
  }

  // Puts the lanes of a step of the merge to `partial`; false if they are there.
  bool merge(bool reset, bool begins, int step) {
    const bool held = reset || reading;
    reading = reset || reading != begins;
    if (step >= folds * lanes / merge_lanes) step = 0;
    if (!written && shown == (step << 1 | held)) return false;
    shown = step << 1 | held;
    written = false;
    const int first = step * merge_lanes;
    const int64_t* from = tile(held, first / lanes) + first % lanes;
    std::fill(partial.begin(), partial.end(), 0);
    for (int lane = 0, bit = 0; lane < merge_lanes; lane++, bit += bits) {
      const uint64_t word = static_cast<uint64_t>(from[lane]) & ((uint64_t{1} << bits) - 1);
      partial[bit / 64] |= word << bit % 64;
      if (bit % 64 + bits > 64) partial[bit / 64 + 1] |= word >> (64 - bit % 64);
    }
    return true;
  }
};

}  // namespace

// A handle is a pointer, in a number of SystemVerilog.
long long loom_dots_open(int rows, int lanes, int places, int latency) {
  return reinterpret_cast<long long>(new Dots(rows, lanes, places, latency));
}

// The first row's result is in the low half.
long long loom_dots(long long handle, const unsigned* vector, const unsigned* put, int place, int load, int pick,
                    int picked) {
  Dots& dots = *reinterpret_cast<Dots*>(handle);
  const int lanes = dots.lanes;
  if (pick) std::memcpy(dots.factors.data(), &dots.places[picked * dots.rows * lanes], dots.factors.size());
  for (int row = 0; row < dots.rows; row++) {
    if (load >> row & 1) std::memcpy(&dots.places[(place * dots.rows + row) * lanes], put, lanes);
    dots.results[0][row] = dot(&dots.factors[row * lanes], reinterpret_cast<const int8_t*>(vector), lanes);
  }
  const int32_t* found = dots.results[dots.latency - 1];
  const uint64_t result = static_cast<uint32_t>(found[0]) | static_cast<uint64_t>(found[1]) << 32;
  dots.results.advance();
  return static_cast<long long>(result);
}

long long loom_sums_open(int lanes, int folds, int bits, int merge_lanes, int turns) {
  return reinterpret_cast<long long>(new Sums(lanes, folds, bits, merge_lanes, turns != 0));
}

// Whether the finished sums at the output have changed: `loom_sums_word` has them then.
int loom_sums(long long handle, int reset, const unsigned* value, int factor, int step, int merge_begins,
              int merge_step) {
  Sums& sums = *reinterpret_cast<Sums*>(handle);
  const uint32_t part = step & 7;
  const Sums::Step taken = {part < uint32_t(sums.folds) ? part : 0,
                            static_cast<uint32_t>(step) >> 3 & 7,
                            (step >> 6 & 1) != 0,
                            (step >> 7 & 1) != 0,
                            (step >> 8 & 1) != 0,
                            (step >> 9 & 1) != 0};
  sums.edge(reset != 0, value, factor, taken);
  return sums.merge(reset != 0, merge_begins != 0, merge_step);
}

long long loom_sums_word(long long handle, int number) {
  return static_cast<long long>(reinterpret_cast<Sums*>(handle)->partial[number]);
}
