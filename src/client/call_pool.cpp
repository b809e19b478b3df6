// See call_pool.hpp.
#include "client/call_pool.hpp"

#include "base/reserve_extra.hpp"
#include "client/input.hpp"

namespace wirecall::net {

// Larger buffers are given back after the call that needed them; smaller ones where there are many calls.
constexpr std::size_t kKeptBytesMax = 1024 * 1024;
constexpr std::size_t kKeptBytesOfMany = 16 * 1024;
// A few calls keep larger ones: fresh memory for each call would cost more than copying what goes into it.
constexpr std::size_t kKeptBytesOfFew = 4 * 1024 * 1024;
constexpr int kFew = 2;
constexpr std::size_t kMany = 64;

ClientCall& CallPool::take() {
  if (driver_.on_driver() && !own_idle_.empty()) {
    ClientCall& call = *own_idle_.back();
    own_idle_.pop_back();
    return call;
  }
  const Lock lock = driver_.lock();
  if (idle_.empty()) {
    reserve_extra(idle_, calls_.size() + 1);  // for when they come back
    ClientCall& call = calls_.emplace_back(codec_);
    if (calls_.size() > kMany) many_.store(true, std::memory_order_relaxed);
    return call;
  }
  ClientCall& call = *idle_.back();
  idle_.pop_back();
  return call;
}

void CallPool::give_back(ClientCall& call) noexcept {
  // A stop callback may be running and wait for the mutex: so it goes while we do not hold that.
  call.on_stop.reset();
  if (call.input) [[unlikely]] {
    // Likewise the source of its input, which may be making an item; what it refers to may be gone after this.
    call.input->close();
    call.input.reset();
  }
  WIRECALL_ASSERT(call.state == CallState::idle);
  call.stop = {};
  call.done = nullptr;
  call.error.reset();
  call.error_class = detail::ErrorClass::error;
  call.has_params = call.keep_response = call.wants_json = call.stop_asked = false;
  call.to.clear();
  call.layout = {};
  call.hops = call.credit = 0;
  call.stream = nullptr;
  const std::size_t kept = many_.load(std::memory_order_relaxed) ? kKeptBytesOfMany : kKeptBytesMax;
  for (Buffer* buffer : {&call.request, &call.response}) {
    if (buffer->capacity() <= kept || (call.keeps_large && buffer->capacity() <= kKeptBytesOfFew)) continue;
    if (!call.keeps_large) call.keeps_large = large_.fetch_add(1, std::memory_order_relaxed) < kFew;
    if (!call.keeps_large || buffer->capacity() > kKeptBytesOfFew) buffer->release();
  }
  if (driver_.on_driver()) {
    try {
      return own_idle_.push_back(&call);
    } catch (const std::bad_alloc&) {
      // There is room in the other list.
    }
  }
  const Lock lock = driver_.lock();
  idle_.push_back(&call);
}

void CallPool::share_all() noexcept {
  idle_.insert(idle_.end(), own_idle_.begin(), own_idle_.end());
  own_idle_.clear();
}

}  // namespace wirecall::net
