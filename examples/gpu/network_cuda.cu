// The network on a GPU. A batch is one transfer from page-locked memory, one launch of one kernel and one transfer back,
// in a stream of its own, so that the iterations of matrices run beside it.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "network.hpp"

namespace gpu {
namespace {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error{std::string{what} + ": " + cudaGetErrorString(error)};
}

struct Free {
  void operator()(void* memory) const { cudaFree(memory); }
};
struct FreeHost {
  void operator()(void* memory) const { cudaFreeHost(memory); }
};
struct DestroyStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
template <class T>
using DeviceArray = std::unique_ptr<T[], Free>;
/// Page-locked: the GPU reads and writes it by itself, while the processor goes on.
template <class T>
using PinnedArray = std::unique_ptr<T[], FreeHost>;
using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;

template <class T>
DeviceArray<T> on_device(std::size_t count) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, count * sizeof(T)), "no memory on the GPU");
  return DeviceArray<T>{static_cast<T*>(memory)};
}
DeviceArray<float> on_device(const std::vector<float>& values) {
  DeviceArray<float> array = on_device<float>(values.size());
  check(cudaMemcpy(array.get(), values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice), "a transfer to the GPU");
  return array;
}
template <class T>
PinnedArray<T> pinned(std::size_t count) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, count * sizeof(T)), "no page-locked memory");
  return PinnedArray<T>{static_cast<T*>(memory)};
}
Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "no stream of the GPU");
  return Stream{stream};
}

/// The sum over the threads of the block, for all of them. `scratch` has an element for each; there is a power of two.
__device__ float sum_of_block(float value, float* scratch) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half != 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    __syncthreads();
  }
  const float sum = scratch[0];
  __syncthreads();  // it may be written anew
  return sum;
}

constexpr float kNormMin = 1e-12F;

/// A block of kHidden threads for each row.
__global__ void forward(const Row* rows, const float* words, const float* pixels, const float* out, float* vectors) {
  __shared__ float hidden[2 * kHidden];
  __shared__ float scratch[kHidden];
  const Row& row = rows[blockIdx.x];
  const unsigned column = threadIdx.x;

  float sum = 0;
  for (std::size_t i = 0; i != kWords; ++i) {
    // All threads skip the same ones: most words are not in the text.
    if (row.words[i] != 0) sum += row.words[i] * words[i * kHidden + column];
  }
  hidden[column] = tanhf(sum);
  sum = 0;
  for (std::size_t i = 0; i != kPixels; ++i) {
    if (row.pixels[i] != 0) sum += row.pixels[i] / 255.0F * pixels[i * kHidden + column];
  }
  hidden[kHidden + column] = tanhf(sum);
  __syncthreads();

  sum = 0;
  if (column < kSize) {
    for (std::size_t i = 0; i != 2 * kHidden; ++i) sum += hidden[i] * out[i * kSize + column];
  }
  const float norm = fmaxf(sqrtf(sum_of_block(sum * sum, scratch)), kNormMin);
  if (column < kSize) vectors[blockIdx.x * kSize + column] = sum / norm;
}

constexpr unsigned kThreads = 256;

/// products[row] = matrix[row] . vector, a block for each row.
__global__ void multiply(const float* matrix, const float* vector, std::size_t columns, float* products) {
  __shared__ float scratch[kThreads];
  const float* const row = matrix + blockIdx.x * columns;
  float sum = 0;
  for (std::size_t i = threadIdx.x; i < columns; i += blockDim.x) sum += row[i] * vector[i];
  sum = sum_of_block(sum, scratch);
  if (threadIdx.x == 0) products[blockIdx.x] = sum;
}

/// vector = the transposed matrix . products, a thread for each column.
__global__ void multiply_transposed(const float* matrix, const float* products, std::size_t rows, std::size_t columns,
                                    float* vector) {
  const std::size_t column = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (column >= columns) return;
  float sum = 0;
  for (std::size_t row = 0; row != rows; ++row) sum += matrix[row * columns + column] * products[row];
  vector[column] = sum;
}

