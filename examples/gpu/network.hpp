// The network that the worker serves, and what computes it: the processor (network_cpu.cpp) or a GPU (network_cuda.cu),
// which give the same numbers within a tolerance. examples/python/gpu_worker.py has the same network. It knows nothing
// of wirecall, and is C++17, which all of CUDA's compilers take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpu {

inline constexpr std::size_t kBatch = 32;  // calls
inline constexpr std::size_t kWords = 4096, kSide = 32, kPixels = kSide * kSide * 3, kHidden = 256, kSize = 64;

/// The matrices of three layers, row by row. They come from a seed, and are equal on all machines.
struct Weights {
  std::vector<float> words;   ///< kWords x kHidden
  std::vector<float> pixels;  ///< kPixels x kHidden
  std::vector<float> out;     ///< 2 kHidden x kSize
};
[[nodiscard]] Weights make_weights();

/// The input of one call.
struct Row {
  float words[kWords];           // how often a text has the words of each hash
  std::uint8_t pixels[kPixels];  // of an image: red, green and blue of each
};

/// The power iteration of one matrix: estimates of the principal direction of its rows.
class PowerIteration {
 public:
  virtual ~PowerIteration() = default;
  /// The next estimate, a unit vector of as many elements as the matrix has columns.
  [[nodiscard]] virtual std::vector<float> next() = 0;
};

/// Throws std::runtime_error where the device fails. Thread: one at a time; a PowerIteration may run beside it.
class Network {
 public:
  virtual ~Network() = default;
  /// What computes.
  [[nodiscard]] virtual std::string device() const = 0;
  /// Where the next batch is written: `count` rows of zeros, at most kBatch, in memory from which the device reads.
  [[nodiscard]] virtual Row* inputs(std::size_t count) = 0;
  /// The unit vectors of kSize for the first `count` rows of `inputs`, one behind the other; of zeros where a row is of
  /// zeros. They last until the next call.
  [[nodiscard]] virtual const float* forward(std::size_t count) = 0;
  /// For a matrix of `columns`, row by row; neither is 0. Any thread.
  [[nodiscard]] virtual std::unique_ptr<PowerIteration> power_iteration(std::vector<float> matrix,
                                                                        std::size_t columns) const = 0;
};

/// Says why there is no such device.
struct NoDevice : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[nodiscard]] std::unique_ptr<Network> make_cpu_network();
/// Throws NoDevice where there is no GPU that CUDA can use, or the program was built without WIRECALL_CUDA.
[[nodiscard]] std::unique_ptr<Network> make_cuda_network();

}  // namespace gpu
