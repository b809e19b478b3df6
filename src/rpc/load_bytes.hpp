// LoadBytes: bytes that something kept for a connection counts among those of its PeerLoad, for as long as it is kept.
// One thread.
#pragma once

#include "base/assert.hpp"
#include "rpc/peer_load.hpp"

namespace wirecall::rpc {

template <std::size_t PeerLoad::* kCounter>
class LoadBytes {
 public:
  LoadBytes() noexcept = default;
  LoadBytes(LoadBytes&& from) noexcept : load_(std::move(from.load_)), bytes_(std::exchange(from.bytes_, 0)) {}
  LoadBytes& operator=(LoadBytes&& from) noexcept {
    std::swap(load_, from.load_);
    std::swap(bytes_, from.bytes_);
    return *this;
  }
  ~LoadBytes() { release(); }

  /// Once it has been set, it stays with that load until it is released.
  void set(const std::shared_ptr<PeerLoad>& load, std::size_t bytes) noexcept {
    if (!load_) load_ = load;
    WIRECALL_ASSERT((*load_).*kCounter >= bytes_);
    (*load_).*kCounter += bytes - bytes_;
    bytes_ = bytes;
  }
  void release() noexcept {
    if (load_) (*load_).*kCounter -= bytes_;
    load_.reset();
    bytes_ = 0;
  }

 private:
  std::shared_ptr<PeerLoad> load_;
  std::size_t bytes_ = 0;
};

/// What a batch holds from one turn to another.
using BatchBytes = LoadBytes<&PeerLoad::batch_bytes>;
/// What is kept of a call.
using HeldBytes = LoadBytes<&PeerLoad::held_bytes>;

/// Params that a call keeps while it waits.
using ParamsBytes = LoadBytes<&PeerLoad::params_bytes>;

/// An id, or params, of more are counted among what is kept.
inline constexpr std::size_t kBytesUncounted = 1024;

}  // namespace wirecall::rpc