/// One block.
__global__ void normalize(float* vector, std::size_t size) {
  __shared__ float scratch[kThreads];
  float squares = 0;
  for (std::size_t i = threadIdx.x; i < size; i += blockDim.x) squares += vector[i] * vector[i];
  const float norm = fmaxf(sqrtf(sum_of_block(squares, scratch)), kNormMin);
  for (std::size_t i = threadIdx.x; i < size; i += blockDim.x) vector[i] /= norm;
}

class CudaPowerIteration final : public PowerIteration {
 public:
  CudaPowerIteration(const std::vector<float>& matrix, std::size_t columns)
      : rows_(matrix.size() / columns),
        columns_(columns),
        matrix_(on_device(matrix)),
        products_(on_device<float>(rows_)),
        vector_(on_device(std::vector<float>(columns, 1.0F / std::sqrt(static_cast<float>(columns))))) {}

  std::vector<float> next() override {
    const auto rows = static_cast<unsigned>(rows_);
    const auto blocks = static_cast<unsigned>((columns_ + kThreads - 1) / kThreads);
    multiply<<<rows, kThreads, 0, stream_.get()>>>(matrix_.get(), vector_.get(), columns_, products_.get());
    multiply_transposed<<<blocks, kThreads, 0, stream_.get()>>>(matrix_.get(), products_.get(), rows_, columns_,
                                                                vector_.get());
    normalize<<<1, kThreads, 0, stream_.get()>>>(vector_.get(), columns_);
    check(cudaGetLastError(), "a launch");
    std::vector<float> estimate(columns_);
    check(cudaMemcpyAsync(estimate.data(), vector_.get(), columns_ * sizeof(float), cudaMemcpyDeviceToHost,
                          stream_.get()),
          "a transfer from the GPU");
    check(cudaStreamSynchronize(stream_.get()), "a step");
    return estimate;
  }

 private:
  std::size_t rows_, columns_;
  DeviceArray<float> matrix_, products_, vector_;
  Stream stream_ = make_stream();
};

class CudaNetwork final : public Network {
 public:
  explicit CudaNetwork(const Weights& weights)
      : words_(on_device(weights.words)), pixels_(on_device(weights.pixels)), out_(on_device(weights.out)) {}

  std::string device() const override {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0), "the GPU's name");
    return properties.name;
  }

  Row* inputs(std::size_t count) override {
    std::fill_n(rows_.get(), count, Row{});
    return rows_.get();
  }

  const float* forward(std::size_t count) override {
    check(cudaMemcpyAsync(device_rows_.get(), rows_.get(), count * sizeof(Row), cudaMemcpyHostToDevice, stream_.get()),
          "a transfer to the GPU");
    gpu::forward<<<static_cast<unsigned>(count), kHidden, 0, stream_.get()>>>(
        device_rows_.get(), words_.get(), pixels_.get(), out_.get(), device_vectors_.get());
    check(cudaGetLastError(), "the launch");
    check(cudaMemcpyAsync(vectors_.get(), device_vectors_.get(), count * kSize * sizeof(float), cudaMemcpyDeviceToHost,
                          stream_.get()),
          "a transfer from the GPU");
    check(cudaStreamSynchronize(stream_.get()), "a batch");
    return vectors_.get();
  }

  std::unique_ptr<PowerIteration> power_iteration(std::vector<float> matrix, std::size_t columns) const override {
    return std::make_unique<CudaPowerIteration>(matrix, columns);
  }

 private:
  DeviceArray<float> words_, pixels_, out_;
  PinnedArray<Row> rows_ = pinned<Row>(kBatch);
  PinnedArray<float> vectors_ = pinned<float>(kBatch * kSize);
  DeviceArray<Row> device_rows_ = on_device<Row>(kBatch);
  DeviceArray<float> device_vectors_ = on_device<float>(kBatch * kSize);
  Stream stream_ = make_stream();
};

}  // namespace

std::unique_ptr<Network> make_cuda_network() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) throw NoDevice{std::string{"no GPU for CUDA: "} + cudaGetErrorString(error)};
  return std::make_unique<CudaNetwork>(make_weights());
}

}  // namespace gpu
