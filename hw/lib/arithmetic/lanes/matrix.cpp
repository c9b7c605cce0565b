// The array of `hw.network.matrix.array` by its function; see lanes.cpp for how models are called.
//
// A packet's words come cell by cell: of each two columns four weights each, the last inputs first; then, with
// parameters, a word of the scale and bias of each column, and one of their zero points.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#ifdef __GNUC__
#pragma GCC optimize("O3")  // simulators of short runs are built without optimizing
#endif

static_assert(std::endian::native == std::endian::little, "lanes are bytes of a vector's words");

namespace {

constexpr int kBeatInputs = 4, kCellColumns = 2, kBeatBytes = kBeatInputs * kCellColumns;
constexpr int kWordResults = 4;

struct Parameters {
  std::vector<int32_t> bias;
  std::vector<double> multiplier;
  std::vector<float> power, zero;

  explicit Parameters(int columns) : bias(columns), multiplier(columns), power(columns), zero(columns) {}
};

struct Matrix {
  static constexpr int kFirst = 2, kLast = 4, kAdopt = 8, kParameters = 16, kTwo = 32, kValid = 1, kShiftAt = 6;

  int inputs, columns, latency, now = 0;
  std::vector<int16_t> weights, next_weights, vectors;
  Parameters parameters, next_parameters;
  std::vector<uint32_t> sums;  // wrapped around like the gates' own
  std::vector<int16_t> results;  // a ring of the last `latency` cycles
  std::vector<uint8_t> present;

  Matrix(int inputs, int columns, int pixels, int latency)
      : inputs(inputs), columns(columns), latency(latency), weights(inputs * columns), next_weights(inputs * columns),
        vectors(2 * inputs), parameters(columns), next_parameters(columns), sums(pixels * columns),
        results(latency * columns), present(latency) {}

  void take(int number, const uint8_t* word) {
    const int beats = inputs / kBeatInputs;
    for (int cell = 0; cell < columns / kCellColumns; cell++, word += kBeatBytes) {
      if (number < beats) {
        for (int n = 0; n < kBeatBytes; n++) {
          const int column = cell * kCellColumns + n / kBeatInputs;
          const int input = inputs - kBeatInputs * (number + 1) + n % kBeatInputs;
          next_weights[column * inputs + input] = static_cast<int8_t>(word[n]);
        }
      } else if (number < beats + kCellColumns) {
        uint64_t field;
        std::memcpy(&field, word, sizeof field);
        const int column = cell * kCellColumns + number - beats, exponent = static_cast<int>(field >> 58 & 15);
        next_parameters.bias[column] = static_cast<int32_t>(field);
        next_parameters.multiplier[column] = static_cast<double>(field >> 32 & ((1 << 26) - 1));
        next_parameters.power[column] = std::ldexp(1.f, -3 * (exponent + 5));
      } else {
        for (int n = 0; n < kCellColumns; n++)
          next_parameters.zero[cell * kCellColumns + n] = static_cast<int8_t>(word[n]);
      }
    }
  }

  static int32_t dot(const int16_t* one, const int16_t* other, int count) {
    int32_t sum = 0;
    for (int n = 0; n < count; n++) sum += one[n] * other[n];
    return sum;
  }

  void work(const int8_t* first, const int8_t* second, int pixel, int step) {
    std::copy(first, first + inputs, vectors.begin());
    if (step & kTwo) std::copy(second, second + inputs, vectors.begin() + inputs);
    int16_t* const made = &results[now * columns];
    for (int column = 0; column < columns; column++) {
      const int16_t* vector = &vectors[(step & kTwo) && column >= columns / 2 ? inputs : 0];
      uint32_t& sum = sums[pixel * columns + column];
      if (step & kFirst) sum = static_cast<uint32_t>(parameters.bias[column]);
      sum += static_cast<uint32_t>(dot(vector, &weights[column * inputs], inputs)) << (step >> kShiftAt);
      if (step & kLast) {
        // The product of the two significands is exact in a double.
        const auto rounded = static_cast<float>(static_cast<int32_t>(sum));
        const auto product = static_cast<float>(rounded * parameters.multiplier[column]) * parameters.power[column];
        const float result = std::nearbyintf(product) + parameters.zero[column];
        made[column] = static_cast<int16_t>(std::clamp(result, -32768.f, 32767.f));
      }
    }
    present[now] = (step & kLast) != 0;
  }
};

}  // namespace

long long loom_matrix_open(int inputs, int columns, int pixels, int latency) {
  return reinterpret_cast<long long>(new Matrix(inputs, columns, pixels, latency));
}

// Whether there is a result for the next cycle: `loom_matrix_results` has it then.
int loom_matrix(long long handle, const unsigned* first, const unsigned* second, int pixel, int step,
                long long strobes, const unsigned* word) {
  Matrix& matrix = *reinterpret_cast<Matrix*>(handle);
  if (strobes) matrix.take(std::countr_zero(static_cast<uint64_t>(strobes)), reinterpret_cast<const uint8_t*>(word));
  if (step & Matrix::kAdopt) {
    matrix.weights = matrix.next_weights;
    if (step & Matrix::kParameters) matrix.parameters = matrix.next_parameters;
  }
  matrix.present[matrix.now] = 0;
  if (step & Matrix::kValid)
    matrix.work(reinterpret_cast<const int8_t*>(first), reinterpret_cast<const int8_t*>(second), pixel, step);
  matrix.now = (matrix.now + 1) % matrix.latency;
  return matrix.present[matrix.now];
}

long long loom_matrix_results(long long handle, int number) {
  const Matrix& matrix = *reinterpret_cast<Matrix*>(handle);
  long long found = 0;
  const int first = kWordResults * number, count = std::min(kWordResults, matrix.columns - first);
  std::memcpy(&found, &matrix.results[matrix.now * matrix.columns + first], count * sizeof(int16_t));
  return found;
}
